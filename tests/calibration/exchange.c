/* Each rank sends a message to the next one, so that it has chosen how. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, mine, theirs = -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mine = rank;
    MPI_Sendrecv(&mine, 1, MPI_INT, (rank + 1) % size, 0, &theirs, 1, MPI_INT, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (theirs != (rank + size - 1) % size)
        MPI_Abort(MPI_COMM_WORLD, 1);
    printf("rank %d is done\n", rank);
    MPI_Finalize();
    return 0;
}
