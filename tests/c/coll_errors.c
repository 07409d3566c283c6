// run: n=1,2,4 timeout=60
/* Wrong arguments of collectives give the right error class (MPI 5.0, 9.4); no rank communicates in a call that fails. And
 * ranks that do not agree on amounts: the rank that sees it reports both sides, also without KW_CHECK=1, and no rank waits for ever. */
#include "check.h"

#if STRICT
/* Of the ranks, at least one has got this class and a sentence with these; the others nothing, or an error of amounts as well. */
static void somebody_hears(int code, int class, const char *one, const char *other, int line) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int len, heard, all;
    if (code != MPI_SUCCESS) MPI_Error_string(code, text, &len);
    if (code != MPI_SUCCESS && check_class(code) != MPI_ERR_TRUNCATE && check_class(code) != MPI_ERR_COUNT)
        FAILED("line %d: class %d: %s", line, check_class(code), text);
    heard = check_class(code) == class && strstr(text, one) && strstr(text, other);
    if (code != MPI_SUCCESS && !heard) FAILED("line %d: '%s' lacks '%s' or '%s'", line, text, one, other);
    OK(MPI_Allreduce(&heard, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (all == 0) FAILED("line %d: no rank has reported it", line);
}
#define HEARD(call, class, one, other) somebody_hears(call, class, one, other, __LINE__)

static int later(int code, MPI_Request *r) { return code == MPI_SUCCESS ? MPI_Wait(r, MPI_STATUS_IGNORE) : code; }

/* The last rank gives or takes another amount. */
static void disagreements(int rank, int size, MPI_Comm comm) {
    static int a[512], b[512];
    int last = rank == size - 1, n[64], at[64];
    char gives[64], takes[64];
    MPI_Request r;
    MPI_Comm first; /* the first collective of a communicator sends messages */
    OK(MPI_Comm_dup(comm, &first));
    for (int i = 0; i < size; i++) n[i] = 1, at[i] = 2 * i;
    snprintf(gives, sizeof gives, "rank %d sends 8 bytes", size - 1);
    snprintf(takes, sizeof takes, "rank %d receives 4 bytes from it", size - 1);
    HEARD(MPI_Gather(a, 1 + last, MPI_INT, b, 1, MPI_INT, 0, comm), MPI_ERR_TRUNCATE, gives, "receives 4 bytes from it");
    HEARD(MPI_Gatherv(a, 1 + last, MPI_INT, b, n, at, MPI_INT, 0, comm), MPI_ERR_TRUNCATE, gives, "rank 0 receives 4 bytes from it");
    HEARD(later(MPI_Igatherv(a, 1 + last, MPI_INT, b, n, at, MPI_INT, 0, comm, &r), &r), MPI_ERR_TRUNCATE, gives, "rank 0 receives 4 bytes from it");
    for (int i = 0; i < size; i++) n[i] = 2;
    HEARD(MPI_Gatherv(a, 2 - last, MPI_INT, b, n, at, MPI_INT, 0, comm), MPI_ERR_COUNT, "sends 4 bytes", "rank 0 receives 8 bytes from it");
    HEARD(MPI_Scatterv(a, n, at, MPI_INT, b, 2 - last, MPI_INT, 0, comm), MPI_ERR_TRUNCATE, "rank 0 sends 8 bytes", takes);
    HEARD(MPI_Scatter(a, 2, MPI_INT, b, 2 - last, MPI_INT, 0, first), MPI_ERR_TRUNCATE, "sends 8 bytes", takes);
    OK(MPI_Comm_free(&first));
    for (int i = 0; i < size; i++) n[i] = last && i == 0 ? 2 : 1;
    int ones[64];
    for (int i = 0; i < size; i++) ones[i] = 1;
    HEARD(MPI_Alltoallv(a, n, at, MPI_INT, b, ones, at, MPI_INT, comm), MPI_ERR_TRUNCATE, gives, "rank 0 receives 4 bytes from it");
    /* What a rank passes on it passes on all the same: the communicator is in order. */
    for (int i = 0; i < size; i++) a[i] = 10 * rank + i, b[i] = -1;
    OK(MPI_Alltoall(a, 1, MPI_INT, b, 1, MPI_INT, comm));
    for (int i = 0; i < size; i++) CHECK_EQ(b[i], 10 * i + rank);
}

/* Long and short data, also where ranks share memory (from the second collective of a communicator on): who sees it names the last rank and itself. */
static void somebody_saw(int code, int last, int line) {
    char text[MPI_MAX_ERROR_STRING] = "", who[32];
    int len, heard, all, class = check_class(code);
    if (code != MPI_SUCCESS) MPI_Error_string(code, text, &len);
    if (code != MPI_SUCCESS && class != MPI_ERR_TRUNCATE && class != MPI_ERR_COUNT) FAILED("line %d: class %d: %s", line, class, text);
    snprintf(who, sizeof who, "rank %d ", last);
    heard = code != MPI_SUCCESS && strstr(text, who) && (strstr(text, " receives ") || strstr(text, " called "));
    OK(MPI_Allreduce(&heard, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (all == 0) FAILED("line %d: no rank has reported it", line);
}
#define SEEN(...)                                                                                     \
    do {                                                                                              \
        MPI_Comm c;                                                                                   \
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));                                                         \
        OK(MPI_Barrier(c));                                                                           \
        OK(MPI_Barrier(c));                                                                           \
        somebody_saw(__VA_ARGS__, size - 1, __LINE__);                                                \
        OK(MPI_Comm_free(&c));                                                                        \
    } while (0)

static void unequal_counts(int rank, int size) {
    static int a[1 << 17], b[1 << 17];
    for (int n = 8; n <= 20000; n += 19992) {
        int m = n + (rank == size - 1);
        SEEN(MPI_Bcast(a, m, MPI_INT, 0, c));
        SEEN(MPI_Reduce(a, b, m, MPI_INT, MPI_SUM, 0, c));
        SEEN(MPI_Allreduce(a, b, m, MPI_INT, MPI_SUM, c));
        SEEN(MPI_Allgather(a, m, MPI_INT, b, m, MPI_INT, c));
        SEEN(MPI_Alltoall(a, m, MPI_INT, b, m, MPI_INT, c));
        SEEN(MPI_Reduce_scatter_block(a, b, m, MPI_INT, MPI_SUM, c));
        SEEN(MPI_Gather(a, m, MPI_INT, b, n, MPI_INT, 0, c));
        SEEN(MPI_Scatter(a, n, MPI_INT, b, m, MPI_INT, 0, c));
        SEEN(MPI_Scan(a, b, m, MPI_INT, MPI_SUM, c));
        SEEN(MPI_Exscan(a, b, m, MPI_INT, MPI_SUM, c));
    }
}
#endif

int main(int argc, char **argv)
{
    int rank, size, a[64] = {0}, b[64] = {0}, minus[64], at[64] = {0};
    float f[4] = {0}, g[4];
    MPI_Op op = MPI_OP_NULL;
    setenv("KW_CHECK", "0", 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 64; i++)
        minus[i] = -1;
    CHECK_FAILS(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
    CHECK_FAILS(MPI_Bcast(a, -1, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
    CHECK_FAILS(MPI_Bcast(a, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT);
    CHECK_FAILS(MPI_Bcast(a, 1, MPI_INT, -1, MPI_COMM_WORLD), MPI_ERR_ROOT);
    CHECK_FAILS(MPI_Bcast(a, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    CHECK_FAILS(MPI_Reduce(a, b, 1, MPI_INT, MPI_SUM, size, MPI_COMM_WORLD), MPI_ERR_ROOT);
    CHECK_FAILS(MPI_Allreduce(a, b, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP);
    CHECK_FAILS(MPI_Allreduce(f, g, 1, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD), MPI_ERR_OP);
    CHECK_FAILS(MPI_Allreduce(f, g, 1, MPI_FLOAT, MPI_MAXLOC, MPI_COMM_WORLD), MPI_ERR_OP);
    CHECK_FAILS(MPI_Allreduce(a, a, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CHECK_FAILS(MPI_Allgather(a, -1, MPI_INT, b, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_COUNT);
    CHECK_FAILS(MPI_Alltoallv(a, minus, at, MPI_INT, b, minus, at, MPI_INT, MPI_COMM_WORLD), MPI_ERR_COUNT);
    CHECK_FAILS(MPI_Gather(a, 1, MPI_INT, b, 1, MPI_INT, size + 3, MPI_COMM_WORLD), MPI_ERR_ROOT);
    CHECK_FAILS(MPI_Op_free(&op), MPI_ERR_OP);
    op = MPI_SUM;
    CHECK_FAILS(MPI_Op_free(&op), MPI_ERR_OP);
    CHECK_FAILS(MPI_Reduce_local(f, g, 1, MPI_FLOAT, MPI_LXOR), MPI_ERR_OP);
    CHECK_FAILS(MPI_Reduce_local(f, g, -1, MPI_FLOAT, MPI_SUM), MPI_ERR_COUNT);
    CHECK_FAILS(MPI_Reduce_local(f, g, 1, MPI_DATATYPE_NULL, MPI_SUM), MPI_ERR_TYPE);
    CHECK_FAILS(MPI_Reduce_local(f, g, 1, MPI_FLOAT, MPI_OP_NULL), MPI_ERR_OP);
    CHECK_FAILS(MPI_Reduce_local(f, f, 1, MPI_FLOAT, MPI_SUM), MPI_ERR_BUFFER);
    CHECK_FAILS(MPI_Reduce_local(NULL, g, 1, MPI_FLOAT, MPI_SUM), MPI_ERR_BUFFER);
    CHECK_FAILS(MPI_Reduce_local(f, NULL, 1, MPI_FLOAT, MPI_SUM), MPI_ERR_BUFFER);
    CHECK_FAILS(MPI_Reduce_local(MPI_IN_PLACE, g, 1, MPI_FLOAT, MPI_SUM), MPI_ERR_BUFFER);
    CHECK_FAILS(MPI_Op_commutative(MPI_OP_NULL, a), MPI_ERR_OP);
    CHECK_FAILS(MPI_Op_create(NULL, 1, &op), MPI_ERR_ARG);
#if STRICT
    if (size > 1) disagreements(rank, size, MPI_COMM_WORLD);
    if (size > 1) unequal_counts(rank, size);
#endif
    /* What was refused left no trace: this still works. */
    a[0] = 1;
    MPI_Allreduce(a, b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(b[0], size);
    return check_result();
}
