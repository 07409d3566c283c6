// run: n=2 timeout=120 abi=one
// MPI_THREAD_MULTIPLE: eight threads each way, every thread with its own tag, own communicator, or all with the same;
// blocking, waiting for any, and probing.
#include "check.h"
#include <pthread.h>

#define THREADS 8
#define ROUNDS 400
static MPI_Comm comms[THREADS];
static int kind;
static pthread_mutex_t fault = PTHREAD_MUTEX_INITIALIZER;

#define TCHECK(c) do { if (!(c)) { pthread_mutex_lock(&fault); FAILED("kind %d: %s", kind, #c); pthread_mutex_unlock(&fault); } } while (0)

static void *own_tag(void *arg) {
    int t = (int)(intptr_t)arg, peer = check_rank ^ 1, i;
    MPI_Comm comm = kind == 1 ? comms[t] : MPI_COMM_WORLD;
    int tag = kind == 1 ? 5 : t;
    for (i = 0; i < ROUNDS; i++) {
        int out[3] = {t, i, check_rank}, in[3] = {-1, -1, -1};
        MPI_Status s;
        if ((t + check_rank) % 2) {
            MPI_Send(out, 3, MPI_INT, peer, tag, comm);
            MPI_Recv(in, 3, MPI_INT, peer, tag, comm, &s);
        } else {
            MPI_Recv(in, 3, MPI_INT, peer, tag, comm, &s);
            MPI_Send(out, 3, MPI_INT, peer, tag, comm);
        }
        TCHECK(in[0] == t && in[1] == i && in[2] == peer);
    }
    return NULL;
}

// Large and small requests at once, completed in any order.
static void *many(void *arg) {
    int t = (int)(intptr_t)arg, peer = check_rank ^ 1, i, k, index;
    enum { N = 8 };
    char *in[N], *out[N];
    for (k = 0; k < N; k++) in[k] = malloc(200000), out[k] = malloc(200000);
    for (i = 0; i < 12; i++) {
        MPI_Request r[2 * N];
        int n[N];
        for (k = 0; k < N; k++) {
            n[k] = k % 3 == 0 ? 200000 : k % 3 == 1 ? 5000 : 16;
            fill(out[k], n[k], t * 1000 + i * 10 + k);
            MPI_Irecv(in[k], n[k], MPI_BYTE, peer, t * 100 + k, MPI_COMM_WORLD, &r[k]);
        }
        for (k = 0; k < N; k++) MPI_Isend(out[k], n[k], MPI_BYTE, peer, t * 100 + k, MPI_COMM_WORLD, &r[N + k]);
        for (k = 0; k < 2 * N; k++) {
            MPI_Waitany(2 * N, r, &index, MPI_STATUS_IGNORE);
            TCHECK(index >= 0 && index < 2 * N);
            if (index >= 0 && index < N) TCHECK(differs(in[index], n[index], t * 1000 + i * 10 + index) == -1);
        }
    }
    for (k = 0; k < N; k++) free(in[k]), free(out[k]);
    return NULL;
}

// Everybody sends with the same tag; matched probe gives every message to exactly one thread.
static int got[THREADS * ROUNDS];
static void *shared(void *arg) {
    int t = (int)(intptr_t)arg, peer = check_rank ^ 1, i;
    for (i = 0; i < ROUNDS; i++) {
        int out = t * ROUNDS + i, in = -1;
        MPI_Message m;
        MPI_Status s;
        MPI_Send(&out, 1, MPI_INT, peer, 7, MPI_COMM_WORLD);
        MPI_Mprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &m, &s);
        MPI_Mrecv(&in, 1, MPI_INT, &m, &s);
        TCHECK(in >= 0 && in < THREADS * ROUNDS);
        if (in >= 0 && in < THREADS * ROUNDS) {
            pthread_mutex_lock(&fault);
            got[in]++;
            pthread_mutex_unlock(&fault);
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    void *(*work[])(void *) = {own_tag, own_tag, many, shared};
    pthread_t th[THREADS];
    int t;
    for (t = 0; t < THREADS; t++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    for (kind = 0; kind < 4; kind++) {
        for (t = 0; t < THREADS; t++) pthread_create(&th[t], NULL, work[kind], (void *)(intptr_t)t);
        for (t = 0; t < THREADS; t++) pthread_join(th[t], NULL);
        meet();
    }
    for (t = 0; t < THREADS * ROUNDS; t++)
        if (got[t] != 1) { FAILED("message %d was received %d times", t, got[t]); break; }
    for (t = 0; t < THREADS; t++) MPI_Comm_free(&comms[t]);
    return check_end();
}
