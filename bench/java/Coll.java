import java.nio.DoubleBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import mpi.Intracomm;
import mpi.MPI;

/**
 * Collective operations from Java: bench/coll.c with its options and lines. {@code --buffers direct} (default) passes direct
 * buffers, {@code array} double[]. Data is checked once for each size, with two roots.
 */
public final class Coll {
    static final int USUAL = 11;
    static final int FEWEST = 3;
    static final int MOST = 1000000;
    static final int GRID = 7;
    static final double FIRST_WARM_UP_US = 2e6;
    static final double WARM_UP_US = 100e3;
    static final Intracomm ALL = MPI.COMM_WORLD;

    static int rank;
    static int size;
    static int turn;
    static boolean arrays;
    static boolean apart;
    static boolean warm;
    static int[] counts;
    static List<String> ops;
    static int[] sizes = {8, 1 << 10, 1 << 16, 1 << 20};
    static Object given;
    static Object got;

    private Coll() {}

    interface Run {
        void run(int count, int root);
    }

    static final Map<String, Run> OPERATIONS = new LinkedHashMap<>();

    static {
        OPERATIONS.put("barrier", (n, root) -> ALL.barrier());
        OPERATIONS.put("bcast", (n, root) -> ALL.bcast(rank == root ? given : got, n, MPI.DOUBLE, root));
        OPERATIONS.put("reduce", (n, root) -> ALL.reduce(given, got, n, MPI.DOUBLE, MPI.SUM, root));
        OPERATIONS.put("allreduce", (n, root) -> ALL.allReduce(given, got, n, MPI.DOUBLE, MPI.SUM));
        OPERATIONS.put("allgather", (n, root) -> ALL.allGather(given, n, MPI.DOUBLE, got, n, MPI.DOUBLE));
        OPERATIONS.put("alltoall", (n, root) -> ALL.allToAll(given, n, MPI.DOUBLE, got, n, MPI.DOUBLE));
        OPERATIONS.put("reduce_scatter", (n, root) -> ALL.reduceScatter(given, got, counts, MPI.DOUBLE, MPI.SUM));
        OPERATIONS.put("gather", (n, root) -> ALL.gather(given, n, MPI.DOUBLE, got, n, MPI.DOUBLE, root));
        OPERATIONS.put("scatter", (n, root) -> ALL.scatter(given, n, MPI.DOUBLE, got, n, MPI.DOUBLE, root));
        OPERATIONS.put("scan", (n, root) -> ALL.scan(given, got, n, MPI.DOUBLE, MPI.SUM));
        OPERATIONS.put("exscan", (n, root) -> ALL.exScan(given, got, n, MPI.DOUBLE, MPI.SUM));
    }

    /** What rank {@code from} gives at a place, and sums of it over the ranks before {@code end}: whole numbers add exactly. */
    static double value(int from, int i) {
        return 8 * from + i % 7;
    }

    static double sum(int end, int i) {
        return 4.0 * end * (end - 1) + end * (i % 7);
    }

    static double at(Object memory, int i) {
        return memory instanceof double[] a ? a[i] : ((DoubleBuffer) memory).get(i);
    }

    static void put(Object memory, int i, double v) {
        if (memory instanceof double[] a) {
            a[i] = v;
        } else {
            ((DoubleBuffer) memory).put(i, v);
        }
    }

    /** How many doubles this rank must have got. */
    static int results(String op, int n, int root) {
        return switch (op) {
            case "barrier" -> 0;
            case "bcast" -> rank == root ? 0 : n;
            case "reduce" -> rank == root ? n : 0;
            case "gather" -> rank == root ? n * size : 0;
            case "allgather", "alltoall" -> n * size;
            case "reduce_scatter" -> counts[rank];
            case "exscan" -> rank == 0 ? 0 : n;
            default -> n;
        };
    }

    static double expected(String op, int n, int root, int i) {
        return switch (op) {
            case "bcast" -> value(root, i);
            case "reduce", "allreduce" -> sum(size, i);
            case "allgather", "gather" -> value(i / n, i % n);
            case "alltoall" -> value(i / n, rank * n + i % n);
            case "scatter" -> value(root, rank * n + i);
            case "reduce_scatter" -> sum(size, rank * (n / size) + Math.min(rank, n % size) + i);
            case "scan" -> sum(rank + 1, i);
            default -> sum(rank, i);
        };
    }

    /** How many ranks got wrong data; each says so. */
    static int wrongRanks(String op, int n, int root) {
        for (int i = 0; i < n * size; i++) {
            put(got, i, -1);
        }
        OPERATIONS.get(op).run(n, root);
        int[] wrong = {0};
        for (int i = 0; i < results(op, n, root) && wrong[0] == 0; i++) {
            if (at(got, i) != expected(op, n, root, i)) {
                System.err.println("Coll: " + op + " of " + n + " doubles, root " + root + ": rank " + rank + " has " + at(got, i)
                    + " at " + i + ", not " + expected(op, n, root, i));
                wrong[0] = 1;
            }
        }
        ALL.allReduce(wrong, 1, MPI.INT, MPI.SUM);
        return wrong[0];
    }

    /** Microseconds of one iteration: from when the first rank began until the last had ended. */
    static double batch(Run op, int n, int iterations) {
        ALL.barrier();
        double start = System.nanoTime() * 1e-9;
        for (int i = 0; i < iterations; i++) {
            op.run(n, turn++ % size);
            if (apart) {
                ALL.barrier();
            }
        }
        double[] all = {-start, System.nanoTime() * 1e-9};
        ALL.allReduce(all, 2, MPI.DOUBLE, MPI.MAX);
        return (all[0] + all[1]) * 1e6 / iterations;
    }

    static double warmUp(Run op, int n) {
        double best = 0;
        double spent = 0;
        int telling = 0;
        double enough = warm ? Math.min(WARM_UP_US, 3 * Measure.budget) : Math.min(FIRST_WARM_UP_US, 30 * Measure.budget);
        warm = true;
        for (int k = 1; telling < 2 || spent < enough; k = Math.min(2 * k, MOST)) {
            double once = Measure.largest(batch(op, n, k));
            spent += once * k;
            telling = once * k >= Measure.budget ? 2 : once * k >= Measure.budget / 20 || k == MOST ? telling + 1 : 0;
            best = k == 1 || once < best ? once : best;
            if (telling >= 2) {
                k = Math.max(1, k / 2);
            }
        }
        return best;
    }

    static final class Cell {
        final String name;
        final int bytes;
        int iterations;
        int batches;
        int wrong;
        final Measure.Batches times = new Measure.Batches();
        final Measure.Batches barriers = new Measure.Batches();

        Cell(String name, int bytes) {
            this.name = name;
            this.bytes = bytes;
        }
    }

    static void prepare(Cell c, int n) {
        c.wrong = wrongRanks(c.name, n, 0) + wrongRanks(c.name, n, size - 1);
        if (c.wrong == 0) {
            double once = warmUp(OPERATIONS.get(c.name), n);
            double fit = Math.min(MOST, Measure.budget / USUAL / once);
            c.iterations = fit < 1 ? 1 : fit < size ? (int) fit : (int) fit / size * size;
            double batches = Measure.budget / (once * c.iterations);
            c.batches = batches > USUAL ? USUAL : batches < FEWEST ? FEWEST : (int) batches;
        }
    }

    static void visit(Cell c, int pass) {
        int n = c.bytes / 8;
        for (int r = 0; r < size; r++) {
            counts[r] = n / size + (r < n % size ? 1 : 0);
        }
        Run op = OPERATIONS.get(c.name);
        if (pass == 0) {
            prepare(c, n);
        } else if (c.wrong == 0) {
            op.run(n, 0);
        }
        for (int b = 0; c.wrong == 0 && b < (c.batches + Measure.turns - 1) / Measure.turns; b++) {
            if (apart) {
                apart = false;
                c.barriers.add(batch(OPERATIONS.get("barrier"), 0, c.iterations));
                apart = true;
            }
            c.times.add(batch(op, n, c.iterations));
        }
        if (pass + 1 == Measure.turns) {
            print(c);
        }
    }

    static void print(Cell c) {
        c.times.slowest();
        c.barriers.slowest();
        if (rank == 0) {
            String head = "{\"bench\": \"coll\", \"op\": \"" + c.name + "\", \"bytes\": " + c.bytes + ", \"ranks\": " + size + ", ";
            System.out.println(c.wrong > 0 ? head + "\"wrong\": " + c.wrong + "}"
                : head + "\"mode\": \"" + (apart ? "apart" : "back-to-back") + "\", \"iterations\": " + c.iterations + ", "
                    + c.times.line("us") + (apart ? ", " + c.barriers.line("barrier_us") : "") + "}");
        }
    }

    static Object memory(int doubles) {
        return arrays ? new double[doubles] : MPI.newDoubleBuffer(doubles);
    }

    static void meet() {
        double[] mine = {rank};
        for (int step = 1; step < size; step++) {
            ALL.sendRecv(mine, 1, MPI.DOUBLE, (rank + step) % size, 0, new double[1], 1, MPI.DOUBLE, (rank + size - step) % size, 0);
        }
    }

    static boolean takes(String option, String value) {
        switch (option) {
            case "--ops" -> ops = Arrays.asList(value.split(","));
            case "--sizes" -> sizes = Measure.sizes(value, 8, 8, 1 << 26, "Coll: sizes are multiples of 8 up to 64 MB, not");
            case "--buffers" -> arrays = value.equals("array");
            default -> {
                return false;
            }
        }
        return true;
    }

    public static void main(String[] args) {
        MPI.Init(args);
        rank = ALL.getRank();
        size = ALL.getSize();
        counts = new int[size];
        ops = new ArrayList<>(OPERATIONS.keySet()).subList(0, GRID);
        apart = Arrays.asList(args).contains("--apart");
        Measure.options("Coll", Arrays.stream(args).filter(w -> !w.equals("--apart")).toArray(String[]::new), Coll::takes);
        for (String op : ops) {
            if (!OPERATIONS.containsKey(op)) {
                Measure.giveUp("Coll: there is no operation", op);
            }
        }
        int doubles = Arrays.stream(sizes).max().orElse(8) / 8 * size;
        given = memory(doubles);
        got = memory(doubles);
        for (int i = 0; i < doubles; i++) {
            put(given, i, value(rank, i));
        }
        meet();
        List<Cell> cells = new ArrayList<>();
        for (int s = 0; s < sizes.length; s++) {
            for (String op : ops) {
                if (!op.equals("barrier") || s == 0) {
                    cells.add(new Cell(op, op.equals("barrier") ? 0 : sizes[s]));
                }
            }
        }
        for (int pass = 0; pass < Measure.turns; pass++) {
            for (Cell c : cells) {
                visit(c, pass);
            }
            if (pass + 1 < Measure.turns) {
                Measure.tellTurn(pass);
            }
        }
        MPI.Finalize();
    }
}
