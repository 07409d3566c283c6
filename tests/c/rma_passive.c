// run: n=2,3 timeout=60
/* A target that computes and calls nothing of MPI: locks of its memory are given, operations on it end, and it sees them
 * (MPI 5.0, 12.5.3 and 12.7). */
#include "rma.h"

/* Rank 0 looks at its memory and makes no call until all others have said, in that memory, that they are through. */
static void served(MPI_Win win, volatile long *memory) {
    long one = 1, value = 0, got = 0;
    if (check_rank == 0) {
        while (memory[1] != check_size - 1)
            ;
        CHECK_EQ(memory[0], 100 * (check_size - 1));
    } else {
        for (int i = 0; i < 100; i++) {
            OK(MPI_Win_lock(i % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win));
            OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
            OK(MPI_Get(&got, 1, MPI_LONG, 0, 2, 1, MPI_LONG, win));
            OK(MPI_Win_unlock(0, win));
            CHECK_EQ(got, 42);
        }
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        OK(MPI_Fetch_and_op(&one, &value, MPI_LONG, 0, 1, MPI_SUM, win));
        OK(MPI_Win_unlock(0, win));
        CHECK(value >= 0 && value < check_size - 1);
    }
}

int main(int argc, char **argv) {
    long *memory, own[3] = {0, 0, 42};
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Win win = win_allocated(check_comm, &memory, sizeof own, sizeof *own);
    memcpy(memory, own, sizeof own);
    MPI_Barrier(check_comm);
    served(win, memory);
    win_free(&win);
    win = win_of(check_comm, own, sizeof own, sizeof *own);
    MPI_Barrier(check_comm);
    served(win, own);
    win_free(&win);
    return check_end();
}
