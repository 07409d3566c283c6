import java.util.Random;
import mpi.MPI;

/** Java Grande's SOR; see sor.c. */
public final class Sor {
    static final int ITERATIONS = 100;
    static final double OMEGA = 1.25;
    static final int[] SIZES = {1000, 1500, 2000};
    static final double[] KNOWN = {0.498574406322512, 1.1234778980135105, 1.9954895063582696};

    private Sor() {}

    static void relax(double[] up, double[] here, double[] down, int start) {
        double over = OMEGA * 0.25;
        double rest = 1 - OMEGA;
        for (int j = start; j < here.length - 1; j += 2) {
            here[j] = over * (up[j] + down[j] + here[j - 1] + here[j + 1]) + rest * here[j];
        }
    }

    static void passEdges(double[][] rows, int n) {
        int above = Grande.rank > 0 ? Grande.rank - 1 : MPI.PROC_NULL;
        int below = Grande.rank + 1 < Grande.size ? Grande.rank + 1 : MPI.PROC_NULL;
        int last = rows.length - 1;
        Grande.ALL.sendRecv(rows[1], n, MPI.DOUBLE, above, 0, rows[last], n, MPI.DOUBLE, below, 0);
        Grande.ALL.sendRecv(rows[last - 1], n, MPI.DOUBLE, below, 1, rows[0], n, MPI.DOUBLE, above, 1);
    }

    public static void main(String[] args) {
        int which = Grande.begin(args, "Sor");
        int n = SIZES[which];
        int low = 1 + Grande.first(n - 2, Grande.rank);
        int high = 1 + Grande.first(n - 2, Grande.rank + 1);
        double[][] rows = new double[high - low + 2][n];
        Random random = new Random(10101010);
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                double value = random.nextDouble() * 1e-6;
                if (i >= low - 1 && i <= high) {
                    rows[i - low + 1][j] = value;
                }
            }
        }
        double start = Grande.nowTogether();
        for (int p = 0; p < 2 * ITERATIONS; p++) {
            for (int i = low; i < high; i++) {
                int at = i - low + 1;
                relax(rows[at - 1], rows[at], rows[at + 1], 1 + (i + 1 + p % 2) % 2);
            }
            passEdges(rows, n);
        }
        double took = Grande.slowestSince(start);
        double[] total = {0};
        for (int i = 1; i < rows.length - 1; i++) {
            for (int j = 1; j < n - 1; j++) {
                total[0] += rows[i][j];
            }
        }
        Grande.ALL.reduce(total, 1, MPI.DOUBLE, MPI.SUM, 0);
        boolean right = Grande.rank != 0 || Math.abs(total[0] - KNOWN[which]) < 1e-12;
        Grande.finish(took, 6.0 * (n - 2.0) * (n - 2.0) * ITERATIONS, right);
    }
}
