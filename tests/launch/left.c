/* Rank 0 finalizes, and exits with the status that is told (0), while the others wait for it, in the way that is told. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static void wait_for_rank_0(const char *how) {
    int x = 0, y, flag = 0;
    MPI_Request r;
    if (!strcmp(how, "collective")) MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!strcmp(how, "receive")) MPI_Recv(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!strcmp(how, "iprobe"))
        while (!flag) MPI_Iprobe(0, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    if (!strcmp(how, "test")) {
        MPI_Irecv(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &r);
        while (!flag) MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank) wait_for_rank_0(argv[1]);
    MPI_Finalize();
    return rank || argc < 3 ? 0 : atoi(argv[2]);
}
