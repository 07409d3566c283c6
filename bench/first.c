/* What the first calls of a program cost, one by one: pages that no process has touched yet, plans and
 * connections that are not there yet. Programs of milliseconds consist of such calls (NPB in class
 * S); a loop that warms up does not see them. One JSON line for each call that is told, its time
 * the slowest rank's.
 *
 *   first [--op allreduce|alltoallv|halo] [--sizes BYTES,...] [--calls N]
 *
 * allreduce: MPI_Allreduce of BYTES bytes of integers. alltoallv: MPI_Alltoallv of BYTES bytes
 * to each rank. halo: BYTES bytes to and from both neighbours in a ring, packed by hand between
 * MPI_Irecv and MPI_Send, as HPCG does. One operation a run: what one has touched the next finds
 * there. Of several sizes the first is the first; give one for each run. */
#define PROGRAM "first"
#include "measure.h"
#include "options.h"

enum { MOST_CALLS = 100, MOST_SIZES = 16 };

static int rank, size;

struct data {
    int bytes, *counts, *places;
    int *out, *in;
    MPI_Request wait[2];
};

static void allreduce(struct data *d)
{
    MPI_Allreduce(d->out, d->in, d->bytes / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoallv(struct data *d)
{
    MPI_Alltoallv(d->out, d->counts, d->places, MPI_INT, d->in, d->counts, d->places, MPI_INT, MPI_COMM_WORLD);
}

static void halo(struct data *d)
{
    int n = d->bytes / 4, left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Irecv(d->in, n, MPI_INT, left, 1, MPI_COMM_WORLD, &d->wait[0]);
    MPI_Irecv(d->in + n, n, MPI_INT, right, 2, MPI_COMM_WORLD, &d->wait[1]);
    for (int i = 0; i < 2 * n; i++)
        d->out[i] = i ^ rank;
    MPI_Send(d->out, n, MPI_INT, right, 1, MPI_COMM_WORLD);
    MPI_Send(d->out + n, n, MPI_INT, left, 2, MPI_COMM_WORLD);
    MPI_Waitall(2, d->wait, MPI_STATUSES_IGNORE);
}

static const struct operation {
    const char *name;
    void (*call)(struct data *);
} OPERATIONS[] = {{"allreduce", allreduce}, {"alltoallv", alltoallv}, {"halo", halo}};

static const struct operation *named(const char *word)
{
    for (unsigned i = 0; i < sizeof OPERATIONS / sizeof *OPERATIONS; i++)
        if (strcmp(word, OPERATIONS[i].name) == 0)
            return &OPERATIONS[i];
    give_up("there is no operation", word);
    return NULL;
}

/* Whether call `k` of `n`, counted from 1, is told: 1, 2, 5, 10, 20, 50 and the last. */
static int is_told(int k, int calls)
{
    return k == calls || k == 1 || k == 2 || k == 5 || k == 10 || k == 20 || k == 50;
}

static void measure(const struct operation *op, int bytes, int calls)
{
    size_t ints = (size_t)(bytes / 4) * (size_t)(size > 2 ? size : 2);
    struct data d = {.bytes = bytes};
    struct batches took = {.count = calls};
    d.out = malloc(ints * sizeof *d.out), d.in = malloc(ints * sizeof *d.in);
    d.counts = malloc((size_t)size * sizeof *d.counts), d.places = malloc((size_t)size * sizeof *d.places);
    if (!d.out || !d.in || !d.counts || !d.places)
        give_up("there is no memory for", op->name);
    /* The program's own pages are not what is measured. */
    memset(d.out, 1, ints * sizeof *d.out), memset(d.in, 1, ints * sizeof *d.in);
    for (int i = 0; i < size; i++)
        d.counts[i] = bytes / 4, d.places[i] = i * (bytes / 4);
    for (int k = 0; k < calls; k++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        op->call(&d);
        took.us[k] = 1e6 * (MPI_Wtime() - begin);
    }
    slowest(&took, MPI_COMM_WORLD);
    for (int k = 1; rank == 0 && k <= calls; k++) {
        struct batches one = {.count = 1, .us = {took.us[k - 1]}};
        if (!is_told(k, calls))
            continue;
        printf("{\"bench\": \"first\", \"op\": \"%s\", \"mode\": \"call %d\", \"bytes\": %d, \"ranks\": %d, ", op->name, k, bytes, size);
        print_times("us", &one);
        printf("}\n");
    }
    free(d.out), free(d.in), free(d.counts), free(d.places);
}

int main(int argc, char **argv)
{
    const struct operation *op = &OPERATIONS[0];
    int sizes[MOST_SIZES] = {4116}, count = 1, calls = 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            give_up("an option without a value:", argv[i]);
        if (strcmp(argv[i], "--op") == 0)
            op = named(argv[i + 1]);
        else if (strcmp(argv[i], "--sizes") == 0)
            count = parse_sizes(argv[i + 1], sizes, MOST_SIZES, 4, 4, 1 << 26, "sizes are multiples of 4 from 4 to 67108864, not");
        else if (strcmp(argv[i], "--calls") == 0)
            calls = whole_number(argv[i + 1], 1, MOST_CALLS, "calls are 1 to 100, not");
        else
            give_up("there is no option", argv[i]);
    }
    for (int i = 0; i < count; i++)
        measure(op, sizes[i], calls);
    MPI_Finalize();
    return 0;
}
