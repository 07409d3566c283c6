// run: n=2 timeout=240 abi=one
/* MPI_THREAD_MULTIPLE, eight threads that complete their requests in every way there is, between pauses of any length: what ends a wait comes from
 * the other process, from another thread's send to this process, or from another thread that completes a generalized request. A wake-up
 * that gets lost hangs a thread for good, or costs a second and is counted. */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

#define THREADS 8
#define ROUNDS 300
#define MOST 5 // requests of a round: large and small from afar, one from the next thread, a generalized one, an own send
#define LARGE 100000

static pthread_mutex_t fault = PTHREAD_MUTEX_INITIALIZER;
static MPI_Request promised[THREADS][ROUNDS];
static volatile int is_promised[THREADS][ROUNDS];

#define TCHECK(c) do { if (!(c)) { pthread_mutex_lock(&fault); FAILED("%s", #c); pthread_mutex_unlock(&fault); } } while (0)

static int query(void *x, MPI_Status *s) {
    MPI_Status_set_elements(s, MPI_INT, 0);
    MPI_Status_set_cancelled(s, 0);
    s->MPI_SOURCE = MPI_UNDEFINED;
    s->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}
static int nothing(void *x) { return MPI_SUCCESS; }
static int no_cancel(void *x, int complete) { return MPI_SUCCESS; }

// Not at all, shorter than a wait spins, or longer.
static void rest(uint64_t *seed) {
    static const int us[] = {0, 0, 20, 90, 400};
    int n = us[rnd(seed) % 5];
    if (n) usleep(n);
}

static void one_by_one(MPI_Request r[MOST]) {
    int i;
    for (i = MOST - 1; i >= 0; i--) MPI_Wait(&r[i], MPI_STATUS_IGNORE);
}

static void any(MPI_Request r[MOST]) {
    int i, index;
    for (i = 0; i < MOST; i++) {
        MPI_Waitany(MOST, r, &index, MPI_STATUS_IGNORE);
        TCHECK(index >= 0 && index < MOST);
    }
}

static void some(MPI_Request r[MOST]) {
    int left = MOST, count, indices[MOST];
    while (left > 0) {
        MPI_Waitsome(MOST, r, &count, indices, MPI_STATUSES_IGNORE);
        TCHECK(count > 0 && count <= left);
        left -= count;
    }
}

static void test_any(MPI_Request r[MOST]) {
    int left = MOST, index, flag;
    while (left > 0) {
        MPI_Testany(MOST, r, &index, &flag, MPI_STATUS_IGNORE);
        left -= flag;
        if (!flag) sched_yield();
    }
}

static void test_some(MPI_Request r[MOST]) {
    int left = MOST, count, indices[MOST];
    while (left > 0) {
        MPI_Testsome(MOST, r, &count, indices, MPI_STATUSES_IGNORE);
        left -= count;
        if (!count) sched_yield();
    }
}

static void test_all(MPI_Request r[MOST]) {
    int flag = 0;
    while (!flag) {
        MPI_Testall(MOST, r, &flag, MPI_STATUSES_IGNORE);
        if (!flag) usleep(30);
    }
}

static void all(MPI_Request r[MOST]) { MPI_Waitall(MOST, r, MPI_STATUSES_IGNORE); }

static void (*const ways[])(MPI_Request[MOST]) = {one_by_one, any, some, test_any, test_some, test_all, all};

// Completes what the thread before this one has promised.
static void keep_promise(int t, int i) {
    int before = (t + THREADS - 1) % THREADS;
    while (!__atomic_load_n(&is_promised[before][i], __ATOMIC_ACQUIRE)) usleep(20);
    MPI_Grequest_complete(promised[before][i]);
}

static void *work(void *arg) {
    int t = (int)(intptr_t)arg, peer = check_rank ^ 1, i, next = (t + 1) % THREADS;
    uint64_t seed = 1000 * check_rank + t;
    char *in = malloc(LARGE), *out = malloc(LARGE);
    memset(out, t, LARGE);
    for (i = 0; i < ROUNDS; i++) {
        int small = -1, near = -1, mine = 100 * t + i, n = rnd(&seed) % 2 ? LARGE : 3000;
        MPI_Request r[MOST], to_next;
        in[0] = in[n - 1] = 77;
        MPI_Irecv(in, LARGE, MPI_BYTE, peer, 10 + t, MPI_COMM_WORLD, &r[0]);
        MPI_Irecv(&small, 1, MPI_INT, peer, 30 + t, MPI_COMM_WORLD, &r[1]);
        MPI_Irecv(&near, 1, MPI_INT, check_rank, 50 + t, MPI_COMM_WORLD, &r[2]);
        MPI_Grequest_start(query, nothing, no_cancel, NULL, &promised[t][i]);
        r[3] = promised[t][i];
        __atomic_store_n(&is_promised[t][i], 1, __ATOMIC_RELEASE);
        rest(&seed);
        MPI_Isend(out, n, MPI_BYTE, peer, 10 + t, MPI_COMM_WORLD, &r[4]);
        rest(&seed);
        MPI_Send(&mine, 1, MPI_INT, peer, 30 + t, MPI_COMM_WORLD);
        MPI_Isend(&mine, 1, MPI_INT, check_rank, 50 + next, MPI_COMM_WORLD, &to_next);
        keep_promise(t, i);
        ways[rnd(&seed) % 7](r);
        MPI_Wait(&to_next, MPI_STATUS_IGNORE);
        TCHECK(small == mine && near == 100 * ((t + THREADS - 1) % THREADS) + i);
        TCHECK(in[0] == t);
    }
    free(in), free(out);
    return NULL;
}

static void spin(const char *us) {
    int index, count;
    MPI_Count value = atoi(us);
    MPI_T_cvar_handle h;
    OK(MPI_T_cvar_get_index("KW_SPIN", &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &h, &count));
    OK(MPI_T_cvar_write(h, &value));
    OK(MPI_T_cvar_handle_free(&h));
}

int main(int argc, char **argv) {
    pthread_t th[THREADS];
    int t, round, index, count, level;
    unsigned long long lost = 0;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle h = MPI_T_PVAR_HANDLE_NULL;
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &level);
    MPI_T_pvar_session_create(&session);
    if (STRICT) {
        OK(MPI_T_pvar_get_index("wakeups_lost", MPI_T_PVAR_CLASS_COUNTER, &index));
        OK(MPI_T_pvar_handle_alloc(session, index, NULL, &h, &count));
        OK(MPI_T_pvar_start(session, h));
    }
    for (round = 0; round < 2; round++) {
        memset((void *)is_promised, 0, sizeof is_promised);
        meet();
        for (t = 0; t < THREADS; t++) pthread_create(&th[t], NULL, work, (void *)(intptr_t)t);
        for (t = 0; t < THREADS; t++) pthread_join(th[t], NULL);
        meet();
        if (STRICT) spin("0"); // the second time every wait sleeps at once
    }
    if (STRICT) {
        OK(MPI_T_pvar_read(session, h, &lost));
        CHECK_EQ(lost, 0);
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return check_end();
}
