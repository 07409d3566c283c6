// run: n=1,2 timeout=60 paths=one
// Wrong arguments under MPI_ERRORS_RETURN: the right class, never a crash.  Some checks are made
// only with -DSTRICT=1: a library whose handles are pointers may not survive garbage.
#include "check.h"

static int v[4];
static MPI_Comm W;

static void ranks_and_tags(void) {
    MPI_Request r;
    MPI_Status s;
    MPI_Message m;
    int flag, bad[] = {-4, -100, check_size, check_size + 1000, 0x7fffffff, (int)0x80000000}, k;
    for (k = 0; k < 6; k++) {
        int b = bad[k];
        CHECK_CLASS(MPI_Send(v, 1, MPI_INT, b, 0, W), MPI_ERR_RANK);
        CHECK_CLASS(MPI_Ssend(v, 1, MPI_INT, b, 0, W), MPI_ERR_RANK);
        CHECK_CLASS(MPI_Isend(v, 1, MPI_INT, b, 0, W, &r), MPI_ERR_RANK);
        CHECK_CLASS(MPI_Issend(v, 1, MPI_INT, b, 0, W, &r), MPI_ERR_RANK);
        CHECK_CLASS(MPI_Recv(v, 1, MPI_INT, b, 0, W, &s), MPI_ERR_RANK);
        CHECK_CLASS(MPI_Irecv(v, 1, MPI_INT, b, 0, W, &r), MPI_ERR_RANK);
        CHECK_CLASS(MPI_Send_init(v, 1, MPI_INT, b, 0, W, &r), MPI_ERR_RANK);
        CHECK_CLASS(MPI_Recv_init(v, 1, MPI_INT, b, 0, W, &r), MPI_ERR_RANK);
        CHECK_CLASS(MPI_Probe(b, 0, W, &s), MPI_ERR_RANK);
        CHECK_CLASS(MPI_Iprobe(b, 0, W, &flag, &s), MPI_ERR_RANK);
        CHECK_CLASS(MPI_Mprobe(b, 0, W, &m, &s), MPI_ERR_RANK);
        CHECK_CLASS(MPI_Improbe(b, 0, W, &flag, &m, &s), MPI_ERR_RANK);
        CHECK_CLASS(MPI_Sendrecv(v, 1, MPI_INT, b, 0, v + 2, 1, MPI_INT, 0, 0, W, &s), MPI_ERR_RANK);
        CHECK_CLASS(MPI_Sendrecv(v, 1, MPI_INT, 0, 0, v + 2, 1, MPI_INT, b, 0, W, &s), MPI_ERR_RANK);
        CHECK_CLASS(MPI_Sendrecv_replace(v, 1, MPI_INT, b, 0, 0, 0, W, &s), MPI_ERR_RANK);
    }
    CHECK_CLASS(MPI_Send(v, 1, MPI_INT, MPI_ANY_SOURCE, 0, W), MPI_ERR_RANK);
    int tags[] = {-1, -5, -32766, (int)0x80000000};
    for (k = 0; k < 4; k++) {
        int b = tags[k];
        if (b == MPI_ANY_TAG) continue;
        CHECK_CLASS(MPI_Send(v, 1, MPI_INT, 0, b, W), MPI_ERR_TAG);
        CHECK_CLASS(MPI_Isend(v, 1, MPI_INT, 0, b, W, &r), MPI_ERR_TAG);
        CHECK_CLASS(MPI_Recv(v, 1, MPI_INT, 0, b, W, &s), MPI_ERR_TAG);
        CHECK_CLASS(MPI_Irecv(v, 1, MPI_INT, 0, b, W, &r), MPI_ERR_TAG);
        CHECK_CLASS(MPI_Probe(0, b, W, &s), MPI_ERR_TAG);
        CHECK_CLASS(MPI_Iprobe(0, b, W, &flag, &s), MPI_ERR_TAG);
        CHECK_CLASS(MPI_Recv_init(v, 1, MPI_INT, 0, b, W, &r), MPI_ERR_TAG);
    }
    CHECK_CLASS(MPI_Send(v, 1, MPI_INT, 0, MPI_ANY_TAG, W), MPI_ERR_TAG);
    // The largest tag works.
    int *ub, found;
    MPI_Comm_get_attr(W, MPI_TAG_UB, &ub, &found);
    if (found) {
        v[0] = 5, v[2] = 0;
        OK(MPI_Sendrecv(v, 1, MPI_INT, check_rank, *ub, v + 2, 1, MPI_INT, check_rank, *ub, W, &s));
        CHECK(s.MPI_TAG == *ub && v[2] == 5);
    }
}

static void counts_types_buffers(void) {
    MPI_Request r;
    MPI_Status s;
    MPI_Datatype raw, gone;
    int bad[] = {-1, -1000, (int)0x80000000}, k;
    for (k = 0; k < 3; k++) {
        int b = bad[k];
        CHECK_CLASS(MPI_Send(v, b, MPI_INT, 0, 0, W), MPI_ERR_COUNT);
        CHECK_CLASS(MPI_Isend(v, b, MPI_INT, 0, 0, W, &r), MPI_ERR_COUNT);
        CHECK_CLASS(MPI_Recv(v, b, MPI_INT, 0, 0, W, &s), MPI_ERR_COUNT);
        CHECK_CLASS(MPI_Irecv(v, b, MPI_INT, 0, 0, W, &r), MPI_ERR_COUNT);
        CHECK_CLASS(MPI_Send_init(v, b, MPI_INT, 0, 0, W, &r), MPI_ERR_COUNT);
        CHECK_CLASS(MPI_Sendrecv_replace(v, b, MPI_INT, 0, 0, 0, 0, W, &s), MPI_ERR_COUNT);
    }
    CHECK_CLASS(MPI_Send(v, 1, MPI_DATATYPE_NULL, 0, 0, W), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Irecv(v, 1, MPI_DATATYPE_NULL, 0, 0, W, &r), MPI_ERR_TYPE);
    MPI_Type_contiguous(2, MPI_INT, &raw);
    CHECK_CLASS(MPI_Send(v, 1, raw, 0, 0, W), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Recv(v, 1, raw, 0, 0, W, &s), MPI_ERR_TYPE);
    gone = raw;
    MPI_Type_free(&raw);
    (void)gone;
#if STRICT
    CHECK_CLASS(MPI_Send(v, 1, gone, 0, 0, W), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Send(v, 1, (MPI_Datatype)0x123456789abcdefULL, 0, 0, W), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Send(v, 1, (MPI_Datatype)MPI_COMM_WORLD, 0, 0, W), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Send(v, 1, (MPI_Datatype)&raw, 0, 0, W), MPI_ERR_TYPE);
#endif
    CHECK_CLASS(MPI_Send(NULL, 1, MPI_INT, 0, 0, W), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Irecv(NULL, 1, MPI_INT, 0, 0, W, &r), MPI_ERR_BUFFER);
    OK(MPI_Sendrecv(NULL, 0, MPI_INT, check_rank, 0, NULL, 0, MPI_INT, check_rank, 0, W, &s));
}

static void communicators(void) {
    MPI_Request r;
    MPI_Status s;
    MPI_Comm dup, gone;
    CHECK_CLASS(MPI_Send(v, 1, MPI_INT, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Irecv(v, 1, MPI_INT, 0, 0, MPI_COMM_NULL, &r), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Probe(0, 0, MPI_COMM_NULL, &s), MPI_ERR_COMM);
    MPI_Comm_dup(W, &dup);
    gone = dup;
    MPI_Comm_free(&dup);
    (void)gone;
#if STRICT
    CHECK_CLASS(MPI_Send(v, 1, MPI_INT, 0, 0, gone), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Recv(v, 1, MPI_INT, 0, 0, gone, &s), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Send(v, 1, MPI_INT, 0, 0, (MPI_Comm)0xdeadbeefcafeULL), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Send(v, 1, MPI_INT, 0, 0, (MPI_Comm)&v), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Send(v, 1, MPI_INT, 0, 0, (MPI_Comm)MPI_INT), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Send(v, 1, MPI_INT, 0, 0, (MPI_Comm)(intptr_t)-1), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Send(v, 1, MPI_INT, 0, 0, (MPI_Comm)0), MPI_ERR_COMM);
#endif
}

static void requests(void) {
    MPI_Request r = MPI_REQUEST_NULL, live, copy;
    MPI_Status s, ss[2];
    MPI_Message m = MPI_MESSAGE_NULL;
    int flag, n, idx[2];
    CHECK_CLASS(MPI_Start(&r), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Cancel(&r), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Request_free(&r), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Mrecv(v, 1, MPI_INT, &m, &s), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Waitall(-1, &r, MPI_STATUSES_IGNORE), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Waitany(-1, &r, &n, &s), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Testsome(-2, &r, &n, idx, ss), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Startall(-1, &r), MPI_ERR_COUNT);
    OK(MPI_Irecv(v, 1, MPI_INT, check_rank, 3, W, &live));
    CHECK_CLASS(MPI_Start(&live), MPI_ERR_REQUEST);
    copy = live;
    OK(MPI_Cancel(&live));
    OK(MPI_Wait(&live, &s));
    (void)copy, (void)flag;
#if STRICT
    r = copy;
    CHECK_CLASS(MPI_Wait(&r, &s), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Test(&r, &flag, &s), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Cancel(&r), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Request_free(&r), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Request_get_status(r, &flag, &s), MPI_ERR_REQUEST);
    MPI_Request two[2] = {MPI_REQUEST_NULL, copy};
    CHECK_CLASS(MPI_Waitall(2, two, ss), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Waitany(2, two, &n, &s), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Waitsome(2, two, &n, idx, ss), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Testall(2, two, &flag, ss), MPI_ERR_REQUEST);
    r = (MPI_Request)(intptr_t)0x1234567812345678;
    CHECK_CLASS(MPI_Wait(&r, &s), MPI_ERR_REQUEST);
    r = (MPI_Request)MPI_COMM_WORLD;
    CHECK_CLASS(MPI_Wait(&r, &s), MPI_ERR_REQUEST);
    r = (MPI_Request)&v;
    CHECK_CLASS(MPI_Wait(&r, &s), MPI_ERR_REQUEST);
    m = (MPI_Message)&v;
    CHECK_CLASS(MPI_Mrecv(v, 1, MPI_INT, &m, &s), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Send(v, 1, MPI_INT, check_rank, 0, (MPI_Comm)copy), MPI_ERR_COMM);
#endif
}

static void memory(void) {
    char *p = NULL;
    OK(MPI_Alloc_mem(100000, MPI_INFO_NULL, &p));
    CHECK(p != NULL);
    memset(p, 1, 100000);
    OK(MPI_Free_mem(p));
    OK(MPI_Alloc_mem(0, MPI_INFO_NULL, &p));
    OK(MPI_Free_mem(p));
    CHECK_CLASS(MPI_Alloc_mem(-1, MPI_INFO_NULL, &p), MPI_ERR_ARG);
#if STRICT
    CHECK_CLASS(MPI_Alloc_mem((MPI_Aint)1 << 62, MPI_INFO_NULL, &p), MPI_ERR_NO_MEM);
    CHECK_CLASS(MPI_Free_mem(&v), MPI_ERR_BASE);
#endif
}

static void statuses(void) {
    MPI_Status s;
    int flag = 0, n;
    memset(&s, 0, sizeof s);
    OK(MPI_Status_set_cancelled(&s, 1));
    OK(MPI_Test_cancelled(&s, &flag));
    CHECK(flag);
    OK(MPI_Status_set_elements(&s, MPI_INT, 7));
    OK(MPI_Get_count(&s, MPI_INT, &n));
    CHECK_EQ(n, 7);
    OK(MPI_Test_cancelled(&s, &flag));
    CHECK(flag);
    OK(MPI_Status_set_cancelled(&s, 0));
    OK(MPI_Test_cancelled(&s, &flag));
    CHECK(!flag);
    OK(MPI_Get_elements(&s, MPI_BYTE, &n));
    CHECK_EQ(n, 28);
#if MPI_VERSION >= 5
    OK(MPI_Status_set_source(&s, 11));
    OK(MPI_Status_set_tag(&s, 12));
    OK(MPI_Status_set_error(&s, 13));
    CHECK(s.MPI_SOURCE == 11 && s.MPI_TAG == 12 && s.MPI_ERROR == 13);
    int a, b, c;
    OK(MPI_Status_get_source(&s, &a));
    OK(MPI_Status_get_tag(&s, &b));
    OK(MPI_Status_get_error(&s, &c));
    CHECK(a == 11 && b == 12 && c == 13);
#endif
}

// A library may have a short way for messages between ranks that know each other: it must see the same.
static void known_peers(void) {
    MPI_Status s;
    MPI_Comm pair;
    int k, wrong[] = {-1, -5, (int)0x80000000}, other = 1 - check_rank, none = -1;
    OK(MPI_Comm_split(W, check_rank / 2, 0, &pair));
    OK(MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN));
    MPI_Comm_size(pair, &k);
    if (check_rank < 2 && k == 2) {
        for (k = 0; k < 3; k++) {
            v[0] = k + 1;
            OK(MPI_Send(v, 1, MPI_INT, other, k, pair));
            OK(MPI_Recv(v + 2, 1, MPI_INT, other, k, pair, &s));
            CHECK_EQ(v[2], k + 1);
            CHECK_CLASS(MPI_Send(v, 1, MPI_INT, other, wrong[k], pair), MPI_ERR_TAG);
            CHECK_CLASS(MPI_Send(v, wrong[k], MPI_INT, other, 0, pair), MPI_ERR_COUNT);
            CHECK_CLASS(MPI_Recv(v, wrong[k], MPI_INT, other, 0, pair, &s), MPI_ERR_COUNT);
            CHECK_CLASS(MPI_Send(NULL, 1, MPI_INT, other, 0, pair), MPI_ERR_BUFFER);
            CHECK_CLASS(MPI_Recv(NULL, 1, MPI_INT, other, 0, pair, &s), MPI_ERR_BUFFER);
            CHECK_CLASS(MPI_Send(v, 1, MPI_INT, 2, 0, pair), MPI_ERR_RANK);
            CHECK_CLASS(MPI_Recv(v, 1, MPI_INT, 2, 0, pair, &s), MPI_ERR_RANK);
            CHECK_CLASS(MPI_Send(v, 1, MPI_DATATYPE_NULL, other, 0, pair), MPI_ERR_TYPE);
            if (wrong[k] != MPI_ANY_TAG) CHECK_CLASS(MPI_Recv(v, 1, MPI_INT, other, wrong[k], pair, &s), MPI_ERR_TAG);
        }
        // Nothing was sent by the wrong calls.
        OK(MPI_Barrier(pair));
        OK(MPI_Iprobe(other, MPI_ANY_TAG, pair, &none, &s));
        CHECK_EQ(none, 0);
    }
    OK(MPI_Comm_free(&pair));
}

// A communicator's own handler hears of errors on it.
static int heard;
static void hear(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    heard = check_class(*code);
}

static void handlers(void) {
    MPI_Comm dup;
    MPI_Errhandler h;
    MPI_Request r;
    MPI_Comm_dup(W, &dup);
    MPI_Comm_create_errhandler(hear, &h);
    MPI_Comm_set_errhandler(dup, h);
    int code = MPI_Send(v, 1, MPI_INT, 1000, 0, dup);
    CHECK_EQ(heard, MPI_ERR_RANK);
#if STRICT
    CHECK_CLASS(code, MPI_ERR_RANK);
#endif
    heard = 0;
    OK(MPI_Irecv(v + 3, 1, MPI_INT, check_rank, 0, dup, &r));
    OK(MPI_Send(v, 2, MPI_INT, check_rank, 0, dup));
    code = MPI_Wait(&r, MPI_STATUS_IGNORE);
    CHECK_EQ(heard, MPI_ERR_TRUNCATE);
#if STRICT
    CHECK_CLASS(code, MPI_ERR_TRUNCATE);
#endif
    MPI_Errhandler_free(&h);
    MPI_Comm_free(&dup);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    W = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    ranks_and_tags();
    counts_types_buffers();
    communicators();
    requests();
    memory();
    statuses();
    known_peers();
    handlers();
    return check_end();
}
