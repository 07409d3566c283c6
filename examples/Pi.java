import mpi.MPI;

/** Pi by the midpoint rule, in parts: mpijavac examples/Pi.java -d build && mpiexec -n 4 java -cp build Pi */
public class Pi {
    static final long INTERVALS = 100_000_000;

    public static void main(String[] args) {
        MPI.Init(args);
        int rank = MPI.COMM_WORLD.getRank();
        int size = MPI.COMM_WORLD.getSize();
        double[] sum = new double[1];
        for (long i = rank; i < INTERVALS; i += size) {
            double x = (i + 0.5) / INTERVALS;
            sum[0] += 4 / (1 + x * x);
        }
        double[] pi = new double[1];
        MPI.COMM_WORLD.reduce(sum, pi, 1, MPI.DOUBLE, MPI.SUM, 0);
        if (rank == 0) {
            System.out.printf("pi is %.10f, by %d ranks%n", pi[0] / INTERVALS, size);
        }
        MPI.Finalize();
    }
}
