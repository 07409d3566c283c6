import java.util.Arrays;
import java.util.Locale;
import mpi.MPI;

/** What the measuring programs in Java share: batches, their order statistics, and lines as those of bench/measure.h. */
final class Measure {
    static final int MOST_BATCHES = 101;
    /** Microseconds that a cell may take. */
    static double budget = 100e3;
    /** How often the cells take turns. */
    static int turns = 1;

    private Measure() {}

    /** Times of batches, in microseconds for one iteration. */
    static final class Batches {
        int count;
        double[] us = new double[MOST_BATCHES];

        void add(double value) {
            us[count++] = value;
        }

        /** Every batch becomes its slowest rank's; all ranks call, rank 0 has the result. */
        void slowest() {
            double[] all = new double[count];
            MPI.COMM_WORLD.reduce(Arrays.copyOf(us, count), all, count, MPI.DOUBLE, MPI.MAX, 0);
            if (MPI.COMM_WORLD.getRank() == 0) {
                System.arraycopy(all, 0, us, 0, count);
            }
        }

        String line(String name) {
            double[] sorted = Arrays.copyOf(us, count);
            Arrays.sort(sorted);
            int start = Math.max(0, (int) Math.floor((count - 1.96 * Math.sqrt(count)) / 2) - 1);
            StringBuilder text = new StringBuilder(String.format(Locale.ROOT,
                "\"%s\": {\"min\": %.4f, \"median\": %.4f, \"low\": %.4f, \"high\": %.4f, \"batches\": [", name, sorted[0],
                sorted[count / 2], sorted[start], sorted[count - 1 - start]));
            for (int i = 0; i < count; i++) {
                text.append(i > 0 ? ", " : "").append(String.format(Locale.ROOT, "%.4f", us[i]));
            }
            return text.append("]}").toString();
        }
    }

    /** Ends the job with one sentence that has a word in it. */
    static void giveUp(String what, String word) {
        System.err.println(what + " '" + word + "'");
        System.err.flush();
        MPI.COMM_WORLD.abort(1);
    }

    /** Takes an option with its value, if the program has it. */
    interface Option {
        boolean take(String name, String value);
    }

    /** Reads pairs of options and values: those of all programs, and those that {@code own} takes. */
    static void options(String program, String[] words, Option own) {
        for (int i = 0; i < words.length; i += 2) {
            if (i + 1 == words.length) {
                giveUp(program + ": there is no option, or no value of it,", words[i]);
            }
            String value = words[i + 1];
            if (words[i].equals("--ms")) {
                budget = number(value, 1, 100000, program + ": milliseconds go up to 100000, not") * 1e3;
            } else if (words[i].equals("--turns")) {
                turns = number(value, 1, MOST_BATCHES, program + ": turns go from 1 to 101, not");
            } else if (!own.take(words[i], value)) {
                giveUp(program + ": there is no option", words[i]);
            }
        }
    }

    static int number(String word, int least, int most, String what) {
        try {
            int value = Integer.parseInt(word);
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException e) {
            // told below
        }
        giveUp(what, word);
        return 0;
    }

    static int[] sizes(String list, int unit, int least, int most, String what) {
        String[] words = list.split(",");
        int[] sizes = new int[words.length];
        for (int i = 0; i < sizes.length; i++) {
            sizes[i] = number(words[i], least, most, what);
            if (sizes[i] % unit != 0) {
                giveUp(what, words[i]);
            }
        }
        return sizes;
    }

    /** The largest of all ranks. */
    static double largest(double mine) {
        double[] all = {mine};
        MPI.COMM_WORLD.allReduce(all, 1, MPI.DOUBLE, MPI.MAX);
        return all[0];
    }

    /** That a turn of many has passed, in a line that is no measurement. */
    static void tellTurn(int turn) {
        if (MPI.COMM_WORLD.getRank() == 0) {
            System.out.println("# turn " + (turn + 1) + " of " + turns);
        }
    }
}
