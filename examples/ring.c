/* ring: a token goes round all ranks, and every rank adds its number.   mpicc -o ring ring.c && mpiexec -n 4 ./ring */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, token = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    double start = MPI_Wtime();
    if (rank == 0) {
        MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
        MPI_Recv(&token, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("The token came round %d ranks in %.1f us and holds %d (%d expected)\n", size,
               (MPI_Wtime() - start) * 1e6, token, size * (size - 1) / 2);
    } else {
        MPI_Recv(&token, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        token += rank;
        MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
    }
    int wrong = rank == 0 && token != size * (size - 1) / 2;
    MPI_Finalize();
    return wrong;
}
