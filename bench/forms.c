/* The three forms of a collective call side by side: blocking, non-blocking with a wait at once,
 * and a start of a persistent request with a wait at once. One JSON line an operation and size;
 * batches of the forms take turns (see measure.h).
 *
 *     forms [--ms BUDGET] [--sizes LIST]
 *
 * BUDGET: milliseconds for a form of an operation of a size (default 50). Bytes as in coll.c: a
 * block's, or the whole vector of broadcast and reductions (in reduce_scatter rounded up to
 * equal shares). Rank 0 is the root. */
#define PROGRAM "forms"
#include "measure.h"
#include "options.h"

#define BATCHES 15
#define LIST 16

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };
static const char *const form_names[] = {"blocking_us", "nonblocking_us", "persistent_us"};

static int rank, size, *counts, *places;
static double *given, *got;
static MPI_Request request;
static const MPI_Comm all = MPI_COMM_WORLD;

/* One operation: makes the call of a form, which for a persistent one is the initialisation. */
#define OPERATION(name, Capital, ...)                                                                            \
    static void name(enum form form, int n)                                                                      \
    {                                                                                                            \
        (void)n;                                                                                                 \
        if (form == BLOCKING)                                                                                    \
            MPI_##Capital(__VA_ARGS__);                                                                          \
        else if (form == NONBLOCKING)                                                                            \
            MPI_I##name(__VA_ARGS__, &request);                                                                  \
        else                                                                                                     \
            MPI_##Capital##_init(__VA_ARGS__, MPI_INFO_NULL, &request);                                          \
    }
OPERATION(barrier, Barrier, all)
OPERATION(bcast, Bcast, got, n, MPI_DOUBLE, 0, all)
OPERATION(allreduce, Allreduce, given, got, n, MPI_DOUBLE, MPI_SUM, all)
OPERATION(allgather, Allgather, given, n, MPI_DOUBLE, got, n, MPI_DOUBLE, all)
OPERATION(allgatherv, Allgatherv, given, n, MPI_DOUBLE, got, counts, places, MPI_DOUBLE, all)
OPERATION(alltoall, Alltoall, given, n, MPI_DOUBLE, got, n, MPI_DOUBLE, all)
OPERATION(reduce, Reduce, given, got, n, MPI_DOUBLE, MPI_SUM, 0, all)
OPERATION(gather, Gather, given, n, MPI_DOUBLE, got, n, MPI_DOUBLE, 0, all)
OPERATION(scatter, Scatter, given, n, MPI_DOUBLE, got, n, MPI_DOUBLE, 0, all)
OPERATION(reduce_scatter_block, Reduce_scatter_block, given, got, (n + size - 1) / size, MPI_DOUBLE, MPI_SUM, all)
OPERATION(scan, Scan, given, got, n, MPI_DOUBLE, MPI_SUM, all)

static const struct operation {
    const char *name;
    void (*call)(enum form, int);
} operations[] = {{"barrier", barrier}, {"bcast", bcast}, {"allreduce", allreduce}, {"allgather", allgather},
                  {"allgatherv", allgatherv}, {"alltoall", alltoall}, {"reduce", reduce}, {"gather", gather},
                  {"scatter", scatter}, {"reduce_scatter", reduce_scatter_block}, {"scan", scan}};
#define OPERATIONS (int)(sizeof operations / sizeof operations[0])

static double batch(const struct operation *op, enum form form, int count, int iterations)
{
    MPI_Request kept = MPI_REQUEST_NULL;
    double begin;
    if (form == PERSISTENT)
        op->call(form, count), kept = request;
    MPI_Barrier(all);
    begin = MPI_Wtime();
    for (int i = 0; i < iterations; i++) {
        if (form == PERSISTENT)
            MPI_Start(&kept);
        else
            op->call(form, count);
        if (form != BLOCKING)
            MPI_Wait(form == PERSISTENT ? &kept : &request, MPI_STATUS_IGNORE);
    }
    begin = 1e6 * (MPI_Wtime() - begin) / iterations;
    if (form == PERSISTENT)
        MPI_Request_free(&kept);
    return begin;
}

static void cell(const struct operation *op, int bytes, double budget_us)
{
    struct batches times[FORMS];
    int count = bytes / (int)sizeof(double), iterations;
    double once;
    for (int r = 0; r < size; r++)
        counts[r] = count, places[r] = r * count;
    batch(op, NONBLOCKING, count, 20);
    once = batch(op, NONBLOCKING, count, 50);
    MPI_Allreduce(MPI_IN_PLACE, &once, 1, MPI_DOUBLE, MPI_MAX, all);
    iterations = (int)fmax(1, fmin(1e6, budget_us / BATCHES / once));
    for (int f = 0; f < FORMS; f++)
        times[f].count = BATCHES;
    for (int b = 0; b < BATCHES; b++)
        for (int f = 0; f < FORMS; f++)
            times[f].us[b] = batch(op, f, count, iterations);
    for (int f = 0; f < FORMS; f++)
        slowest(&times[f], all);
    if (rank)
        return;
    printf("{\"bench\": \"forms\", \"op\": \"%s\", \"bytes\": %d, \"ranks\": %d, \"iterations\": %d", op->name, bytes, size, iterations);
    for (int f = 0; f < FORMS; f++)
        printf(", "), print_times(form_names[f], &times[f]);
    printf("}\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int sizes[LIST] = {8, 1 << 10, 1 << 16}, size_count = 3, largest = 0;
    double budget_ms = 50;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--ms") == 0 && i + 1 < argc)
            budget_ms = atof(argv[++i]);
        else if (strcmp(argv[i], "--sizes") == 0 && i + 1 < argc)
            size_count = parse_sizes(argv[++i], sizes, LIST, sizeof(double), 8, 1 << 26, "sizes are multiples of 8 up to 64 MB, not");
        else
            give_up("there is no option", argv[i]);
    }
    for (int s = 0; s < size_count; s++)
        largest = sizes[s] > largest ? sizes[s] : largest;
    given = calloc(size, largest), got = calloc(size, largest);
    counts = malloc(size * sizeof(int)), places = malloc(size * sizeof(int));
    for (int s = 0; s < size_count; s++)
        for (int o = s > 0; o < OPERATIONS; o++)
            cell(&operations[o], o ? sizes[s] : 0, budget_ms * 1e3);
    MPI_Finalize();
    return 0;
}
