/* alltoall ROUNDS COUNT: exchanges among all ranks, each with other values, every one checked; rank 0 says whether all was right
 * and how long it took. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int value(int round, int from, int to, int at) { return round * 31 + from * 1009 + to * 65537 + at; }

int main(int argc, char **argv)
{
    int rank, size, wrong = 0, all = 0;
    int rounds = argc > 1 ? atoi(argv[1]) : 100, count = argc > 2 ? atoi(argv[2]) : 100;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *out = malloc(sizeof(int) * count * size), *in = malloc(sizeof(int) * count * size);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count * size; i++)
            out[i] = value(round, rank, i / count, i % count);
        MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < count * size; i++)
            wrong += in[i] != value(round, i / count, rank, i % count);
    }
    double seconds = MPI_Wtime() - start;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s in %.3f s\n", all == 0 ? "right" : "WRONG", seconds);
    MPI_Finalize();
    return all != 0;
}
