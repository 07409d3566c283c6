/* KW_CHECK: messages whose elements are others than those of their receive, and buffers that two operations use at once. */
// run: n=2 abi=one
#include "check.h"

enum { LONG = 1 << 18 };
static int other;
static char out[8 * LONG], in[8 * LONG];

static const char *said(int code) {
    static char text[MPI_MAX_ERROR_STRING];
    int len;
    MPI_Error_string(code, text, &len);
    return text;
}

/* The receive of rank 1 ends with this class, and its sentence has both texts in it. */
static void hears(int code, int cls, const char *one, const char *two, int line) {
    if (check_rank == 0) return;
    if (check_class(code) != cls) FAILED("line %d: class %d, not %d: %s", line, check_class(code), cls, said(code));
    else if (cls != MPI_SUCCESS && (!strstr(said(code), one) || !strstr(said(code), two)))
        FAILED("line %d: '%s' lacks '%s' or '%s'", line, said(code), one, two);
}

enum { SEND, ISEND, SSEND, PERSISTENT, BSEND, WAYS };
static char attached[8 * LONG + 4096];

static void send(int how, int n, MPI_Datatype type, int tag) {
    MPI_Request r = MPI_REQUEST_NULL;
    if (how == SEND) OK(MPI_Send(out, n, type, other, tag, check_comm));
    if (how == ISEND) OK(MPI_Isend(out, n, type, other, tag, check_comm, &r));
    if (how == SSEND) OK(MPI_Ssend(out, n, type, other, tag, check_comm));
    if (how == BSEND) {
        OK(MPI_Buffer_attach(attached, sizeof attached));
        OK(MPI_Bsend(out, n, type, other, tag, check_comm));
        void *whole;
        int bytes;
        OK(MPI_Buffer_detach(&whole, &bytes));
    }
    if (how == PERSISTENT) {
        OK(MPI_Send_init(out, n, type, other, tag, check_comm, &r));
        OK(MPI_Start(&r));
    }
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    if (how == PERSISTENT) OK(MPI_Request_free(&r));
}

static int receive(int how, int n, MPI_Datatype type, int source, int tag, MPI_Status *s) {
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Message m;
    int code;
    if (how == SEND || how == BSEND) return MPI_Recv(in, n, type, source, tag, check_comm, s);
    if (how == SSEND) {
        OK(MPI_Mprobe(source, tag, check_comm, &m, s));
        return MPI_Mrecv(in, n, type, &m, s);
    }
    if (how == ISEND) OK(MPI_Irecv(in, n, type, source, tag, check_comm, &r));
    if (how == PERSISTENT) {
        OK(MPI_Recv_init(in, n, type, source, tag, check_comm, &r));
        OK(MPI_Start(&r));
    }
    code = MPI_Wait(&r, s);
    if (how == PERSISTENT) OK(MPI_Request_free(&r));
    return code;
}

/* One message in each way, first or after its receive. */
static void exchange(int n, MPI_Datatype sent, int room, MPI_Datatype wanted, int cls, const char *one, const char *two, int line) {
    for (int how = 0; how < 2 * WAYS; how++) {
        int way = how / 2, late = how % 2, code, any = way == ISEND;
        MPI_Status s;
        if (check_rank == 0) {
            if (late) OK(MPI_Recv(NULL, 0, MPI_INT, 1, 99, check_comm, MPI_STATUS_IGNORE));
            send(way, n, sent, 7);
            if (!late) OK(MPI_Send(NULL, 0, MPI_INT, 1, 98, check_comm));
        } else if (late) { /* The receive is posted before. */
            MPI_Request r;
            OK(MPI_Irecv(in, room, wanted, any ? MPI_ANY_SOURCE : 0, any ? MPI_ANY_TAG : 7, check_comm, &r));
            OK(MPI_Send(NULL, 0, MPI_INT, 0, 99, check_comm));
            code = MPI_Wait(&r, &s);
            hears(code, cls, one, two, line);
            CHECK_EQ(s.MPI_TAG, 7);
        } else {
            if (n < 1000 && way != SSEND) OK(MPI_Recv(NULL, 0, MPI_INT, 0, 98, check_comm, &s));
            code = receive(way, room, wanted, any ? MPI_ANY_SOURCE : 0, 7, &s);
            hears(code, cls, one, two, line);
            if (n >= 1000 || way == SSEND) OK(MPI_Recv(NULL, 0, MPI_INT, 0, 98, check_comm, &s));
        }
    }
}

#define FITS(n, sent, room, wanted) exchange(n, sent, room, wanted, MPI_SUCCESS, "", "", __LINE__)
#define WRONG(n, sent, room, wanted, one, two) exchange(n, sent, room, wanted, MPI_ERR_TYPE, one, two, __LINE__)

static MPI_Datatype structure(MPI_Datatype a, MPI_Datatype b, MPI_Aint at) {
    MPI_Datatype type, parts[2] = {a, b};
    int ones[2] = {1, 1};
    MPI_Aint places[2] = {0, at};
    OK(MPI_Type_create_struct(2, ones, places, parts, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

static void types(void) {
    MPI_Datatype pair = structure(MPI_INT, MPI_FLOAT, 4), turned = structure(MPI_FLOAT, MPI_INT, 4), apart = structure(MPI_INT, MPI_FLOAT, 12);
    MPI_Datatype row, column;
    OK(MPI_Type_vector(4, 1, 3, MPI_INT, &column));
    OK(MPI_Type_contiguous(4, MPI_INT, &row));
    OK(MPI_Type_commit(&column));
    OK(MPI_Type_commit(&row));
    FITS(5, MPI_INT, 5, MPI_INT);
    FITS(5, MPI_INT, 50, MPI_INTEGER);
    FITS(8, MPI_BYTE, 2, MPI_INT);
    FITS(2, MPI_INT, 8, MPI_BYTE);
    FITS(2, column, 8, MPI_INT);
    FITS(8, MPI_INT, 2, column);
    FITS(2, row, 3, column);
    FITS(3, pair, 4, apart);
    FITS(1, MPI_INT, 4, apart);
    FITS(0, MPI_INT, 4, MPI_FLOAT);
    FITS(LONG, MPI_INT, LONG, MPI_INT);
    FITS(LONG / 2, pair, LONG / 2, pair);
    WRONG(5, MPI_INT, 5, MPI_FLOAT, "message of rank 0 with tag 7 holds MPI_INT", "but its receive takes MPI_FLOAT");
    WRONG(1, MPI_LONG, 1, MPI_DOUBLE, "holds MPI_LONG", "takes MPI_DOUBLE");
    WRONG(4, MPI_INT, 5, MPI_UNSIGNED, "holds MPI_INT", "takes MPI_UNSIGNED");
    WRONG(1, column, 5, MPI_FLOAT, "holds MPI_INT", "takes MPI_FLOAT");
    WRONG(3, pair, 3, turned, "holds elements of several types", "takes others");
    WRONG(3, pair, 6, MPI_INT, "holds elements of several types", "takes MPI_INT");
    WRONG(2, MPI_INT, 3, apart, "holds MPI_INT", "takes elements of several types");
    WRONG(LONG, MPI_INT, LONG, MPI_FLOAT, "holds MPI_INT", "takes MPI_FLOAT");
    exchange(5, MPI_INT, 4, MPI_FLOAT, MPI_ERR_TRUNCATE, "20 bytes", "16", __LINE__);
    MPI_Datatype all[] = {pair, turned, apart, row, column};
    for (int i = 0; i < 5; i++) OK(MPI_Type_free(&all[i]));
}

/* Each rank sends of one type and receives into the same memory what is of its own type there. */
static void replaced(void) {
    MPI_Datatype column, mine;
    int code;
    OK(MPI_Type_vector(4, 1, 3, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    mine = check_rank ? column : MPI_INT;
    OK(MPI_Sendrecv_replace(in, check_rank ? 1 : 4, mine, other, 7, other, 7, check_comm, MPI_STATUS_IGNORE));
    mine = check_rank ? MPI_FLOAT : MPI_INT;
    code = MPI_Sendrecv_replace(in, 4, mine, other, 7, other, 7, check_comm, MPI_STATUS_IGNORE);
    CHECK_CLASS(code, MPI_ERR_TYPE);
    hears(code, MPI_ERR_TYPE, "message of rank 0 with tag 7 holds MPI_INT", "takes MPI_FLOAT", __LINE__);
    code = MPI_Sendrecv_replace(in, check_rank ? 4 : 1, check_rank ? MPI_FLOAT : column, other, 7, other, 7, check_comm, MPI_STATUS_IGNORE);
    CHECK_CLASS(code, MPI_ERR_TYPE);
    OK(MPI_Type_free(&column));
}

/* A partitioned send and its receive, each cut in its own way; started twice. */
static void parts(MPI_Datatype sent, MPI_Datatype wanted, int cls, const char *one, const char *two, int line) {
    MPI_Request r;
    int n = check_rank ? 2 : 4;
    if (check_rank) OK(MPI_Precv_init(in, n, 6, wanted, other, 7, check_comm, MPI_INFO_NULL, &r));
    else OK(MPI_Psend_init(out, n, 3, sent, other, 7, check_comm, MPI_INFO_NULL, &r));
    for (int turn = 0; turn < 2; turn++) {
        OK(MPI_Start(&r));
        if (check_rank == 0) OK(MPI_Pready_range(0, n - 1, r));
        hears(MPI_Wait(&r, MPI_STATUS_IGNORE), cls, one, two, line);
    }
    OK(MPI_Request_free(&r));
}

static void partitioned(void) {
    MPI_Datatype pair = structure(MPI_INT, MPI_FLOAT, 4), turned = structure(MPI_FLOAT, MPI_INT, 4), apart = structure(MPI_INT, MPI_FLOAT, 12);
    parts(MPI_INT, MPI_INTEGER, MPI_SUCCESS, "", "", __LINE__);
    parts(pair, apart, MPI_SUCCESS, "", "", __LINE__);
    parts(MPI_INT, MPI_FLOAT, MPI_ERR_TYPE, "partitioned send of rank 0 with tag 7 holds MPI_INT", "takes MPI_FLOAT", __LINE__);
    parts(pair, turned, MPI_ERR_TYPE, "holds elements of several types", "takes others", __LINE__);
    MPI_Datatype all[] = {pair, turned, apart};
    for (int i = 0; i < 3; i++) OK(MPI_Type_free(&all[i]));
}

/* To this process itself. */
static void own(void) {
    int a = 3;
    float b;
    MPI_Request r;
    OK(MPI_Irecv(&b, 1, MPI_FLOAT, 0, 2, MPI_COMM_SELF, &r));
    OK(MPI_Send(&a, 1, MPI_INT, 0, 2, MPI_COMM_SELF));
    CHECK_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
}

#define REFUSED(call) do {                                                                                          \
        int code_ = (call);                                                                                         \
        CHECK_CLASS(code_, MPI_ERR_BUFFER);                                                                         \
        CHECK(strstr(said(code_), "overlaps the one of a receive that has not ended (from rank"));                  \
    } while (0)

static void buffers(void) {
    int a[8] = {0};
    MPI_Request r[3], empty;
    MPI_Datatype even;
    OK(MPI_Type_vector(4, 1, 2, MPI_INT, &even));
    OK(MPI_Type_commit(&even));
    OK(MPI_Irecv(a, 1, even, other, 5, check_comm, &r[0]));
    REFUSED(MPI_Irecv(a, 1, MPI_INT, other, 6, check_comm, &r[1]));
    REFUSED(MPI_Recv(a + 1, 2, MPI_INT, other, 6, check_comm, MPI_STATUS_IGNORE));
    REFUSED(MPI_Isend(a + 6, 1, MPI_INT, other, 6, check_comm, &r[1]));
    REFUSED(MPI_Send(a + 6, 1, MPI_INT, other, 6, check_comm));
    REFUSED(MPI_Sendrecv(a, 1, MPI_INT, other, 6, a + 7, 1, MPI_INT, other, 6, check_comm, MPI_STATUS_IGNORE));
    OK(MPI_Recv_init(a, 1, MPI_INT, other, 6, check_comm, &r[2]));
    REFUSED(MPI_Start(&r[2]));
    OK(MPI_Irecv(a + 1, 1, even, other, 6, check_comm, &r[1])); /* between the others */
    OK(MPI_Irecv(a, 0, MPI_INT, other, 8, check_comm, &empty)); /* nothing of it */
    OK(MPI_Barrier(check_comm));
    OK(MPI_Send(in, 4, MPI_INT, other, 5, check_comm));
    OK(MPI_Send(in, 4, MPI_INT, other, 6, check_comm));
    OK(MPI_Send(in, 0, MPI_INT, other, 8, check_comm));
    OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    OK(MPI_Wait(&empty, MPI_STATUS_IGNORE));
    OK(MPI_Start(&r[2])); /* nothing writes there any more */
    OK(MPI_Send(in, 1, MPI_INT, other, 6, check_comm));
    OK(MPI_Wait(&r[2], MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&r[2]));
    OK(MPI_Type_free(&even));
}

int main(int argc, char **argv) {
    setenv("KW_CHECK", "yes", 1);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    other = 1 - check_rank;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(check_comm, MPI_ERRORS_RETURN));
#if STRICT
    types();
    replaced();
    partitioned();
    own();
    buffers();
#endif
    return check_end();
}
