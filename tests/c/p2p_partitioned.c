// run: n=2 timeout=120
/* Partitioned communication (MPI 5.0, chapter 4): many operations, any tag, counts that differ between the sides, parts that
 * arrive one by one, restarts, threads, what must be refused. */
#include "check.h"
#include <pthread.h>

static int me, other;

static void word(int to) { MPI_Send(NULL, 0, MPI_BYTE, to, 77, check_comm); }
static void hear(int from) { MPI_Recv(NULL, 0, MPI_BYTE, from, 77, check_comm, MPI_STATUS_IGNORE); }

/* More operations with one peer and tag than fit into any few bits, all there at once and started in another order than
 * they were made. */
static void many(void) {
    enum { N = 1500 };
    static MPI_Request r[N];
    static int data[N];
    int i, k;
    for (i = 0; i < N; i++) {
        data[i] = me == 0 ? 7 * i : -1;
        if (me == 0) OK(MPI_Psend_init(&data[i], 1, 1, MPI_INT, 1, 5, check_comm, MPI_INFO_NULL, &r[i]));
        if (me == 1) OK(MPI_Precv_init(&data[i], 1, 1, MPI_INT, 0, 5, check_comm, MPI_INFO_NULL, &r[i]));
    }
    for (k = 0; k < N; k++) {
        i = me == 0 ? N - 1 - k : k;
        OK(MPI_Start(&r[i]));
        if (me == 0) OK(MPI_Pready(0, r[i]));
    }
    OK(MPI_Waitall(N, r, MPI_STATUSES_IGNORE));
    for (i = 0; i < N; i++) CHECK_EQ(data[i], 7 * i);
    for (i = 0; i < N; i++) OK(MPI_Request_free(&r[i]));
}

/* Tags up to the bound; receives made in another order; the status. */
static void tags(void) {
    int i, flag, *ub, data[4] = {-1, -1, -1, -1}, which[4];
    MPI_Request r[4];
    MPI_Status s;
    OK(MPI_Comm_get_attr(check_comm, MPI_TAG_UB, &ub, &flag));
    for (i = 0; i < 4; i++) {
        int k = me == 0 ? i : 3 - i, tag = (int[]){0, 1 << 20, *ub - 1, *ub}[k];
        which[i] = tag;
        data[i] = me == 0 ? tag ^ 0x55 : -1;
        if (me == 0) OK(MPI_Psend_init(&data[i], 1, 1, MPI_INT, 1, tag, check_comm, MPI_INFO_NULL, &r[i]));
        if (me == 1) OK(MPI_Precv_init(&data[i], 1, 1, MPI_INT, 0, tag, check_comm, MPI_INFO_NULL, &r[i]));
    }
    for (i = 0; i < 4; i++) {
        OK(MPI_Start(&r[i]));
        if (me == 0) OK(MPI_Pready(0, r[i]));
        OK(MPI_Wait(&r[i], &s));
        if (me == 1) {
            CHECK_EQ(data[i], which[i] ^ 0x55);
            CHECK_EQ(s.MPI_SOURCE, 0);
            CHECK_EQ(s.MPI_TAG, which[i]);
            CHECK_EQ(count_of(&s, MPI_INT), 1);
        } else
            CHECK_EQ(count_of(&s, MPI_INT), 0);
        OK(MPI_Request_free(&r[i]));
    }
}

/* Bytes of the receiving side's vector that lie in a row. */
#define RUN 50

/* Counts that differ, restarts, and data in a vector on the receiving side. */
static void shapes(int sends, int receives, int total, int by) {
    unsigned char *b = calloc(2, total);
    int round, i, n = me == 0 ? sends : receives;
    MPI_Datatype vector;
    MPI_Request r;
    MPI_Status s;
    MPI_Type_vector(total / receives / RUN, RUN, 2 * RUN, MPI_BYTE, &vector);
    MPI_Type_create_resized(vector, 0, 2 * (total / receives), &vector);
    MPI_Type_commit(&vector);
    if (me == 0)
        OK(MPI_Psend_init(b, n, total / n, MPI_BYTE, 1, 3, check_comm, MPI_INFO_NULL, &r));
    else
        OK(MPI_Precv_init(b, n, 1, vector, 0, 3, check_comm, MPI_INFO_NULL, &r));
    for (round = 0; round < 5; round++) {
        if (me == 0) fill(b, total, round);
        OK(MPI_Start(&r));
        if (me == 0) {
            if (round == 0)
                OK(MPI_Pready_range(0, n - 1, r));
            else if (round == 1) {
                int *list = malloc(n * sizeof *list);
                for (i = 0; i < n; i++) list[i] = n - 1 - i;
                OK(MPI_Pready_list(n, list, r));
                free(list);
            } else
                for (i = 0; i < n; i++) OK(MPI_Pready((i * by + round) % n, r));
        }
        OK(MPI_Wait(&r, &s));
        if (me == 1) {
            unsigned char *row = malloc(total);
            for (i = 0; i < total; i++) {
                int at = i / RUN * 2 * RUN + i % RUN;
                row[i] = b[at];
                CHECK(!b[at + RUN]);
            }
            CHECK_EQ(differs(row, total, round), -1);
            CHECK_EQ(count_of(&s, MPI_BYTE), total);
            free(row);
        }
    }
    OK(MPI_Request_free(&r));
    MPI_Type_free(&vector);
    free(b);
}

/* The parts that are ready arrive, and no others; nothing else is sent that could bring them. */
static void one_by_one(int bytes) {
    enum { N = 6 };
    static const int order[N] = {4, 0, 5, 2, 1, 3};
    char *b = malloc((size_t)N * bytes);
    int i, k, flag, done[2 * N] = {0}, receives = 2 * N;
    MPI_Request r;
    if (me == 0)
        OK(MPI_Psend_init(b, N, bytes, MPI_BYTE, 1, 8, check_comm, MPI_INFO_NULL, &r));
    else
        OK(MPI_Precv_init(b, receives, bytes / 2, MPI_BYTE, 0, 8, check_comm, MPI_INFO_NULL, &r));
    if (me == 1) {
        OK(MPI_Parrived(r, 0, &flag)); /* inactive */
        CHECK(flag);
    }
    OK(MPI_Start(&r));
    if (me == 0) fill(b, (size_t)N * bytes, 9);
    for (k = 0; k < N; k++) {
        if (me == 0) {
            OK(MPI_Pready(order[k], r));
            hear(1);
        } else {
            done[2 * order[k]] = done[2 * order[k] + 1] = 1;
            for (i = 2 * order[k]; i < 2 * order[k] + 2; i++)
                for (flag = 0; !flag;) OK(MPI_Parrived(r, i, &flag));
            for (i = 0; i < receives; i++) {
                OK(MPI_Parrived(r, i, &flag));
                CHECK_EQ(flag, done[i]);
            }
            OK(MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE));
            if (k < N - 1) CHECK(!flag);
            word(0);
        }
    }
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    if (me == 1) CHECK_EQ(differs(b, (size_t)N * bytes, 9), -1);
    OK(MPI_Request_free(&r));
    free(b);
}

/* Starts of one operation whose parts travel together, and others where the sender waits after the first part. */
static void in_turns(int bytes) {
    enum { N = 8, FIRST = 3 };
    char *b = malloc((size_t)N * bytes);
    int round, flag;
    MPI_Request r;
    if (me == 0)
        OK(MPI_Psend_init(b, N, bytes, MPI_BYTE, 1, 9, check_comm, MPI_INFO_NULL, &r));
    else
        OK(MPI_Precv_init(b, N, bytes, MPI_BYTE, 0, 9, check_comm, MPI_INFO_NULL, &r));
    for (round = 0; round < 5; round++) {
        OK(MPI_Start(&r));
        if (me == 0) {
            fill(b, (size_t)N * bytes, round);
            OK(MPI_Pready(FIRST, r));
            if (round % 2) hear(1);
            OK(MPI_Pready_range(FIRST + 1, N - 1, r));
            OK(MPI_Pready_range(0, FIRST - 1, r));
        } else if (round % 2) {
            for (flag = 0; !flag;) OK(MPI_Parrived(r, FIRST, &flag));
            word(0);
        }
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        if (me == 1) CHECK_EQ(differs(b, (size_t)N * bytes, round), -1);
    }
    OK(MPI_Request_free(&r));
    free(b);
}

/* A receive that is started before its send is made begins while its rank waits for something else. */
static void late_setup(void) {
    enum { BYTES = 1 << 20 };
    char *b = malloc(BYTES);
    MPI_Request r;
    if (me == 1) {
        OK(MPI_Precv_init(b, 4, BYTES / 4, MPI_BYTE, 0, 2, check_comm, MPI_INFO_NULL, &r));
        OK(MPI_Start(&r));
        word(0);
        hear(0); /* what the sender says when its send has ended */
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        CHECK_EQ(differs(b, BYTES, 4), -1);
    } else {
        hear(1);
        fill(b, BYTES, 4);
        OK(MPI_Psend_init(b, 16, BYTES / 16, MPI_BYTE, 1, 2, check_comm, MPI_INFO_NULL, &r));
        OK(MPI_Start(&r));
        OK(MPI_Pready_range(0, 15, r));
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        word(1);
    }
    OK(MPI_Request_free(&r));
    free(b);
}

/* A request may be freed before anything came of it, and while it goes on. */
static void freed(void) {
    int i, data[3] = {1, 2, 3};
    MPI_Request r[3];
    for (i = 0; i < 3; i++)
        if (me == 0)
            OK(MPI_Psend_init(&data[i], 1, 1, MPI_INT, 1, 4, check_comm, MPI_INFO_NULL, &r[i]));
        else {
            data[i] = 0;
            OK(MPI_Precv_init(&data[i], 1, 1, MPI_INT, 0, 4, check_comm, MPI_INFO_NULL, &r[i]));
        }
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Startall(2, r + 1));
    if (me == 0) OK(MPI_Pready(0, r[1]));
    if (me == 0) OK(MPI_Pready(0, r[2]));
    if (me == 0) OK(MPI_Request_free(&r[1]));
    if (me == 1) OK(MPI_Wait(&r[1], MPI_STATUS_IGNORE));
    OK(MPI_Wait(&r[2], MPI_STATUS_IGNORE));
    CHECK_EQ(data[1], 2);
    CHECK_EQ(data[2], 3);
    if (me == 1) OK(MPI_Request_free(&r[1]));
    OK(MPI_Request_free(&r[2]));
}

static MPI_Request shared;
static char *parts;

enum { THREADS = 4, EACH = 16, PART = 3000 };

static void *make_parts(void *arg) {
    int t = (int)(intptr_t)arg, i;
    for (i = 0; i < EACH; i++) {
        int p = i * THREADS + t;
        fill(parts + p * PART, PART, p);
        OK(MPI_Pready(p, shared));
    }
    return NULL;
}

/* Threads make the parts ready while another one waits for the end. */
static void threads(void) {
    int round, i;
    parts = malloc(THREADS * EACH * PART);
    if (me == 0)
        OK(MPI_Psend_init(parts, THREADS * EACH, PART, MPI_BYTE, 1, 6, check_comm, MPI_INFO_NULL, &shared));
    else
        OK(MPI_Precv_init(parts, THREADS * EACH, PART, MPI_BYTE, 0, 6, check_comm, MPI_INFO_NULL, &shared));
    for (round = 0; round < 20; round++) {
        pthread_t id[THREADS];
        if (me == 1) memset(parts, 0, THREADS * EACH * PART);
        OK(MPI_Start(&shared));
        if (me == 0)
            for (i = 0; i < THREADS; i++) pthread_create(&id[i], NULL, make_parts, (void *)(intptr_t)i);
        OK(MPI_Wait(&shared, MPI_STATUS_IGNORE));
        if (me == 0)
            for (i = 0; i < THREADS; i++) pthread_join(id[i], NULL);
        else
            for (i = 0; i < THREADS * EACH; i++) CHECK_EQ(differs(parts + i * PART, PART, i), -1);
    }
    OK(MPI_Request_free(&shared));
    free(parts);
}

static void refused(void) {
    int data[4] = {0}, flag, list[2] = {0, 9};
    MPI_Request r, q = MPI_REQUEST_NULL, plain;
    CHECK_CLASS(MPI_Psend_init(data, -1, 1, MPI_INT, other, 1, check_comm, MPI_INFO_NULL, &q), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Psend_init(data, 4, 1, MPI_INT, other, -1, check_comm, MPI_INFO_NULL, &q), MPI_ERR_TAG);
    CHECK_CLASS(MPI_Precv_init(data, 4, 1, MPI_INT, MPI_ANY_SOURCE, 1, check_comm, MPI_INFO_NULL, &q), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Precv_init(data, 4, 1, MPI_INT, other, MPI_ANY_TAG, check_comm, MPI_INFO_NULL, &q), MPI_ERR_TAG);
    /* the count is an MPI_Count, whose high half counts too */
    CHECK_CLASS(MPI_Psend_init(data, 4, -((MPI_Count)1 << 32), MPI_INT, other, 1, check_comm, MPI_INFO_NULL, &q), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Precv_init(data, 4, -((MPI_Count)1 << 32), MPI_INT, other, 1, check_comm, MPI_INFO_NULL, &q), MPI_ERR_COUNT);
    if (me == 0) {
        OK(MPI_Psend_init(data, 4, 1, MPI_INT, 1, 1, check_comm, MPI_INFO_NULL, &r));
        CHECK_CLASS(MPI_Pready(0, r), MPI_ERR_REQUEST); /* inactive */
        OK(MPI_Start(&r));
        CHECK_CLASS(MPI_Start(&r), MPI_ERR_REQUEST);
        OK(MPI_Pready(1, r));
        CHECK_CLASS(MPI_Pready(1, r), MPI_ERR_ARG);
        CHECK_CLASS(MPI_Pready(-1, r), MPI_ERR_ARG);
        CHECK_CLASS(MPI_Pready(4, r), MPI_ERR_ARG);
        CHECK_CLASS(MPI_Pready_range(3, 2, r), MPI_ERR_ARG);
        CHECK_CLASS(MPI_Pready_range(0, 1, r), MPI_ERR_ARG); /* 1 is ready; 0 stays as it was */
        CHECK_CLASS(MPI_Pready_list(-1, list, r), MPI_ERR_ARG);
        CHECK_CLASS(MPI_Pready_list(2, list, r), MPI_ERR_ARG); /* 0 becomes ready, 9 is none */
        CHECK_CLASS(MPI_Parrived(r, 0, &flag), MPI_ERR_REQUEST);
        OK(MPI_Pready_range(2, 3, r));
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        CHECK_CLASS(MPI_Pready(0, r), MPI_ERR_REQUEST);
    } else {
        OK(MPI_Precv_init(data, 4, 1, MPI_INT, 0, 1, check_comm, MPI_INFO_NULL, &r));
        CHECK_CLASS(MPI_Pready(0, r), MPI_ERR_REQUEST);
        CHECK_CLASS(MPI_Parrived(r, 4, &flag), MPI_ERR_ARG);
        CHECK_CLASS(MPI_Parrived(r, -1, &flag), MPI_ERR_ARG);
        OK(MPI_Start(&r));
        CHECK_CLASS(MPI_Pready(0, r), MPI_ERR_REQUEST);
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&r));
    OK(MPI_Send_init(data, 1, MPI_INT, other, 1, check_comm, &plain));
    CHECK_CLASS(MPI_Pready(0, plain), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Parrived(plain, 0, &flag), MPI_ERR_REQUEST);
    MPI_Request none = MPI_REQUEST_NULL; // 4.2.2: it has arrived
    flag = -1;
    OK(MPI_Parrived(none, 0, &flag));
    CHECK_EQ(flag, 1);
    OK(MPI_Request_free(&plain));
}

/* No partitions at all, as often as it is started: nothing has to be made ready. */
static void no_partitions(void) {
    int b = 7, flag;
    MPI_Request r;
    MPI_Status s;
    if (me == 0) OK(MPI_Psend_init(&b, 0, 1, MPI_INT, other, 8, check_comm, MPI_INFO_NULL, &r));
    else OK(MPI_Precv_init(&b, 0, 1, MPI_INT, other, 8, check_comm, MPI_INFO_NULL, &r));
    for (int i = 0; i < 3; i++) {
        OK(MPI_Start(&r));
        if (STRICT) CHECK_CLASS(me ? MPI_Parrived(r, 0, &flag) : MPI_Pready(0, r), MPI_ERR_ARG);
        OK(MPI_Wait(&r, &s));
    }
    CHECK_EQ(b, 7);
    OK(MPI_Request_free(&r));
}

/* No process at the other end; and more than fits. */
static void ends(void) {
    char b[40] = {0}, guard[48];
    int flag;
    MPI_Request r;
    MPI_Status s;
    OK(MPI_Psend_init(b, 4, 10, MPI_BYTE, MPI_PROC_NULL, 1, check_comm, MPI_INFO_NULL, &r));
    OK(MPI_Start(&r));
    OK(MPI_Pready_range(0, 3, r));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&r));
    OK(MPI_Precv_init(b, 4, 10, MPI_BYTE, MPI_PROC_NULL, 1, check_comm, MPI_INFO_NULL, &r));
    OK(MPI_Start(&r));
    OK(MPI_Parrived(r, 3, &flag));
    CHECK(flag);
    OK(MPI_Wait(&r, &s));
    CHECK_EQ(s.MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Request_free(&r));
    memset(guard, 1, sizeof guard);
    if (me == 0)
        OK(MPI_Psend_init(b, 4, 10, MPI_BYTE, 1, 1, check_comm, MPI_INFO_NULL, &r));
    else
        OK(MPI_Precv_init(guard, 5, 5, MPI_BYTE, 0, 1, check_comm, MPI_INFO_NULL, &r));
    OK(MPI_Start(&r));
    if (me == 0) OK(MPI_Pready_range(0, 3, r));
    if (me == 0) OK(MPI_Wait(&r, &s));
    if (me == 1) {
        CHECK_CLASS(MPI_Wait(&r, &s), MPI_ERR_TRUNCATE);
        CHECK_EQ(guard[24], 0);
        CHECK_EQ(guard[25], 1);
    }
    OK(MPI_Request_free(&r));
}

/* Partitions without data arrive one by one, too (4.2.1: when they were made ready). */
static void nothing_in_parts(void) {
    MPI_Request s, r;
    int flag, i, k;
    OK(MPI_Psend_init(NULL, 3, 0, MPI_INT, 0, 9, MPI_COMM_SELF, MPI_INFO_NULL, &s));
    OK(MPI_Precv_init(NULL, 3, 0, MPI_INT, 0, 9, MPI_COMM_SELF, MPI_INFO_NULL, &r));
    OK(MPI_Start(&r));
    OK(MPI_Start(&s));
    for (i = 0; i < 3; i++) {
        OK(MPI_Pready(i, s));
        for (k = i + 1; k < 3; k++) {
            OK(MPI_Parrived(r, k, &flag));
            CHECK(!flag);
        }
        for (flag = 0; !flag;) OK(MPI_Parrived(r, i, &flag));
    }
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&s, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&r));
    OK(MPI_Request_free(&s));
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    nothing_in_parts();
    MPI_Comm_set_errhandler(check_comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    me = check_rank, other = 1 - me;
    many();
    tags();
    shapes(1, 1, 1000, 1);
    shapes(4, 6, 1200, 3);
    shapes(6, 4, 1200000, 5);
    shapes(64, 1, 640000, 7);
    shapes(1, 64, 640000, 1);
    shapes(1000, 10, 100000, 7);
    one_by_one(8);
    one_by_one(20000);
    one_by_one(700000);
    in_turns(10);
    in_turns(5000);
    in_turns(500000);
    late_setup();
    freed();
    threads();
    refused();
    ends();
    no_partitions();
    return check_end();
}
