/* Barrier: mean of batches on rank 0, median of the batches. Output: "barrier RANKS MEDIAN_US BEST_US". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCHES 11

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 500;
    double times[BATCHES];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int b = 0; b < BATCHES; b++) {
        double start = MPI_Wtime();
        for (int i = 0; i < rounds; i++)
            MPI_Barrier(MPI_COMM_WORLD);
        times[b] = (MPI_Wtime() - start) * 1e6 / rounds;
    }
    qsort(times, BATCHES, sizeof times[0], by_value);
    if (rank == 0)
        printf("barrier %d %.2f %.2f\n", size, times[BATCHES / 2], times[0]);
    MPI_Finalize();
    return 0;
}
