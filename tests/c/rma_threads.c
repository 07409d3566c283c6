// run: n=1,2 timeout=120 abi=one
/* Several threads of each rank use one window at once (MPI 5.0, 12.5.3, MPI_THREAD_MULTIPLE), and others send messages meanwhile. */
#include "rma.h"
#include <pthread.h>

enum { THREADS = 3, TIMES = 100 };

static MPI_Win win;
static long seen[2 * THREADS * TIMES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *count(void *arg) {
    long one = 1, old = -1;
    int thread = (int)(intptr_t)arg;
    for (int i = 0; i < TIMES; i++) {
        MPI_Request request;
        OK(MPI_Rget_accumulate(&one, 1, MPI_LONG, &old, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(old >= 0 && old < (long)check_size * THREADS * TIMES);
        pthread_mutex_lock(&mutex);
        if (old >= 0 && old < (long)check_size * THREADS * TIMES) seen[old]++;
        pthread_mutex_unlock(&mutex);
        OK(MPI_Accumulate(&one, 1, MPI_LONG, i % check_size, 1 + thread, 1, MPI_LONG, MPI_SUM, win));
        if (i % 10 == 0) OK(MPI_Win_flush_all(win));
    }
    return NULL;
}

static void *talk(void *arg) {
    (void)arg;
    for (int i = 0; i < TIMES; i++) {
        int got = -1, next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
        MPI_Sendrecv(&i, 1, MPI_INT, next, 7, &got, 1, MPI_INT, before, 7, check_comm, MPI_STATUS_IGNORE);
        CHECK_EQ(got, i);
    }
    return NULL;
}

static void together(long *memory) {
    pthread_t threads[THREADS + 1];
    memset(memory, 0, (1 + THREADS) * sizeof *memory);
    memset(seen, 0, sizeof seen);
    MPI_Barrier(check_comm);
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, count, (void *)(intptr_t)i);
    pthread_create(&threads[THREADS], NULL, talk, NULL);
    for (int i = 0; i <= THREADS; i++) pthread_join(threads[i], NULL);
    OK(MPI_Win_unlock_all(win));
    MPI_Allreduce(MPI_IN_PLACE, seen, check_size * THREADS * TIMES, MPI_LONG, MPI_SUM, check_comm);
    for (int i = 0; i < check_size * THREADS * TIMES; i++) CHECK_EQ(seen[i], 1);
    int mine = 0;
    for (int i = 0; i < TIMES; i++) mine += i % check_size == check_rank;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, win));
    for (int i = 0; i < THREADS; i++) CHECK_EQ(memory[1 + i], (long)check_size * mine);
    OK(MPI_Win_unlock(check_rank, win));
}

int main(int argc, char **argv) {
    long *memory, own[1 + THREADS];
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    win = win_allocated(check_comm, &memory, sizeof own, sizeof *own);
    together(memory);
    win_free(&win);
    win = win_of(check_comm, own, sizeof own, sizeof *own);
    together(own);
    win_free(&win);
    return check_end();
}
