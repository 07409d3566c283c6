import java.util.Locale;
import mpi.Intracomm;
import mpi.MPI;

/** What the kernels in Java share: their size, parts of ranks, and what they print; as grande.h. */
final class Grande {
    static final Intracomm ALL = MPI.COMM_WORLD;
    static int rank;
    static int size;

    private Grande() {}

    /** Starts MPI and reads the size; 0, 1 or 2 for A, B or C. */
    static int begin(String[] args, String name) {
        MPI.Init(args);
        rank = ALL.getRank();
        size = ALL.getSize();
        if (args.length != 1 || args[0].length() != 1 || "ABC".indexOf(args[0]) < 0) {
            if (rank == 0) {
                System.err.println(name + ": its one argument is a size: A, B or C");
                System.err.flush();
            }
            ALL.abort(1);
        }
        return "ABC".indexOf(args[0]);
    }

    /** Where a rank's part of n things begins. */
    static int first(int n, int r) {
        return (int) ((long) n * r / size);
    }

    /** Where each rank's part of n things of some elements begins, and with {@code lengths} how long it is. */
    static int[] parts(int n, int elements, boolean lengths) {
        int[] parts = new int[size];
        for (int r = 0; r < size; r++) {
            parts[r] = elements * (lengths ? first(n, r + 1) - first(n, r) : first(n, r));
        }
        return parts;
    }

    static double nowTogether() {
        ALL.barrier();
        return MPI.wtime();
    }

    /** Seconds since a time on the slowest rank. */
    static double slowestSince(double start) {
        double[] took = {MPI.wtime() - start};
        ALL.allReduce(took, 1, MPI.DOUBLE, MPI.MAX);
        return took[0];
    }

    /** Prints what kwlab reads, and ends MPI; a wrong result ends the job. */
    static void finish(double seconds, double operations, boolean right) {
        if (rank == 0) {
            System.out.printf(Locale.ROOT, "seconds %.6f%nMop/s %.3f%n%s%n", seconds, operations / seconds / 1e6,
                right ? "verified" : "wrong");
        }
        boolean[] all = {right};
        ALL.bcast(all, 1, MPI.BOOLEAN, 0);
        MPI.Finalize();
        if (!all[0]) {
            System.exit(1);
        }
    }
}
