/* Rank 1 works on the memory of rank 0, and both end an epoch between fences: what a trace tells of windows. With an argument: three
   ranks, in reverse order in the window, of which the first and the last access each other's memory. */
#include <mpi.h>

static void groups(int rank) {
    int memory = 0, others[] = {rank, 1};
    MPI_Win win;
    MPI_Comm comm;
    MPI_Group all, some;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, comm, &win);
    MPI_Win_set_name(win, "reversed");
    MPI_Win_get_group(win, &all);
    if (rank == 1) others[0] = 0, others[1] = 2;
    MPI_Group_incl(all, 2, others, &some);
    MPI_Win_post(some, 0, win);
    MPI_Win_start(some, 0, win);
    if (rank != 1) MPI_Put(&rank, 1, MPI_INT, rank, 0, 1, MPI_INT, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    MPI_Group_free(&all);
    MPI_Group_free(&some);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    double memory[8] = {0}, mine[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int rank;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1) {
        groups(rank);
        MPI_Finalize();
        return 0;
    }
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
