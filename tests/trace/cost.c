// What a trace costs (docs/debugging.md): nanoseconds of MPI_Comm_rank and of an 8-byte message one way, the best of 200 batches. Run it
// on two ranks with and without --trace, on a quiet machine. No test.
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int rank, batches = 200, n = 2000;
    long long word = 0;
    double call = 1e9, way = 1e9;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int b = 0; b < batches; b++) {
        double t = MPI_Wtime();
        for (int i = 0; i < n; i++) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        t = (MPI_Wtime() - t) / n;
        if (t < call) call = t;
        MPI_Barrier(MPI_COMM_WORLD);
        t = MPI_Wtime();
        for (int i = 0; i < n; i++)
            if (rank == 0) {
                MPI_Send(&word, 1, MPI_LONG_LONG, 1, 0, MPI_COMM_WORLD);
                MPI_Recv(&word, 1, MPI_LONG_LONG, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(&word, 1, MPI_LONG_LONG, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(&word, 1, MPI_LONG_LONG, 0, 0, MPI_COMM_WORLD);
            }
        t = (MPI_Wtime() - t) / n / 2;
        if (t < way) way = t;
    }
    if (rank == 0) printf("call %.0f ns, one way %.0f ns\n", call * 1e9, way * 1e9);
    MPI_Finalize();
    return 0;
}
