/* Threads make communicators at once, in an order that differs from process to process; nobody waits for ever. */
// run: n=2,4 timeout=120
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 50 };
static MPI_Comm own[THREADS];

static void ring(MPI_Comm c) {
    int rank, size, got = -1;
    OK(MPI_Comm_rank(c, &rank));
    OK(MPI_Comm_size(c, &size));
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, right, 1, &got, 1, MPI_INT, left, 1, c, MPI_STATUS_IGNORE));
    CHECK_EQ(got, left);
}

static void *maker(void *arg) {
    int t = (int)(intptr_t)arg;
    MPI_Comm c;
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Comm_dup(own[t], &c));
        ring(c);
        OK(MPI_Comm_free(&c));
        OK(MPI_Comm_split(own[t], check_rank % 2, check_rank, &c));
        ring(c);
        OK(MPI_Comm_free(&c));
    }
    return NULL;
}

/* Threads that share a parent are told apart by their tags. */
static void *grouper(void *arg) {
    int t = (int)(intptr_t)arg;
    MPI_Group g;
    MPI_Comm c;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &g));
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, g, 100 + t, &c));
        ring(c);
        OK(MPI_Comm_free(&c));
    }
    OK(MPI_Group_free(&g));
    return NULL;
}

static void *one_dup(void *arg) {
    MPI_Comm c;
    OK(MPI_Comm_dup(*(MPI_Comm *)arg, &c));
    OK(MPI_Comm_free(&c));
    return NULL;
}

/* Rank 0 duplicates two communicators in two threads; the others one after the other, in orders of their own. */
static void crossed(void) {
    for (int i = 0; i < ROUNDS; i++) {
        if (check_rank == 0) {
            pthread_t a, b;
            pthread_create(&a, NULL, one_dup, &own[0]);
            pthread_create(&b, NULL, one_dup, &own[1]);
            pthread_join(a, NULL);
            pthread_join(b, NULL);
        } else {
            one_dup(&own[i % 2]);
            one_dup(&own[1 - i % 2]);
        }
    }
}

static void all(void *(*f)(void *)) {
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, f, (void *)(intptr_t)((i + check_rank) % THREADS));
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (int i = 0; i < THREADS; i++) OK(MPI_Comm_dup(MPI_COMM_WORLD, &own[i]));
    all(maker);
    all(grouper);
    crossed();
    for (int i = 0; i < THREADS; i++) OK(MPI_Comm_free(&own[i]));
    return check_end();
}
