/* Each rank sends a message to the next one, so that it has chosen how: 4 bytes, or as many as are said. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size, bytes = argc > 1 ? atoi(argv[1]) : (int)sizeof(int);
    int *mine, *theirs;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mine = calloc(1, bytes);
    theirs = calloc(1, bytes);
    if (!mine || !theirs)
        MPI_Abort(MPI_COMM_WORLD, 2);
    *mine = rank;
    MPI_Sendrecv(mine, bytes, MPI_BYTE, (rank + 1) % size, 0, theirs, bytes, MPI_BYTE, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (*theirs != (rank + size - 1) % size)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD); /* so that it has the prices of collectives */
    printf("rank %d is done\n", rank);
    free(mine);
    free(theirs);
    MPI_Finalize();
    return 0;
}
