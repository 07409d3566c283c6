/* A rank that repeats calls on its own memory until another rank changes it, without an event thread: the calls end at once, and
   still see what the other rank has sent. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { PLACES = 8 };

/* Repeats MPI_Compare_and_swap and MPI_Win_flush until a place is set; a minute at most. */
static void wait_for(int place, MPI_Win win) {
    long one = 1, two = 2, found;
    time_t end = time(NULL) + 60;
    do {
        MPI_Compare_and_swap(&two, &one, &found, MPI_LONG, 0, place, win);
        MPI_Win_flush(0, win);
        if (time(NULL) < end) continue;
        printf("spins: place %d is not reached\n", place);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);
    } while (found == 0);
}

int main(int argc, char **argv) {
    long *memory, one = 1;
    int rank;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(PLACES * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    for (int place = 0; place < PLACES; place++) memory[place] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int place = 0; place < PLACES; place++) {
        if (rank == 0) {
            wait_for(place, win);
            if (place % 3 == 0) MPI_Win_sync(win); /* so that a call has an even number in one row, and an odd one in another */
        } else {
            MPI_Put(&one, 1, MPI_LONG, 0, place, 1, MPI_LONG, win);
            MPI_Win_flush(0, win);
        }
    }
    MPI_Win_unlock_all(win);
    if (rank == 0) printf("spins: ok\n");
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
