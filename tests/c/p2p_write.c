// run: n=2,4 timeout=120 abi=one
/* Where receives are posted before their long messages are sent, nine of ten at least are written: the announcement of the receive
 * takes the place of the handshake. "Before" is by construction: a barrier or a short message follows the posting. In
 * collectives most are written whichever side is first, but what waited for 10 ms. Over
 * shared memory long messages are fetched instead, so there only the data is checked. The counters' names are Kittiwake's
 * own, so other libraries check the data alone, too. */
#include "check.h"

#define LONG 1000000
#define ROUNDS 20
#define MOST 8

static MPI_T_pvar_session session;
static MPI_T_pvar_handle written, asked, fetched;
static int counts; /* whether writes are counted */

static MPI_T_pvar_handle counter(const char *name) {
    MPI_T_pvar_handle h = MPI_T_PVAR_HANDLE_NULL;
    int index = -1, n = 0;
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS) {
        counts = 0;
        return h;
    }
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &h, &n));
    OK(MPI_T_pvar_start(session, h));
    return h;
}

static unsigned long long value(MPI_T_pvar_handle h) {
    unsigned long long v = 0;
    OK(MPI_T_pvar_read(session, h, &v));
    return v;
}

/* Long messages of all ranks since the last call: whether so many of a hundred were written. */
static void tally(const char *what, unsigned least) {
    static unsigned long long before[2];
    unsigned long long now[2], mine[2], all[2];
    int i;
    if (!counts) return;
    now[0] = value(written);
    now[1] = now[0] + value(asked) + value(fetched);
    for (i = 0; i < 2; i++) mine[i] = now[i] - before[i], before[i] = now[i];
    MPI_Allreduce(mine, all, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, check_comm);
    if (getenv("SHOW") && check_rank == 0) printf("%s: %llu of %llu\n", what, all[0], all[1]);
    if (least) CHECK(all[1] >= ROUNDS);
    if (check_rank == 0 && all[0] * 100 < all[1] * least)
        FAILED("%s: %llu of %llu long messages were written", what, all[0], all[1]);
}

/* A receive, and a message that is sent when the receiver has said in another one that it is posted. */
static void one_way(MPI_Comm comm, MPI_Comm word, char *buf) {
    int round;
    for (round = 0; round < ROUNDS; round++) {
        MPI_Request r;
        if (check_rank == 1) {
            MPI_Irecv(buf, LONG, MPI_BYTE, 0, 1, comm, &r);
            MPI_Send(NULL, 0, MPI_BYTE, 0, 2, word);
            MPI_Wait(&r, MPI_STATUS_IGNORE);
            CHECK_EQ(differs(buf, LONG, round), -1);
        } else if (check_rank == 0) {
            fill(buf, LONG, round);
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, word, MPI_STATUS_IGNORE);
            MPI_Send(buf, LONG, MPI_BYTE, 1, 1, comm);
        }
    }
}

/* To and fro between pairs: each posts the receive of the answer before it sends. */
static void ping_pong(char *out, char *in) {
    int round, other = check_rank ^ 1;
    MPI_Request r;
    for (round = 0; round < ROUNDS; round++) {
        MPI_Irecv(in, LONG, MPI_BYTE, other, 1, check_comm, &r);
        MPI_Barrier(check_comm);
        fill(out, LONG, 10 * round + check_rank);
        if (check_rank % 2 == 0) MPI_Send(out, LONG, MPI_BYTE, other, 1, check_comm);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        CHECK_EQ(differs(in, LONG, 10 * round + other), -1);
        if (check_rank % 2 == 1) MPI_Send(out, LONG, MPI_BYTE, other, 1, check_comm);
    }
}

/* Both neighbours at once; short messages of the same tag pass on another communicator, and of another tag on this. */
static void halo(MPI_Comm words, char *out, char *in, char *in2) {
    int round, left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size, k;
    for (round = 0; round < ROUNDS; round++) {
        MPI_Request r[4];
        int said[2] = {-1, -1};
        MPI_Irecv(in, LONG, MPI_BYTE, left, 1, check_comm, &r[0]);
        MPI_Irecv(in2, LONG, MPI_BYTE, right, 3, check_comm, &r[1]);
        MPI_Barrier(check_comm);
        MPI_Sendrecv(&round, 1, MPI_INT, right, 1, &said[0], 1, MPI_INT, left, 1, words, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&round, 1, MPI_INT, right, 2, &said[1], 1, MPI_INT, left, 2, check_comm, MPI_STATUS_IGNORE);
        fill(out, LONG, 10 * round + check_rank);
        MPI_Isend(out, LONG, MPI_BYTE, right, 1, check_comm, &r[2]);
        MPI_Isend(out, LONG, MPI_BYTE, left, 3, check_comm, &r[3]);
        MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
        for (k = 0; k < 2; k++) CHECK_EQ(said[k], round);
        CHECK_EQ(differs(in, LONG, 10 * round + left), -1);
        CHECK_EQ(differs(in2, LONG, 10 * round + right), -1);
    }
}

/* Every rank begins when its predecessor has, so half of the messages, or more, have their receives posted later. Collectives
 * need not offer those: the announcement is sure to come. */
static void alltoall(char *out, char *in) {
    int round, k;
    for (round = 0; round < ROUNDS; round++) {
        MPI_Request r;
        for (k = 0; k < check_size; k++) fill(out + (size_t)k * LONG, LONG, round + 10 * check_rank + k);
        MPI_Barrier(check_comm);
        if (check_rank) MPI_Recv(NULL, 0, MPI_BYTE, check_rank - 1, 5, check_comm, MPI_STATUS_IGNORE);
        MPI_Ialltoall(out, LONG, MPI_BYTE, in, LONG, MPI_BYTE, check_comm, &r);
        if (check_rank + 1 < check_size) MPI_Send(NULL, 0, MPI_BYTE, check_rank + 1, 5, check_comm);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        for (k = 0; k < check_size; k++)
            CHECK_EQ(differs(in + (size_t)k * LONG, LONG, round + 10 * k + check_rank), -1);
    }
}

/* Of receives with one tag, some are cancelled after they were announced, and short and synchronous messages come between:
 * order is order. */
static void cancelled(char *buf) {
    enum { N = 6 };
    int round, i, flag;
    for (round = 0; round < ROUNDS && check_rank < 2; round++) {
        MPI_Request r[N + 1];
        MPI_Status s;
        if (check_rank == 1) {
            for (i = 0; i <= N; i++) MPI_Irecv(buf + i * LONG, LONG, MPI_BYTE, 0, 1, check_comm, &r[i]);
            MPI_Cancel(&r[round % N]);
            MPI_Wait(&r[round % N], &s);
            MPI_Test_cancelled(&s, &flag);
            CHECK(flag || round % 2 == 0);
            if (!flag) MPI_Cancel(&r[N]);
            MPI_Send(NULL, 0, MPI_BYTE, 0, 2, check_comm);
            for (i = 0; i <= N; i++) MPI_Wait(&r[i], MPI_STATUS_IGNORE);
            for (i = 0; i < N; i++) {
                int at = i + (flag && i >= round % N);
                CHECK_EQ(differs(buf + at * LONG, i % 3 == 1 ? 10 : LONG, round + i), -1);
            }
        } else {
            if (round % 2) MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, check_comm, MPI_STATUS_IGNORE);
            for (i = 0; i < N; i++) {
                fill(buf + i * LONG, LONG, round + i);
                if (i % 3 == 2)
                    MPI_Issend(buf + i * LONG, LONG, MPI_BYTE, 1, 1, check_comm, &r[i]);
                else
                    MPI_Isend(buf + i * LONG, i % 3 == 1 ? 10 : LONG, MPI_BYTE, 1, 1, check_comm, &r[i]);
            }
            if (round % 2 == 0) MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, check_comm, MPI_STATUS_IGNORE);
            MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
        }
    }
}

int main(int argc, char **argv) {
    int provided;
    const char *paths = getenv("KW_PATHS");
    /* Where memory is fast, the line measured there may be beyond LONG. */
    setenv("KW_EAGER_TCP", "64K", 1);
    setenv("KW_EAGER_UDP", "64K", 1);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    char *out = malloc((size_t)MOST * LONG), *in = malloc((size_t)MOST * LONG);
    MPI_Comm other;
    OK(MPI_T_pvar_session_create(&session));
    MPI_Comm_dup(check_comm, &other);
    counts = paths && !strstr(paths, "shm");
    written = counter("write_sent"), asked = counter("rndv_sent"), fetched = counter("get_sent");
    if (check_rank == 0) MPI_Send(NULL, 0, MPI_BYTE, 1, 9, check_comm); /* the way is known */
    if (check_rank == 1) MPI_Recv(NULL, 0, MPI_BYTE, 0, 9, check_comm, MPI_STATUS_IGNORE);
    tally("before", 0);
    one_way(check_comm, check_comm, in);
    tally("one way", 90);
    one_way(check_comm, other, in);
    tally("one way, two communicators", 90);
    ping_pong(out, in);
    tally("ping-pong", 90);
    halo(other, out, in, in + LONG);
    tally("halo", 90);
    alltoall(out, in);
    tally("alltoall", 70);
    cancelled(in);
    MPI_Comm_free(&other);
    MPI_T_pvar_session_free(&session);
    free(out), free(in);
    check_end();
    MPI_T_finalize();
    return check_failed != 0;
}
