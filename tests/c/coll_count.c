// run: n=1,2,5 timeout=60
/* Collectives with MPI_Count and MPI_Aint: blocks that lie gigabytes apart in memory of which only they are touched, counts that no int
 * holds, and user functions that are told their length as MPI_Count; in all three forms. */
#include "check.h"
#include <sys/mman.h>

#define FAR ((MPI_Count)3 << 30) /* bytes from block to block: more than an int, and than an unsigned one at the second */
#define MOST 8
enum { EACH = 700 };

static int rank, size;
static char *far_out, *far_in; /* address space */
static int *out, *in;          /* room for a block from everybody */
static MPI_Count counts[MOST];
static MPI_Aint places[MOST], near[MOST];
static MPI_Datatype ints[MOST];

static int value(int from, int to, int i) { return from * 1000003 + to * 1009 + i; }
static int *at(char *base, int block) { return (int *)(base + block * FAR); }

static void *space(void) {
    void *p = mmap(NULL, MOST * FAR, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        FAILED("no address space");
        exit(1);
    }
    return p;
}

static void clear(void) {
    for (int r = 0; r < size; r++) {
        memset(at(far_in, r), -1, EACH * sizeof(int));
        for (int i = 0; i < EACH; i++) at(far_out, r)[i] = value(rank, r, i), out[r * EACH + i] = value(rank, r, i);
    }
    memset(in, -1, size * EACH * sizeof(int));
}

/* The block that came from a rank, which had meant it for `to`. */
static void came(const int *block, int from, int to, int line) {
    for (int i = 0; i < EACH; i++)
        if (block[i] != value(from, to, i)) {
            FAILED("line %d: element %d of the block from %d is %d, not %d", line, i, from, block[i], value(from, to, i));
            return;
        }
}
#define CAME(block, from, to) came(block, from, to, __LINE__)

#define CALL(form, Name, name, ...) do {                                                       \
        MPI_Request q_;                                                                        \
        clear();                                                                               \
        if (form == 0) OK(MPI_##Name##_c(__VA_ARGS__));                                        \
        if (form == 1) { OK(MPI_I##name##_c(__VA_ARGS__, &q_)); OK(MPI_Wait(&q_, MPI_STATUS_IGNORE)); } \
        if (form == 2) {                                                                       \
            OK(MPI_##Name##_init_c(__VA_ARGS__, MPI_INFO_NULL, &q_));                          \
            OK(MPI_Start(&q_));                                                                \
            OK(MPI_Wait(&q_, MPI_STATUS_IGNORE));                                              \
            OK(MPI_Request_free(&q_));                                                         \
        }                                                                                      \
    } while (0)

static void apart(int form, MPI_Comm comm) {
    int root = size - 1;
    CALL(form, Gatherv, gatherv, out, EACH, MPI_INT, far_in, counts, places, MPI_INT, root, comm);
    for (int r = 0; rank == root && r < size; r++) CAME(at(far_in, r), r, 0);
    CALL(form, Scatterv, scatterv, far_out, counts, places, MPI_INT, in, EACH, MPI_INT, root, comm);
    CAME(in, root, rank);
    CALL(form, Allgatherv, allgatherv, out, EACH, MPI_INT, far_in, counts, places, MPI_INT, comm);
    for (int r = 0; r < size; r++) CAME(at(far_in, r), r, 0);
    CALL(form, Alltoallv, alltoallv, far_out, counts, places, MPI_INT, far_in, counts, places, MPI_INT, comm);
    for (int r = 0; r < size; r++) CAME(at(far_in, r), r, rank);
    CALL(form, Alltoallw, alltoallw, far_out, counts, near, ints, far_in, counts, near, ints, comm);
    for (int r = 0; r < size; r++) CAME(at(far_in, r), r, rank);
}

static void together(int form, MPI_Comm comm) {
    int root = 0, all = 0;
    CALL(form, Bcast, bcast, rank == root ? out : in, EACH, MPI_INT, root, comm);
    if (rank != root) CAME(in, root, 0);
    CALL(form, Gather, gather, out, EACH, MPI_INT, in, EACH, MPI_INT, root, comm);
    for (int r = 0; rank == root && r < size; r++) CAME(in + r * EACH, r, 0);
    CALL(form, Scatter, scatter, out, EACH, MPI_INT, in, EACH, MPI_INT, root, comm);
    CAME(in, root, rank);
    CALL(form, Allgather, allgather, out, EACH, MPI_INT, in, EACH, MPI_INT, comm);
    for (int r = 0; r < size; r++) CAME(in + r * EACH, r, 0);
    CALL(form, Alltoall, alltoall, out, EACH, MPI_INT, in, EACH, MPI_INT, comm);
    for (int r = 0; r < size; r++) CAME(in + r * EACH, r, rank);
    for (int r = 0; r < size; r++) all += value(r, 0, 5);
    CALL(form, Reduce, reduce, out, in, EACH, MPI_INT, MPI_SUM, root, comm);
    if (rank == root) CHECK_EQ(in[5], all);
    CALL(form, Allreduce, allreduce, out, in, EACH, MPI_INT, MPI_SUM, comm);
    CHECK_EQ(in[5], all);
    CALL(form, Reduce_scatter_block, reduce_scatter_block, out, in, EACH, MPI_INT, MPI_MAX, comm);
    CAME(in, size - 1, rank);
    CALL(form, Reduce_scatter, reduce_scatter, out, in, counts, MPI_INT, MPI_MAX, comm);
    CAME(in, size - 1, rank);
    CALL(form, Scan, scan, out, in, EACH, MPI_INT, MPI_MAX, comm);
    CAME(in, rank, 0);
    CALL(form, Exscan, exscan, out, in, EACH, MPI_INT, MPI_MAX, comm);
    if (rank) CAME(in, rank - 1, 0);
}

/* 2^32 - 1 elements without data: -1 as an int. */
static void empty(int form, MPI_Comm comm) {
    MPI_Count many = ((MPI_Count)1 << 32) - 1, lists[MOST];
    MPI_Aint zeros[MOST] = {0};
    MPI_Datatype nothing, types[MOST];
    OK(MPI_Type_contiguous(0, MPI_INT, &nothing));
    OK(MPI_Type_commit(&nothing));
    for (int r = 0; r < size; r++) lists[r] = many, types[r] = nothing;
    CALL(form, Bcast, bcast, in, many, nothing, 0, comm);
    CALL(form, Gather, gather, out, many, nothing, in, many, nothing, 0, comm);
    CALL(form, Scatter, scatter, out, many, nothing, in, many, nothing, 0, comm);
    CALL(form, Allgather, allgather, out, many, nothing, in, many, nothing, comm);
    CALL(form, Alltoall, alltoall, out, many, nothing, in, many, nothing, comm);
    CALL(form, Gatherv, gatherv, out, many, nothing, in, lists, zeros, nothing, 0, comm);
    CALL(form, Scatterv, scatterv, out, lists, zeros, nothing, in, many, nothing, 0, comm);
    CALL(form, Allgatherv, allgatherv, out, many, nothing, in, lists, zeros, nothing, comm);
    CALL(form, Alltoallv, alltoallv, out, lists, zeros, nothing, in, lists, zeros, nothing, comm);
    CALL(form, Alltoallw, alltoallw, out, lists, zeros, types, in, lists, zeros, types, comm);
    CHECK_EQ(in[0], -1);
    OK(MPI_Type_free(&nothing));
}

/* A user's function of either width combines what either width of call gives it. */
static MPI_Count told;

static void add_many(void *a, void *b, MPI_Count *n, MPI_Datatype *type) {
    told = *n;
    for (MPI_Count i = 0; i < *n; i++) ((int *)b)[i] += ((int *)a)[i];
}

static void add(void *a, void *b, int *n, MPI_Datatype *type) {
    told = *n;
    for (int i = 0; i < *n; i++) ((int *)b)[i] += ((int *)a)[i];
}

static void functions(MPI_Comm comm) {
    MPI_Op ops[2];
    int all = 0;
    OK(MPI_Op_create_c(add_many, 1, &ops[0]));
    OK(MPI_Op_create(add, 1, &ops[1]));
    for (int r = 0; r < size; r++) all += value(r, 0, 5);
    for (int k = 0; k < 2; k++) {
        told = 0;
        for (int form = 0; form < 3; form++) {
            CALL(form, Allreduce, allreduce, out, in, EACH, MPI_INT, ops[k], comm);
            CHECK_EQ(in[5], all);
        }
        clear();
        OK(MPI_Allreduce(out, in, EACH, MPI_INT, ops[k], comm));
        CHECK_EQ(in[5], all);
        clear();
        memcpy(in, out, EACH * sizeof(int));
        OK(MPI_Reduce_local_c(out, in, EACH, MPI_INT, ops[k]));
        CHECK_EQ(in[7], 2 * out[7]);
        CHECK_EQ(told, EACH);
        OK(MPI_Op_free(&ops[k]));
    }
    CHECK_CLASS(MPI_Reduce_local_c(out, in, -1, MPI_INT, MPI_SUM), MPI_ERR_COUNT);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(check_comm, MPI_ERRORS_RETURN);
    rank = check_rank, size = check_size;
    far_out = space(), far_in = space();
    out = malloc(size * EACH * sizeof(int)), in = malloc(size * EACH * sizeof(int));
    for (int r = 0; r < size; r++)
        counts[r] = EACH, places[r] = r * (FAR / sizeof(int)), near[r] = r * FAR, ints[r] = MPI_INT;
    for (int form = 0; form < 3; form++) {
        apart(form, check_comm);
        together(form, check_comm);
        empty(form, check_comm);
    }
    functions(check_comm);
    free(out);
    free(in);
    return check_end();
}
