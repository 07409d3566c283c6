// run: n=1,2 timeout=60 paths=one
/* Wrong arguments of every collective function, in all three forms, with int and with MPI_Count, by a table: each fault is made in
 * every function that has the argument, gives the right class (MPI 5.0, 9.4) and a sentence with the argument's name. All calls are made on a
 * communicator of one process (a ring, for the neighbourhood), where every argument means something; what is refused leaves nothing behind. */
#include "check.h"

enum { MOST = 64 };

typedef struct {
    void *s, *r;                  /* buffers */
    int sc, rc, *scs, *rcs, *sd, *rd; /* counts, lists of counts and displacements */
    MPI_Datatype st, rt, *sts, *rts;
    MPI_Op op;
    int root;
    MPI_Comm comm;
} Args;

/* A list as MPI_Count or MPI_Aint; those of a call are used before the next is made. */
static void *wide(const int *list) {
    static MPI_Count made[4][MOST];
    static int next;
    if (!list) return NULL;
    next = (next + 1) % 4;
    for (int i = 0; i < MOST; i++) made[next][i] = list[i];
    return made[next];
}
_Static_assert(sizeof(MPI_Count) == sizeof(MPI_Aint), "one list serves as both");

/* What a function has. */
enum { SEND = 1, RECV = 2, SENDS = 4, RECVS = 8, TYPES = 16, OP = 32, ROOT = 64, ONE = 128, KEEPS_SEND = 256, KEEPS_RECV = 512, NEAR = 1024 };

typedef struct {
    const char *name;
    int has;
    int (*call)(Args *, int form, MPI_Request *);
    int (*large)(Args *, int form, MPI_Request *); /* with MPI_Count */
} Function;

#define FORMS(Name, name, ...)                                                             \
    static int do_##name(Args *a, int form, MPI_Request *q) {                              \
        if (form == 0) return MPI_##Name(__VA_ARGS__);                                     \
        if (form == 1) return MPI_I##name(__VA_ARGS__, q);                                 \
        return MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, q);                           \
    }
#define LARGE(Name, name, ...)                                                             \
    static int large_##name(Args *a, int form, MPI_Request *q) {                           \
        if (form == 0) return MPI_##Name##_c(__VA_ARGS__);                                 \
        if (form == 1) return MPI_I##name##_c(__VA_ARGS__, q);                             \
        return MPI_##Name##_init_c(__VA_ARGS__, MPI_INFO_NULL, q);                         \
    }
#define BOTH(Name, name, ...) FORMS(Name, name, __VA_ARGS__) LARGE(Name, name, __VA_ARGS__)
#define AINTS(list) ((MPI_Aint *)wide(list))

FORMS(Barrier, barrier, a->comm)
BOTH(Bcast, bcast, a->r, a->rc, a->rt, a->root, a->comm)
BOTH(Gather, gather, a->s, a->sc, a->st, a->r, a->rc, a->rt, a->root, a->comm)
FORMS(Gatherv, gatherv, a->s, a->sc, a->st, a->r, a->rcs, a->rd, a->rt, a->root, a->comm)
LARGE(Gatherv, gatherv, a->s, a->sc, a->st, a->r, wide(a->rcs), AINTS(a->rd), a->rt, a->root, a->comm)
BOTH(Scatter, scatter, a->s, a->sc, a->st, a->r, a->rc, a->rt, a->root, a->comm)
FORMS(Scatterv, scatterv, a->s, a->scs, a->sd, a->st, a->r, a->rc, a->rt, a->root, a->comm)
LARGE(Scatterv, scatterv, a->s, wide(a->scs), AINTS(a->sd), a->st, a->r, a->rc, a->rt, a->root, a->comm)
BOTH(Allgather, allgather, a->s, a->sc, a->st, a->r, a->rc, a->rt, a->comm)
FORMS(Allgatherv, allgatherv, a->s, a->sc, a->st, a->r, a->rcs, a->rd, a->rt, a->comm)
LARGE(Allgatherv, allgatherv, a->s, a->sc, a->st, a->r, wide(a->rcs), AINTS(a->rd), a->rt, a->comm)
BOTH(Alltoall, alltoall, a->s, a->sc, a->st, a->r, a->rc, a->rt, a->comm)
FORMS(Alltoallv, alltoallv, a->s, a->scs, a->sd, a->st, a->r, a->rcs, a->rd, a->rt, a->comm)
LARGE(Alltoallv, alltoallv, a->s, wide(a->scs), AINTS(a->sd), a->st, a->r, wide(a->rcs), AINTS(a->rd), a->rt, a->comm)
FORMS(Alltoallw, alltoallw, a->s, a->scs, a->sd, a->sts, a->r, a->rcs, a->rd, a->rts, a->comm)
LARGE(Alltoallw, alltoallw, a->s, wide(a->scs), AINTS(a->sd), a->sts, a->r, wide(a->rcs), AINTS(a->rd), a->rts, a->comm)
BOTH(Reduce, reduce, a->s, a->r, a->rc, a->rt, a->op, a->root, a->comm)
BOTH(Allreduce, allreduce, a->s, a->r, a->rc, a->rt, a->op, a->comm)
FORMS(Reduce_scatter, reduce_scatter, a->s, a->r, a->rcs, a->rt, a->op, a->comm)
LARGE(Reduce_scatter, reduce_scatter, a->s, a->r, wide(a->rcs), a->rt, a->op, a->comm)
BOTH(Reduce_scatter_block, reduce_scatter_block, a->s, a->r, a->rc, a->rt, a->op, a->comm)
BOTH(Scan, scan, a->s, a->r, a->rc, a->rt, a->op, a->comm)
BOTH(Exscan, exscan, a->s, a->r, a->rc, a->rt, a->op, a->comm)
BOTH(Neighbor_allgather, neighbor_allgather, a->s, a->sc, a->st, a->r, a->rc, a->rt, a->comm)
FORMS(Neighbor_allgatherv, neighbor_allgatherv, a->s, a->sc, a->st, a->r, a->rcs, a->rd, a->rt, a->comm)
LARGE(Neighbor_allgatherv, neighbor_allgatherv, a->s, a->sc, a->st, a->r, wide(a->rcs), AINTS(a->rd), a->rt, a->comm)
BOTH(Neighbor_alltoall, neighbor_alltoall, a->s, a->sc, a->st, a->r, a->rc, a->rt, a->comm)
FORMS(Neighbor_alltoallv, neighbor_alltoallv, a->s, a->scs, a->sd, a->st, a->r, a->rcs, a->rd, a->rt, a->comm)
LARGE(Neighbor_alltoallv, neighbor_alltoallv, a->s, wide(a->scs), AINTS(a->sd), a->st, a->r, wide(a->rcs), AINTS(a->rd), a->rt, a->comm)
FORMS(Neighbor_alltoallw, neighbor_alltoallw, a->s, a->scs, AINTS(a->sd), a->sts, a->r, a->rcs, AINTS(a->rd), a->rts, a->comm)
LARGE(Neighbor_alltoallw, neighbor_alltoallw, a->s, wide(a->scs), AINTS(a->sd), a->sts, a->r, wide(a->rcs), AINTS(a->rd), a->rts, a->comm)

static const Function functions[] = {
    {"barrier", 0, do_barrier, NULL},
    {"bcast", ONE | ROOT, do_bcast, large_bcast},
    {"gather", SEND | RECV | ROOT | KEEPS_SEND, do_gather, large_gather},
    {"gatherv", SEND | RECVS | ROOT | KEEPS_SEND, do_gatherv, large_gatherv},
    {"scatter", SEND | RECV | ROOT | KEEPS_RECV, do_scatter, large_scatter},
    {"scatterv", SENDS | RECV | ROOT | KEEPS_RECV, do_scatterv, large_scatterv},
    {"allgather", SEND | RECV | KEEPS_SEND, do_allgather, large_allgather},
    {"allgatherv", SEND | RECVS | KEEPS_SEND, do_allgatherv, large_allgatherv},
    {"alltoall", SEND | RECV | KEEPS_SEND, do_alltoall, large_alltoall},
    {"alltoallv", SENDS | RECVS | KEEPS_SEND, do_alltoallv, large_alltoallv},
    {"alltoallw", SENDS | RECVS | TYPES | KEEPS_SEND, do_alltoallw, large_alltoallw},
    {"reduce", OP | ROOT | KEEPS_SEND, do_reduce, large_reduce},
    {"allreduce", OP | KEEPS_SEND, do_allreduce, large_allreduce},
    {"reduce_scatter", OP | RECVS | KEEPS_SEND, do_reduce_scatter, large_reduce_scatter},
    {"reduce_scatter_block", OP | KEEPS_SEND, do_reduce_scatter_block, large_reduce_scatter_block},
    {"scan", OP | KEEPS_SEND, do_scan, large_scan},
    {"exscan", OP | KEEPS_SEND, do_exscan, large_exscan},
    {"neighbor_allgather", SEND | RECV | NEAR, do_neighbor_allgather, large_neighbor_allgather},
    {"neighbor_allgatherv", SEND | RECVS | NEAR, do_neighbor_allgatherv, large_neighbor_allgatherv},
    {"neighbor_alltoall", SEND | RECV | NEAR, do_neighbor_alltoall, large_neighbor_alltoall},
    {"neighbor_alltoallv", SENDS | RECVS | NEAR, do_neighbor_alltoallv, large_neighbor_alltoallv},
    {"neighbor_alltoallw", SENDS | RECVS | TYPES | NEAR, do_neighbor_alltoallw, large_neighbor_alltoallw},
};

static int in[MOST], out[MOST], ones[MOST], minus[MOST], zeros[MOST];
static MPI_Datatype raw, gone, ints[MOST], nulls[MOST]; /* not committed; derived; lists */
static MPI_Op freed;

static void no_comm(Args *a) { a->comm = MPI_COMM_NULL; }
static void no_topology(Args *a) { a->comm = MPI_COMM_SELF; }
static void minus_send(Args *a) { a->sc = -1; }
static void minus_recv(Args *a) { a->rc = -2; }
static void minus_sends(Args *a) { a->scs = minus; }
static void minus_recvs(Args *a) { a->rcs = minus; }
static void no_sends(Args *a) { a->scs = NULL; }
static void no_recvs(Args *a) { a->rcs = NULL; }
static void no_sdispls(Args *a) { a->sd = NULL; }
static void no_rdispls(Args *a) { a->rd = NULL; }
static void no_sendtype(Args *a) { a->st = MPI_DATATYPE_NULL; }
static void no_recvtype(Args *a) { a->rt = MPI_DATATYPE_NULL; }
static void raw_sendtype(Args *a) { a->st = raw; }
static void raw_recvtype(Args *a) { a->rt = raw; }
static void null_types(Args *a) { a->sts = nulls, a->rts = nulls; }
static void no_types(Args *a) { a->rts = NULL; }
static void no_sendbuf(Args *a) { a->s = NULL; }
static void no_recvbuf(Args *a) { a->r = NULL; }
static void root_behind(Args *a) { a->root = 1; }
static void root_before(Args *a) { a->root = -9; }
static void root_root(Args *a) { a->root = MPI_ROOT; }
static void no_op(Args *a) { a->op = MPI_OP_NULL; }
static void replace(Args *a) { a->op = MPI_REPLACE; }
static void nothing(Args *a) { a->op = MPI_NO_OP; }
static void bits_of_float(Args *a) { a->op = MPI_BAND, a->rt = MPI_FLOAT; }
static void pair_of_int(Args *a) { a->op = MPI_MAXLOC; }
static void sum_of_wchar(Args *a) { a->rt = MPI_WCHAR; }
static void sum_of_derived(Args *a) { a->rt = gone; }
static void old_op(Args *a) { a->op = freed; }
static void same(Args *a) { a->s = a->r; }
static void send_in_place(Args *a) { a->s = MPI_IN_PLACE; }
static void recv_in_place(Args *a) { a->r = MPI_IN_PLACE; }
static void both_in_place(Args *a) { a->s = a->r = MPI_IN_PLACE; }

static void never(void *a, void *b, int *n, MPI_Datatype *type) {}

static const struct {
    const char *what;
    int all, any, none; /* has all of these, one of these, none of those */
    void (*make)(Args *);
    int class;
    const char *says;
} faults[] = {
    {"MPI_COMM_NULL", 0, 0, 0, no_comm, MPI_ERR_COMM, "comm"},
    {"no topology", NEAR, 0, 0, no_topology, MPI_ERR_TOPOLOGY, "comm has no topology"},
    {"sendcount < 0", SEND, 0, 0, minus_send, MPI_ERR_COUNT, "sendcount is -1"},
    {"recvcount < 0", RECV, 0, 0, minus_recv, MPI_ERR_COUNT, "recvcount is -2"},
    {"count < 0", 0, ONE | OP, RECVS, minus_recv, MPI_ERR_COUNT, "count is -2"},
    {"sendcounts[0] < 0", SENDS, 0, 0, minus_sends, MPI_ERR_COUNT, "sendcounts[0] is -1"},
    {"recvcounts[0] < 0", RECVS, 0, 0, minus_recvs, MPI_ERR_COUNT, "recvcounts[0] is -1"},
    {"sendcounts NULL", SENDS, 0, 0, no_sends, MPI_ERR_ARG, "sendcounts is"},
    {"recvcounts NULL", RECVS, 0, 0, no_recvs, MPI_ERR_ARG, "recvcounts is"},
    {"sdispls NULL", SENDS, 0, 0, no_sdispls, MPI_ERR_ARG, "displs is"},
    {"rdispls NULL", RECVS, 0, OP, no_rdispls, MPI_ERR_ARG, "displs is"},
    {"sendtype NULL", 0, SEND | SENDS, TYPES, no_sendtype, MPI_ERR_TYPE, "sendtype is MPI_DATATYPE_NULL"},
    {"recvtype NULL", 0, RECV | RECVS, TYPES | OP, no_recvtype, MPI_ERR_TYPE, "recvtype is MPI_DATATYPE_NULL"},
    {"datatype NULL", 0, ONE | OP, 0, no_recvtype, MPI_ERR_TYPE, "datatype is MPI_DATATYPE_NULL"},
    {"sendtype not committed", 0, SEND | SENDS, TYPES, raw_sendtype, MPI_ERR_TYPE, "sendtype"},
    {"recvtype not committed", 0, RECV | RECVS, TYPES | OP, raw_recvtype, MPI_ERR_TYPE, "recvtype"},
    {"types of NULL", TYPES, 0, 0, null_types, MPI_ERR_TYPE, "sendtypes[0] is MPI_DATATYPE_NULL"},
    {"recvtypes NULL", TYPES, 0, 0, no_types, MPI_ERR_ARG, "recvtypes is"},
    {"sendbuf NULL", 0, SEND | SENDS | OP, 0, no_sendbuf, MPI_ERR_BUFFER, "sendbuf is"},
    {"recvbuf NULL", 0, RECV | RECVS | OP, 0, no_recvbuf, MPI_ERR_BUFFER, "recvbuf is"},
    {"buffer NULL", ONE, 0, 0, no_recvbuf, MPI_ERR_BUFFER, "buffer is"},
    {"root = size", ROOT, 0, 0, root_behind, MPI_ERR_ROOT, "root is 1"},
    {"root = -9", ROOT, 0, 0, root_before, MPI_ERR_ROOT, "root is -9"},
    {"MPI_ROOT", ROOT, 0, 0, root_root, MPI_ERR_ROOT, "root is"},
    {"MPI_OP_NULL", OP, 0, 0, no_op, MPI_ERR_OP, "op is MPI_OP_NULL"},
    {"freed op", OP, 0, 0, old_op, MPI_ERR_OP, "op is"},
    {"MPI_REPLACE", OP, 0, 0, replace, MPI_ERR_OP, "op is MPI_REPLACE"},
    {"MPI_NO_OP", OP, 0, 0, nothing, MPI_ERR_OP, "op is MPI_NO_OP"},
    {"MPI_BAND of float", OP, 0, 0, bits_of_float, MPI_ERR_OP, "op is MPI_BAND, which is not defined for MPI_FLOAT"},
    {"MPI_MAXLOC of int", OP, 0, 0, pair_of_int, MPI_ERR_OP, "op is MPI_MAXLOC, which is not defined for MPI_INT"},
    {"MPI_SUM of wchar_t", OP, 0, 0, sum_of_wchar, MPI_ERR_OP, "op is MPI_SUM, which is not defined for MPI_WCHAR"},
    {"MPI_SUM of derived", OP, 0, 0, sum_of_derived, MPI_ERR_OP, "op is MPI_SUM"},
    {"same buffer", 0, SEND | SENDS | OP, 0, same, MPI_ERR_BUFFER, "same memory"},
    {"sendbuf in place", 0, KEEPS_RECV | NEAR, 0, send_in_place, MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE"},
    {"recvbuf in place", 0, KEEPS_SEND | NEAR, 0, recv_in_place, MPI_ERR_BUFFER, "recvbuf is MPI_IN_PLACE"},
    {"buffer in place", ONE, 0, 0, recv_in_place, MPI_ERR_BUFFER, "buffer is MPI_IN_PLACE"},
    {"both in place", 0, KEEPS_SEND | KEEPS_RECV | NEAR, 0, both_in_place, MPI_ERR_BUFFER, "MPI_IN_PLACE"},
};

static Args right(MPI_Comm comm) {
    Args a = {in, out, 1, 1, ones, ones, zeros, zeros, MPI_INT, MPI_INT, ints, ints, MPI_SUM, 0, comm};
    return a;
}

/* Forms from 3 on are the first three with MPI_Count. */
enum { TWINS = 3, ALL_FORMS = 6 };

static int call(const Function *f, Args *a, int form, MPI_Request *q) {
    return form < TWINS ? f->call(a, form, q) : f->large(a, form - TWINS, q);
}

static void finish(int form, MPI_Request *q) {
    form %= TWINS;
    if (form == 2) OK(MPI_Start(q));
    if (form) OK(MPI_Wait(q, MPI_STATUS_IGNORE));
    if (form == 2) OK(MPI_Request_free(q));
}

static void one(const Function *f, int i, int form, MPI_Comm comm) {
    Args a = right(comm);
    MPI_Request q = MPI_REQUEST_NULL;
    char text[MPI_MAX_ERROR_STRING] = "";
    int len;
    faults[i].make(&a);
    int code = call(f, &a, form, &q);
    if (check_class(code) != faults[i].class)
        FAILED("%s form %d, %s: class %d, not %d", f->name, form, faults[i].what, check_class(code), faults[i].class);
    if (code != MPI_SUCCESS) MPI_Error_string(code, text, &len);
    if (STRICT && !strstr(text, faults[i].says))
        FAILED("%s form %d, %s: '%s' lacks '%s'", f->name, form, faults[i].what, text, faults[i].says);
}

/* Send and receive blocks may be counted from the same address, as long as they do not overlap. */
static void disjoint(MPI_Comm ring) {
    int data[4 * MOST], counts[MOST], first[MOST], then[MOST], n = check_size, two[2] = {1, 1}, out_[2] = {0, 1}, in_[2] = {2, 3};
    MPI_Aint bytes_out[2] = {0, 4}, bytes_in[2] = {8, 12};
    for (int i = 0; i < 4 * MOST; i++) data[i] = i < n ? 100 * check_rank + i : -1;
    for (int i = 0; i < n; i++) counts[i] = 1, first[i] = i, then[i] = n + i;
    OK(MPI_Alltoallv(data, counts, first, MPI_INT, data, counts, then, MPI_INT, ring));
    for (int i = 0; i < n; i++) CHECK_EQ(data[n + i], 100 * i + check_rank);
    OK(MPI_Allgatherv(data, 1, MPI_INT, data, counts, then, MPI_INT, ring));
    for (int i = 0; i < n; i++) CHECK_EQ(data[n + i], 100 * i);
    data[0] = check_rank, data[1] = -check_rank;
    OK(MPI_Neighbor_alltoallv(data, two, out_, MPI_INT, data, two, in_, MPI_INT, ring));
    CHECK_EQ(data[2], -((check_rank + n - 1) % n));
    CHECK_EQ(data[3], (check_rank + 1) % n);
    data[2] = data[3] = -7;
    OK(MPI_Neighbor_alltoallw(data, two, bytes_out, ints, data, two, bytes_in, ints, ring));
    CHECK_EQ(data[2], -((check_rank + n - 1) % n));
    CHECK_EQ(data[3], (check_rank + 1) % n);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm alone, ring;
    int made = 0, one_place[1] = {1}, places[1] = {check_size}, closed[1] = {1};
    OK(MPI_Cart_create(MPI_COMM_SELF, 1, one_place, closed, 0, &alone));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, places, closed, 0, &ring));
    MPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    OK(MPI_Type_contiguous(1, MPI_INT, &raw));
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &gone));
    OK(MPI_Type_commit(&gone));
    for (int i = 0; i < MOST; i++) ones[i] = 1, minus[i] = -1, ints[i] = MPI_INT, nulls[i] = MPI_DATATYPE_NULL;
#if STRICT
    OK(MPI_Op_create(never, 1, &freed));
    MPI_Op copy = freed;
    OK(MPI_Op_free(&copy));
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        const Function *f = &functions[k];
        for (int form = 0; form < (f->large ? ALL_FORMS : TWINS); form++) {
            for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
                int fits = (f->has & faults[i].all) == faults[i].all && !(f->has & faults[i].none);
                if (!fits || (faults[i].any && !(f->has & faults[i].any))) continue;
                one(f, (int)i, form, alone);
                made++;
            }
            /* Nothing is left behind: the right call works, on one process and on all. */
            MPI_Comm comms[2] = {alone, ring};
            for (int c = 0; c < 2; c++) {
                Args a = right(comms[c]);
                MPI_Request q;
                OK(call(f, &a, form, &q));
                finish(form, &q);
            }
        }
    }
    CHECK(made > 1900);
    disjoint(ring);
    /* Count 0 needs no buffers. */
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        Args a = right(ring);
        a.s = a.r = NULL, a.sc = a.rc = 0, a.scs = a.rcs = zeros;
        OK(functions[k].call(&a, 0, NULL));
    }
#endif
    OK(MPI_Type_free(&raw));
    OK(MPI_Type_free(&gone));
    OK(MPI_Comm_free(&alone));
    OK(MPI_Comm_free(&ring));
    return check_end();
}
