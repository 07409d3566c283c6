/* Operations on memory of MPI_Win_create, over shared memory, without an event thread: the first one after MPI_Win_lock_all leaves
   when it is issued, so its target sees it although the origin makes no further call; and a local flush does not wait for a target
   that makes none. */
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { PUT, FETCH, LOCAL, PLACES };

static atomic_int *steps; /* of rank 0's shared memory: what has been reached */
static volatile long memory[PLACES];

/* Without a call of MPI; whether it is reached within a minute. */
static int reached(int step) {
    for (time_t end = time(NULL) + 60; time(NULL) < end;)
        if (atomic_load(&steps[step])) return 1;
    printf("leaves: step %d is not reached\n", step);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 0;
}

static void origin(MPI_Win win) {
    long one = 1, got = -1;
    MPI_Win_lock_all(0, win);
    MPI_Put(&one, 1, MPI_LONG, 1, LOCAL, 1, MPI_LONG, win);
    MPI_Win_flush_local(1, win);
    atomic_store(&steps[LOCAL], 1);
    MPI_Win_flush(1, win);
    MPI_Put(&one, 1, MPI_LONG, 1, PUT, 1, MPI_LONG, win);
    reached(PUT);
    MPI_Win_flush(1, win);
    MPI_Fetch_and_op(&one, &got, MPI_LONG, 1, FETCH, MPI_SUM, win);
    reached(FETCH);
    MPI_Win_unlock_all(win);
    if (got == 0) printf("leaves: ok\n");
}

static void target(void) {
    int flag;
    reached(LOCAL);
    for (int place = PUT; place <= FETCH; place++) {
        while (memory[place] == 0)
            MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        atomic_store(&steps[place], 1);
    }
}

int main(int argc, char **argv) {
    MPI_Win win, shared;
    MPI_Aint size;
    int rank, unit;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    size = rank == 0 ? PLACES * (MPI_Aint)sizeof *steps : 0;
    MPI_Win_allocate_shared(size, sizeof *steps, MPI_INFO_NULL, MPI_COMM_WORLD, &steps, &shared);
    MPI_Win_shared_query(shared, 0, &size, &unit, &steps);
    MPI_Win_create((void *)memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (rank == 0) origin(win);
    else target();
    MPI_Win_free(&win);
    MPI_Win_free(&shared);
    MPI_Finalize();
    return 0;
}
