// run: n=2,4 timeout=60
/* KW_CHECK=1: calls that do not fit together give every rank an error that names both sides, in all three forms; the
 * communicator can be used afterwards, and calls that fit are left alone. */
#include "check.h"

static int rank, size, last; /* the last rank does it wrong */

/* Every rank gets this class, and a sentence with both of these in it. */
static void hears(int code, int class, const char *one, const char *other, int line) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int len;
    if (check_class(code) != class) FAILED("line %d: class %d, not %d", line, check_class(code), class);
    MPI_Error_string(code, text, &len);
    if (!strstr(text, one) || !strstr(text, other)) FAILED("line %d: '%s' lacks '%s' or '%s'", line, text, one, other);
}
#define HEARS(call, class, one, other) hears(call, class, one, other, __LINE__)

static int later(int code, MPI_Request *r) {
    return code == MPI_SUCCESS ? MPI_Wait(r, MPI_STATUS_IGNORE) : code;
}

static void works(MPI_Comm comm) {
    int one = 1, sum = 0;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, size);
    OK(MPI_Barrier(comm));
}

static void mismatches(MPI_Comm comm) {
    static int a[4096], b[4096], n[64], at[64];
    char mine[64], zero[64] = "rank 0 calls";
    MPI_Request r;
    MPI_Comm c = MPI_COMM_NULL;
    snprintf(mine, sizeof mine, "rank %d calls", size - 1);
    for (int i = 0; i < 64; i++) n[i] = 1, at[i] = 0;
    HEARS(MPI_Bcast(a, 4, MPI_INT, last, comm), MPI_ERR_ROOT, "MPI_Bcast of 4 MPI_INT with root 1", "with root 0 on MPI_COMM_WORLD");
    works(comm);
    HEARS(last ? MPI_Reduce(a, b, 1, MPI_INT, MPI_SUM, 0, comm) : MPI_Bcast(a, 4, MPI_INT, 0, comm), MPI_ERR_OTHER, "calls MPI_Reduce", "rank 0 calls MPI_Bcast");
    HEARS(MPI_Bcast(a, 4 + last, MPI_INT, 0, comm), MPI_ERR_COUNT, zero, mine);
    HEARS(MPI_Bcast(a, 4, last ? MPI_FLOAT : MPI_INT, 0, comm), MPI_ERR_TYPE, "of 4 MPI_FLOAT", "of 4 MPI_INT");
    HEARS(MPI_Reduce(a, b, 1, MPI_INT, last ? MPI_MAX : MPI_SUM, 0, comm), MPI_ERR_OP, "by MPI_MAX", "by MPI_SUM");
    HEARS(MPI_Allreduce(last ? MPI_IN_PLACE : a, b, 1, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER, "with MPI_IN_PLACE", zero);
    HEARS(MPI_Allreduce(a, b, 1 + last, MPI_INT, MPI_SUM, comm), MPI_ERR_COUNT, "of 2 MPI_INT", "of 1 MPI_INT");
    HEARS(MPI_Scan(a, b, 1, last ? MPI_UNSIGNED : MPI_INT, MPI_SUM, comm), MPI_ERR_TYPE, "MPI_UNSIGNED", "of 1 MPI_INT");
    HEARS(MPI_Gather(a, 1 + last, MPI_INT, b, 1, MPI_INT, 0, comm), MPI_ERR_TRUNCATE, mine, "gives 8 bytes where rank 0 takes 4");
    HEARS(MPI_Scatter(a, 2, MPI_INT, b, 2 - last, MPI_INT, 0, comm), MPI_ERR_TRUNCATE, "rank 0 gives 8 bytes", mine);
    HEARS(MPI_Allgather(a, 1, MPI_INT, b, 1, last ? MPI_FLOAT : MPI_INT, comm), MPI_ERR_TYPE, mine, "the datatypes differ");
    HEARS(MPI_Alltoall(a, 2 - last, MPI_INT, b, 2 - last, MPI_INT, comm), MPI_ERR_TRUNCATE, "gives 8 bytes where", "takes 4");
    if (last) n[0] = 2;
    HEARS(MPI_Alltoallv(a, n, at, MPI_INT, b, n, at, MPI_INT, comm), MPI_ERR_COUNT, "gives 4 bytes where", "takes 8");
    HEARS(MPI_Reduce_scatter(a, b, n, MPI_INT, MPI_SUM, comm), MPI_ERR_COUNT, mine, " MPI_INT by MPI_SUM");
    n[0] = 1;
    HEARS(MPI_Reduce_scatter_block(a, b, 1 + last, MPI_INT, MPI_SUM, comm), MPI_ERR_COUNT, "of 2 MPI_INT", "of 1 MPI_INT");
    works(comm);
    /* Forms do not go together either. */
    HEARS(last ? MPI_Barrier(comm) : later(MPI_Ibarrier(comm, &r), &r), MPI_ERR_OTHER, "MPI_Barrier", "MPI_Ibarrier");
    HEARS(later(MPI_Ibcast(a, 4, MPI_INT, last, comm, &r), &r), MPI_ERR_ROOT, "MPI_Ibcast", "with root 0");
    OK(MPI_Allreduce_init(a, b, 1 + last, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r));
    for (int i = 0; i < 2; i++) {
        OK(MPI_Start(&r));
        HEARS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_COUNT, "MPI_Allreduce_init of 2 MPI_INT", zero);
    }
    OK(MPI_Request_free(&r));
    /* One rank's arguments are refused: the others do not wait for it. */
    HEARS(MPI_Bcast(a, last ? -1 : 1, MPI_INT, 0, comm), MPI_ERR_COUNT, "MPI_Bcast: ", "count is -1");
    HEARS(later(MPI_Ibcast(a, rank ? 1 : -1, MPI_INT, 0, comm, &r), &r), MPI_ERR_COUNT, "", "count is -1");
    works(comm);
    /* Refused, and the others never start it. */
    int code = MPI_Bcast_init(a, last ? -1 : 1, MPI_INT, 0, comm, MPI_INFO_NULL, &r);
    CHECK_CLASS(code, last ? MPI_ERR_COUNT : MPI_SUCCESS);
    if (!last) OK(MPI_Request_free(&r));
    /* Calls that make communicators. */
    HEARS(last ? MPI_Comm_dup(comm, &c) : MPI_Barrier(comm), MPI_ERR_OTHER, "MPI_Comm_dup", "MPI_Barrier");
    HEARS(last ? MPI_Comm_dup(comm, &c) : MPI_Comm_split(comm, 0, 0, &c), MPI_ERR_OTHER, "MPI_Comm_dup", "MPI_Comm_split");
    works(comm);
}

/* What the standard allows: other types with the same elements, MPI_PACKED, other handles of the user's operations. */
static void may(void *in, void *inout, int *n, MPI_Datatype *type) {
    for (int i = 0; i < *n; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void allowed(void) {
    int a[8] = {0}, b[8 * 64], n[64], at[64], sum = 0;
    MPI_Datatype two;
    MPI_Op op, more;
    OK(MPI_Type_contiguous(2, MPI_INT, &two));
    OK(MPI_Type_commit(&two));
    if (last) OK(MPI_Op_create(may, 1, &more));
    OK(MPI_Op_create(may, 1, &op));
    OK(MPI_Bcast(a, last ? 4 : 2, last ? MPI_INT : two, 0, MPI_COMM_WORLD));
    OK(MPI_Bcast(a, last ? 16 : 4, last ? MPI_PACKED : MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Gather(rank ? (void *)a : MPI_IN_PLACE, 2, MPI_INT, b, 1, two, 0, MPI_COMM_WORLD));
    OK(MPI_Allreduce(&check_size, &sum, 1, MPI_INT, op, MPI_COMM_WORLD));
    CHECK_EQ(sum, size * size);
    OK(MPI_Scan(last ? MPI_IN_PLACE : a, b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) n[i] = i % 3, at[i] = 3 * i;
    OK(MPI_Allgatherv(a, n[rank], MPI_INT, b, n, at, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Gatherv(a, n[rank], MPI_INT, b, n, at, MPI_INT, size - 1, MPI_COMM_WORLD));
    OK(MPI_Scatterv(b, n, at, MPI_INT, a, n[rank], MPI_INT, size - 1, MPI_COMM_WORLD));
    OK(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, n, at, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 1, two, MPI_COMM_WORLD));
    OK(MPI_Op_free(&op));
    if (last) OK(MPI_Op_free(&more));
    OK(MPI_Type_free(&two));
}

static void between_groups(void) {
    MPI_Comm half, inter, c;
    int side = rank % 2, a[4] = {0}, b[256], role;
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 5, &inter));
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    role = side ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    OK(MPI_Bcast(a, 4, MPI_INT, role, inter));
    OK(MPI_Allreduce(a, b, 4, MPI_INT, MPI_SUM, inter));
    OK(MPI_Allgather(a, 1, MPI_INT, b, 1, MPI_INT, inter));
    OK(MPI_Reduce(a, b, 4, MPI_INT, MPI_SUM, role, inter));
    HEARS(MPI_Bcast(a, last ? 3 : 4, MPI_INT, role, inter), MPI_ERR_TRUNCATE, "MPI_ROOT", "gives 16 bytes");
    /* The others' root says that it is none. */
    HEARS(MPI_Bcast(a, 4, MPI_INT, side ? 0 : MPI_PROC_NULL, inter), MPI_ERR_ROOT, "with root 0", "MPI_PROC_NULL");
    OK(MPI_Barrier(inter));
    OK(MPI_Comm_dup(inter, &c));
    OK(MPI_Comm_free(&c));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

int main(int argc, char **argv) {
    setenv("KW_CHECK", "1", 1);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    rank = check_rank, size = check_size, last = rank == size - 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    allowed();
#if STRICT
    mismatches(MPI_COMM_WORLD);
    between_groups();
#endif
    return check_end();
}
