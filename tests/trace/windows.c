/* Rank 1 works on the memory of rank 0, and both end an epoch between fences: what a trace tells of windows. */
#include <mpi.h>

int main(int argc, char **argv) {
    double memory[8] = {0}, mine[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int rank;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Put(mine, 3, MPI_DOUBLE, 0, 0, 3, MPI_DOUBLE, win);
        MPI_Accumulate(mine, 8, MPI_DOUBLE, 0, 0, 8, MPI_DOUBLE, MPI_SUM, win);
        MPI_Win_flush(0, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_fence(0, win);
    MPI_Get(mine, 2, MPI_DOUBLE, 1 - rank, 0, 2, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
