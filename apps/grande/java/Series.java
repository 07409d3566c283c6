import mpi.MPI;

/** Java Grande's Series; see series.c. */
public final class Series {
    static final int INTERVALS = 1000;
    static final int[] SIZES = {10000, 100000, 1000000};
    static final double[][] KNOWN = {{2.8729524964837996, 0}, {1.1161046676147888, -1.8819691893398025},
        {0.34429060398168704, -1.1645642623320958}, {0.15238898702519288, -0.8143461113044298}};

    private Series() {}

    static double function(double x, double omega, int select) {
        double f = Math.pow(x + 1, x);
        return select == 0 ? f : select == 1 ? f * Math.cos(omega * x) : f * Math.sin(omega * x);
    }

    static double trapezoid(double from, double to, double omega, int select) {
        double x = from;
        double dx = (to - from) / INTERVALS;
        double sum = function(from, omega, select) / 2;
        for (int i = 1; i < INTERVALS - 1; i++) { // the benchmark leaves the last point out, and its results show it
            x += dx;
            sum += function(x, omega, select);
        }
        return (sum + function(to, omega, select) / 2) * dx;
    }

    static boolean isRight(double[] a, double[] b) {
        boolean right = true;
        for (int i = 0; i < KNOWN.length; i++) {
            right &= Math.abs(a[i] - KNOWN[i][0]) < 1e-12 && Math.abs(b[i] - KNOWN[i][1]) < 1e-12;
        }
        return right;
    }

    static double[] gathered(double[] mine, int n) {
        double[] all = new double[Grande.rank == 0 ? n : 0];
        Grande.ALL.gatherv(mine, mine.length, MPI.DOUBLE, all, Grande.parts(n, 1, true), Grande.parts(n, 1, false), MPI.DOUBLE, 0);
        return all;
    }

    public static void main(String[] args) {
        int n = SIZES[Grande.begin(args, "Series")];
        int first = Grande.first(n, Grande.rank);
        int count = Grande.first(n, Grande.rank + 1) - first;
        double[] a = new double[count];
        double[] b = new double[count];
        double start = Grande.nowTogether();
        double omega = 3.1415926535897932;
        for (int k = 0; k < count; k++) {
            int i = first + k;
            a[k] = i > 0 ? trapezoid(0, 2, omega * i, 1) : trapezoid(0, 2, 0, 0) / 2;
            b[k] = i > 0 ? trapezoid(0, 2, omega * i, 2) : 0;
        }
        a = gathered(a, n);
        b = gathered(b, n);
        double took = Grande.slowestSince(start);
        Grande.finish(took, 2.0 * n * INTERVALS, Grande.rank != 0 || isRight(a, b));
    }
}
