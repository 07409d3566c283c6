/* Threads make communicators at once, in an order that differs from process to process; no thread waits for ever. */
// run: n=2,4 timeout=120 abi=one
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

/* Threads that have no parent at all are told apart by their strings. */
static void *founder(void *arg) {
    int t = (int)(intptr_t)arg, odd = check_rank % 2, n = check_size, size;
    int range[2][3] = {{0, n - 1, 2}, {1, n - 1, 2}};
    char tag[32];
    MPI_Group all, half[2];
    MPI_Comm c;
    snprintf(tag, sizeof tag, "org.kittiwake.thread.%d", t);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    for (int i = 0; i < 2; i++) OK(MPI_Group_range_incl(all, 1, &range[i], &half[i]));
    for (int i = 0; i < ROUNDS / 2; i++) {
        OK(MPI_Comm_create_from_group(all, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &c));
        ring(c);
        OK(MPI_Comm_free(&c));
        OK(MPI_Intercomm_create_from_groups(half[odd], 0, half[!odd], 0, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &c));
        /* What collectives, duplicates and parts of it are, other threads do to theirs at once. */
        int mine = 10 * t + odd, theirs = -1;
        MPI_Comm d;
        OK(MPI_Allreduce(&mine, &theirs, 1, MPI_INT, MPI_MAX, c));
        CHECK_EQ(theirs, 10 * t + !odd);
        OK(MPI_Comm_split(c, 0, -check_rank, &d));
        OK(MPI_Barrier(d));
        OK(MPI_Comm_free(&d));
        OK(MPI_Intercomm_merge(c, odd, &d));
        OK(MPI_Comm_size(d, &size));
        CHECK_EQ(size, n);
        ring(d);
        OK(MPI_Comm_free(&d));
        OK(MPI_Comm_free(&c));
    }
    for (int i = 0; i < 2; i++) OK(MPI_Group_free(&half[i]));
    OK(MPI_Group_free(&all));
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
    all(founder);
    crossed();
    for (int i = 0; i < THREADS; i++) OK(MPI_Comm_free(&own[i]));
    return check_end();
}
