import mpi.MPI;

/** Java Grande's LUFact (Linpack); see lufact.c. */
public final class Lufact {
    static final int[] SIZES = {500, 1000, 2000};
    static final double[] BOUND = {6, 12, 20};
    static int n;
    static double[][] columns;

    private Lufact() {}

    static void generate(double[] b, boolean mineOnly) {
        int init = 1325;
        java.util.Arrays.fill(b, 0);
        for (int j = 0; j < n; j++) {
            double[] to = !mineOnly || j % Grande.size == Grande.rank ? columns[j] : null;
            for (int i = 0; i < n; i++) {
                init = 3125 * init % 65536;
                double value = (init - 32768.0) / 16384.0;
                if (to != null) {
                    to[i] = value;
                }
                b[i] += value;
            }
        }
    }

    static int largest(double[] c, int from) {
        int at = from;
        for (int i = from + 1; i < n; i++) {
            if (Math.abs(c[i]) > Math.abs(c[at])) {
                at = i;
            }
        }
        return at;
    }

    static void pivot(double[] c, int k) {
        int l = largest(c, k);
        double t = c[l];
        c[l] = c[k];
        c[k] = t;
        for (int i = k + 1; i < n; i++) {
            c[i] *= -1 / t;
        }
        c[n] = l;
    }

    static void update(double[] d, double[] c, int l, int k) {
        double t = d[l];
        d[l] = d[k];
        d[k] = t;
        for (int i = k + 1; i < n; i++) {
            d[i] += t * c[i];
        }
    }

    static void factor(int[] pivots) {
        double[] work = new double[n + 1];
        int size = Grande.size;
        for (int k = 0; k < n - 1; k++) {
            int owner = k % size;
            double[] c = owner == Grande.rank ? columns[k] : work;
            if (owner == Grande.rank) {
                pivot(c, k);
            }
            if (size > 1) {
                Grande.ALL.Bcast(c, k, n + 1 - k, MPI.DOUBLE, owner);
            }
            int l = (int) c[n];
            pivots[k] = l;
            for (int j = k + 1 + (Grande.rank + size - (k + 1) % size) % size; j < n; j += size) {
                update(columns[j], c, l, k);
            }
        }
    }

    /** All columns come to rank 0, which solves. */
    static void solve(double[] b, int[] pivots) {
        for (int k = 0; k < n; k++) {
            int owner = k % Grande.size;
            if (owner != 0 && Grande.rank == 0) {
                columns[k] = new double[n + 1];
                Grande.ALL.recv(columns[k], n, MPI.DOUBLE, owner, k);
            } else if (owner == Grande.rank && Grande.rank != 0) {
                Grande.ALL.send(columns[k], n, MPI.DOUBLE, 0, k);
            }
        }
        if (Grande.rank != 0) {
            return;
        }
        for (int k = 0; k < n - 1; k++) {
            update(b, columns[k], pivots[k], k);
        }
        for (int k = n - 1; k >= 0; k--) {
            b[k] /= columns[k][k];
            for (int i = 0; i < k; i++) {
                b[i] -= b[k] * columns[k][i];
            }
        }
    }

    /** The residual, normalized as Linpack does, below the bound of the size. */
    static boolean isRight(double[] x, double bound) {
        double[] b = new double[n];
        generate(b, false);
        double residual = 0;
        double normX = 0;
        double normA = 0;
        for (int j = 0; j < n; j++) {
            for (int i = 0; i < n; i++) {
                b[i] -= columns[j][i] * x[j];
                normA = Math.max(normA, Math.abs(columns[j][i]));
            }
        }
        for (int i = 0; i < n; i++) {
            residual = Math.max(residual, Math.abs(b[i]));
            normX = Math.max(normX, Math.abs(x[i]));
        }
        return residual / (n * normA * normX * 0x1p-52) <= bound;
    }

    public static void main(String[] args) {
        int which = Grande.begin(args, "Lufact");
        n = SIZES[which];
        columns = new double[n][];
        for (int j = Grande.rank; j < n; j += Grande.size) {
            columns[j] = new double[n + 1];
        }
        double[] b = new double[n];
        generate(b, true);
        int[] pivots = new int[n];
        double start = Grande.nowTogether();
        factor(pivots);
        solve(b, pivots);
        double took = Grande.slowestSince(start);
        boolean right = Grande.rank != 0 || isRight(b, BOUND[which]);
        Grande.finish(took, 2.0 * n * n * n / 3 + 2.0 * n * n, right);
    }
}
