import java.util.Random;
import mpi.MPI;

/** Java Grande's SparseMatmult; see sparsematmult.c. */
public final class Sparsematmult {
    static final int ITERATIONS = 200;
    static final int[] SIZES = {50000, 100000, 500000};
    static final int[] VALUES = {250000, 500000, 2500000};
    static final double[] KNOWN = {75.02484945753453, 150.0130719633895, 749.5245870753752};

    private Sparsematmult() {}

    static void multiply(double[] y, double[] x, double[] val, int[] row, int[] col, int first, int last) {
        for (int i = first; i < last; i++) {
            y[row[i]] += x[col[i]] * val[i];
        }
    }

    public static void main(String[] args) {
        int which = Grande.begin(args, "Sparsematmult");
        int n = SIZES[which];
        int nz = VALUES[which];
        int first = Grande.first(nz, Grande.rank);
        int last = Grande.first(nz, Grande.rank + 1);
        Random random = new Random(10101010);
        double[] x = new double[n];
        double[] y = new double[n];
        for (int i = 0; i < n; i++) {
            x[i] = random.nextDouble() * 1e-6;
        }
        double[] val = new double[nz];
        int[] row = new int[nz];
        int[] col = new int[nz];
        for (int i = 0; i < nz; i++) {
            row[i] = Math.abs(random.nextInt()) % n;
            col[i] = Math.abs(random.nextInt()) % n;
            val[i] = random.nextDouble();
        }
        double[] sum = Grande.size > 1 ? new double[n] : y;
        double start = Grande.nowTogether();
        for (int turn = 0; turn < ITERATIONS; turn++) {
            multiply(y, x, val, row, col, first, last);
            if (Grande.size > 1) {
                Grande.ALL.allReduce(y, sum, n, MPI.DOUBLE, MPI.SUM);
            }
        }
        double took = Grande.slowestSince(start);
        double total = 0;
        for (int i = 0; i < nz; i++) {
            total += sum[row[i]];
        }
        Grande.finish(took, 2.0 * nz * ITERATIONS, Math.abs(total - KNOWN[which]) < 1e-10);
    }
}
