// run: n=2,3 timeout=60
// Probe, matched probe and what they leave for receives, with MPI_PROC_NULL and wildcards.
#include "check.h"

static const int sizes[] = {0, 1, 100, 4096, 50000, 400000, 2 << 20};
#define NSIZES 7

static void proc_null(void) {
    MPI_Status s;
    MPI_Message m;
    int flag = 0, v;
    OK(MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &s));
    CHECK(s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG && count_of(&s, MPI_INT) == 0);
    OK(MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &s));
    CHECK(flag && s.MPI_SOURCE == MPI_PROC_NULL);
    OK(MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &m, &s));
    CHECK(m == MPI_MESSAGE_NO_PROC && s.MPI_SOURCE == MPI_PROC_NULL);
    OK(MPI_Mrecv(&v, 1, MPI_INT, &m, &s));
    CHECK(m == MPI_MESSAGE_NULL && s.MPI_SOURCE == MPI_PROC_NULL && count_of(&s, MPI_INT) == 0);
    flag = 0;
    OK(MPI_Improbe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &m, &s));
    CHECK(flag && m == MPI_MESSAGE_NO_PROC);
    MPI_Request r;
    OK(MPI_Imrecv(&v, 1, MPI_INT, &m, &r));
    CHECK(m == MPI_MESSAGE_NULL);
    OK(MPI_Wait(&r, &s));
    CHECK(s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG);
    OK(MPI_Iprobe(MPI_ANY_SOURCE, 12345, MPI_COMM_SELF, &flag, &s));
    CHECK(!flag);
    OK(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, &m, &s));
    CHECK(!flag);
}

static void expect(MPI_Status *s, int tag, int n) {
    CHECK_EQ(s->MPI_SOURCE, 0);
    CHECK_EQ(s->MPI_TAG, tag);
    CHECK_EQ(count_of(s, MPI_BYTE), n);
}

static void receive(int round, int i, char *buf) {
    int n = sizes[i], tag = 10 + i, flag = 0;
    MPI_Status s;
    MPI_Message m;
    MPI_Request r;
    switch (round) {
    case 0:
        OK(MPI_Probe(0, tag, MPI_COMM_WORLD, &s));
        expect(&s, tag, n);
        OK(MPI_Recv(buf, n, MPI_BYTE, s.MPI_SOURCE, s.MPI_TAG, MPI_COMM_WORLD, &s));
        break;
    case 1:
        while (!flag) OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &s));
        expect(&s, tag, n);
        OK(MPI_Recv(buf, n, MPI_BYTE, s.MPI_SOURCE, s.MPI_TAG, MPI_COMM_WORLD, &s));
        break;
    case 2:
        OK(MPI_Mprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &m, &s));
        expect(&s, tag, n);
        CHECK(m != MPI_MESSAGE_NULL);
        OK(MPI_Iprobe(0, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        OK(MPI_Mrecv(buf, n, MPI_BYTE, &m, &s));
        CHECK(m == MPI_MESSAGE_NULL);
        break;
    default:
        while (!flag) OK(MPI_Improbe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &m, &s));
        expect(&s, tag, n);
        OK(MPI_Imrecv(buf, n, MPI_BYTE, &m, &r));
        CHECK(m == MPI_MESSAGE_NULL);
        OK(MPI_Wait(&r, &s));
    }
    expect(&s, tag, n);
    CHECK_EQ(differs(buf, n, round * 100 + i), -1);
}

// A matched message is out of reach of later receives, also of ones posted before it is received.
static void apart(void) {
    int v = 0, w = 0;
    MPI_Message m;
    MPI_Status s;
    if (check_rank == 0) {
        for (v = 1; v <= 2; v++) OK(MPI_Send(&v, 1, MPI_INT, 1, 77, MPI_COMM_WORLD));
    } else if (check_rank == 1) {
        OK(MPI_Mprobe(0, 77, MPI_COMM_WORLD, &m, &s));
        OK(MPI_Recv(&w, 1, MPI_INT, 0, 77, MPI_COMM_WORLD, &s));
        CHECK_EQ(w, 2);
        OK(MPI_Mrecv(&v, 1, MPI_INT, &m, &s));
        CHECK_EQ(v, 1);
    }
}

// A truncated matched receive is an error and not a crash.
static void truncated(void) {
    int v[4] = {1, 2, 3, 4};
    MPI_Message m;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (check_rank == 0) OK(MPI_Send(v, 4, MPI_INT, 1, 78, MPI_COMM_WORLD));
    if (check_rank == 1) {
        OK(MPI_Mprobe(0, 78, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE));
        v[2] = v[3] = -1;
        CHECK_CLASS(MPI_Mrecv(v, 2, MPI_INT, &m, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
        CHECK(v[2] == -1 && v[3] == -1);
    }
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    char *buf = malloc(2 << 20);
    int round, i;
    proc_null();
    for (round = 0; round < 4; round++)
        for (i = 0; i < NSIZES; i++) {
            if (check_rank == 0) {
                fill(buf, sizes[i], round * 100 + i);
                OK(MPI_Send(buf, sizes[i], MPI_BYTE, 1, 10 + i, MPI_COMM_WORLD));
            } else if (check_rank == 1)
                receive(round, i, buf);
        }
    apart();
    truncated();
    return check_end();
}
