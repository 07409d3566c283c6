/* A child made with fork calls MPI: it is told so and ends; its parent goes on. */
#include <mpi.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, size, got = -1, status = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("a line\n");
    pid_t child = fork();
    if (child == 0) {
        /* for it MPI is over, so that what finalises at the end of a program leaves it alone */
        int up = 0, over = 0;
        MPI_Initialized(&up);
        MPI_Finalized(&over);
        if (!up || !over) _exit(0);
        MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD);
        _exit(0);
    }
    waitpid(child, &status, 0);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 1, &got, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Finalize();
    return !(WIFEXITED(status) && WEXITSTATUS(status) != 0 && got == (rank + size - 1) % size);
}
