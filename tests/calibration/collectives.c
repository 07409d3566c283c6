/* Collectives of a few sizes, so that the ranks' log says which algorithms they choose. The sums are checked.
   With an argument each rank goes on until its input ends. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double data[8192], sums[8192];

int main(int argc, char **argv) {
    int rank, size, i;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < 8192; i++) data[i] = rank ? -1 : i;
    MPI_Bcast(data, 256, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (i = 0; i < 256; i++)
        if (data[i] != i) MPI_Abort(MPI_COMM_WORLD, 1);
    for (i = 0; i < 8192; i++) data[i] = rank + i;
    for (int n = 1; n <= 8192; n *= 8192) {
        memset(sums, 0, sizeof sums);
        MPI_Allreduce(data, sums, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (i = 0; i < n; i++)
            if (sums[i] != size * (size - 1) / 2 + (double)size * i) MPI_Abort(MPI_COMM_WORLD, 2);
    }
    printf("rank %d is done\n", rank);
    fflush(stdout);
    if (argc > 1)
        while (getchar() != EOF) {}
    MPI_Finalize();
    return 0;
}
