// run: n=3 timeout=60 abi=one
/* MPI_THREAD_MULTIPLE, more threads than processors that all exchange with other ranks at once: whichever polls for the others
 * ends its own wait and calls one of them to go on polling. That one gets no processor for a while, because threads of the
 * program that wait for each other outside MPI keep them all; the event thread, which looks every 10 us, must leave it the
 * role. A thread that no other polls for hangs for good. */
#include "check.h"
#include <pthread.h>

#define THREADS 6
#define ROUNDS 8000
#define BYTES 4096

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER, fault = PTHREAD_MUTEX_INITIALIZER;
static int inside, phase;

// No thread sleeps here, so the processors stay busy.
static void gather(void) {
    int before, now, looks = 0;
    pthread_mutex_lock(&turn);
    before = phase;
    if (++inside == THREADS) inside = 0, phase++;
    pthread_mutex_unlock(&turn);
    do {
        pthread_mutex_lock(&turn);
        now = phase;
        pthread_mutex_unlock(&turn);
        if (++looks % 64 == 0) sched_yield();
    } while (now == before);
}

// With rank `t % size`, which does the same with us in its thread of the same block.
static void *work(void *arg) {
    int t = (int)(intptr_t)arg, peer = t % check_size, block = t - peer, i;
    char *in = malloc(BYTES), *out = malloc(BYTES);
    for (i = 0; i < ROUNDS; i++) {
        MPI_Request r[2];
        fill(out, BYTES, check_rank * 1000 + i);
        gather();
        MPI_Isend(out, BYTES, MPI_BYTE, peer, 10 * i + block, MPI_COMM_WORLD, &r[0]);
        MPI_Irecv(in, BYTES, MPI_BYTE, peer, 10 * i + block, MPI_COMM_WORLD, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        if (differs(in, BYTES, peer * 1000 + i) != -1) {
            pthread_mutex_lock(&fault);
            FAILED("round %d of thread %d: wrong data", i, t);
            pthread_mutex_unlock(&fault);
        }
    }
    free(in), free(out);
    return NULL;
}

static void look_often(void) {
    int index, count;
    MPI_Count us = 10;
    MPI_T_cvar_handle h;
    OK(MPI_T_cvar_get_index("KW_WATCH", &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &h, &count));
    OK(MPI_T_cvar_write(h, &us));
    OK(MPI_T_cvar_handle_free(&h));
}

int main(int argc, char **argv) {
    pthread_t th[THREADS];
    int t, level;
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &level);
    if (STRICT) look_often();
    meet();
    for (t = 0; t < THREADS; t++) pthread_create(&th[t], NULL, work, (void *)(intptr_t)t);
    for (t = 0; t < THREADS; t++) pthread_join(th[t], NULL);
    meet();
    MPI_T_finalize();
    return check_end();
}
