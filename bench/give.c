/* One block from a master to all: broadcast against loops of send and isend, and a matrix
 * product that gives out its matrix B in these three ways; the programs of "A Comparative Study
 * of the MPI Communication Primitives on a Cluster" (sections 3 and 4). One JSON line a way and
 * size.
 *
 *     give [--sizes LIST] [--rounds N] [--product yes|no]
 *
 * Sizes are bytes of a block (default the paper's 80, 115.2, 156.8 and 180 KB); a block is a
 * square matrix of floats, so that 80 KB is 141 x 141. "us" is the time until the last rank has
 * the block: every rank times from a barrier to its own end, and the slowest counts. In the
 * product rank 0 gives B to all, rows of A to each, and collects rows of C, which must be right;
 * "us" is then rank 0's time. Each round is kept; two rounds before are not.
 *
 * The last round of each way is a phase for traces (`mpiexec --trace`, `kwtrace picture --phase`): 11 to
 * 13 are a block by bcast, send and isend, 21 to 23 the product. */
#define PROGRAM "give"
#include "measure.h"
#include "options.h"

#define LIST 16
#define MOST_RANKS 1024

static int rank, size;
static const MPI_Comm all = MPI_COMM_WORLD;

static void by_bcast(float *block, int count) { MPI_Bcast(block, count, MPI_FLOAT, 0, all); }

static void receive(float *block, int count) { MPI_Recv(block, count, MPI_FLOAT, 0, 1, all, MPI_STATUS_IGNORE); }

static void by_send(float *block, int count)
{
    for (int to = 1; rank == 0 && to < size; to++)
        MPI_Send(block, count, MPI_FLOAT, to, 1, all);
    if (rank)
        receive(block, count);
}

static void by_isend(float *block, int count)
{
    MPI_Request requests[MOST_RANKS];
    for (int to = 1; rank == 0 && to < size; to++)
        MPI_Isend(block, count, MPI_FLOAT, to, 1, all, &requests[to - 1]);
    if (rank)
        receive(block, count);
    else
        MPI_Waitall(size - 1, requests, MPI_STATUSES_IGNORE);
}

static const struct way {
    const char *name;
    void (*give)(float *block, int count);
} ways[] = {{"bcast", by_bcast}, {"send", by_send}, {"isend", by_isend}};

/* What a trace of the run has by name (MPI_Pcontrol): the last round of each way, and what is between
 * two of these. */
enum { BETWEEN = 1, GIVE = 11, PRODUCT = 21 };

/* Row i of A is i + 1 everywhere, B is 1 everywhere: row i of C is n (i + 1). */
static float expected(int n, int row) { return (float)n * (row + 1); }

static int rows_of(int n, int worker) { return n / (size - 1) + (worker - 1 < n % (size - 1)); }

static int first_row(int n, int worker)
{
    int first = 0;
    for (int w = 1; w < worker; w++)
        first += rows_of(n, w);
    return first;
}

static void multiply(const float *a, const float *b, float *c, int rows, int n)
{
    memset(c, 0, sizeof(float) * rows * n);
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
}

static void check_product(const float *c, int n)
{
    for (int i = 0; i < n * n; i++)
        if (c[i] != expected(n, i / n)) {
            fprintf(stderr, "give: row %d of the product has %g, not %g\n", i / n, c[i], expected(n, i / n));
            MPI_Abort(all, 1);
        }
}

static void product(const struct way *way, float *a, float *b, float *c, int n)
{
    way->give(b, n * n);
    if (rank == 0) {
        for (int w = 1; w < size; w++)
            MPI_Send(a + first_row(n, w) * n, rows_of(n, w) * n, MPI_FLOAT, w, 2, all);
        for (int w = 1; w < size; w++)
            MPI_Recv(c + first_row(n, w) * n, rows_of(n, w) * n, MPI_FLOAT, w, 3, all, MPI_STATUS_IGNORE);
    } else {
        int rows = rows_of(n, rank);
        MPI_Recv(a, rows * n, MPI_FLOAT, 0, 2, all, MPI_STATUS_IGNORE);
        multiply(a, b, c, rows, n);
        MPI_Send(c, rows * n, MPI_FLOAT, 0, 3, all);
    }
}

static void print(const char *op, const char *mode, int bytes, const struct batches *times)
{
    if (rank)
        return;
    printf("{\"bench\": \"give\", \"op\": \"%s\", \"mode\": \"%s\", \"bytes\": %d, \"ranks\": %d, ", op, mode, bytes, size);
    print_times("us", times);
    printf("}\n");
    fflush(stdout);
}

static void cell(const struct way *way, int bytes, int rounds, int with_product)
{
    int n = (int)sqrt(bytes / 4.0);
    float *a = calloc(n * n, sizeof *a), *b = calloc(n * n, sizeof *b), *c = calloc(n * n, sizeof *c);
    struct batches given = {.count = rounds}, whole = {.count = rounds};
    for (int i = 0; rank == 0 && i < n * n; i++)
        a[i] = i / n + 1, b[i] = 1;
    for (int round = -2; round < rounds; round++) {
        MPI_Barrier(all);
        if (round == rounds - 1)
            MPI_Pcontrol(GIVE + (int)(way - ways));
        double start = MPI_Wtime();
        way->give(b, n * n);
        given.us[round < 0 ? 0 : round] = (MPI_Wtime() - start) * 1e6;
    }
    MPI_Pcontrol(BETWEEN);
    slowest(&given, all);
    print("give", way->name, bytes, &given);
    for (int round = -2; with_product && size > 1 && round < rounds; round++) {
        MPI_Barrier(all);
        if (round == rounds - 1)
            MPI_Pcontrol(PRODUCT + (int)(way - ways));
        double start = MPI_Wtime();
        product(way, a, b, c, n);
        whole.us[round < 0 ? 0 : round] = (MPI_Wtime() - start) * 1e6;
    }
    MPI_Pcontrol(BETWEEN);
    if (with_product && size > 1) {
        if (rank == 0)
            check_product(c, n);
        print("product", way->name, bytes, &whole);
    }
    free(a), free(b), free(c);
}

int main(int argc, char **argv)
{
    int sizes[LIST] = {80000, 115200, 156800, 180000}, count = 4, rounds = 21, with_product = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    for (int i = 1; i < argc; i += 2)
        if (i + 1 == argc)
            give_up("an option without a value:", argv[i]);
        else if (strcmp(argv[i], "--sizes") == 0)
            count = parse_sizes(argv[i + 1], sizes, LIST, 1, 4, 1 << 26, "sizes go from 4 bytes to 64 MB, not");
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = whole_number(argv[i + 1], 1, MOST_BATCHES, "rounds go from 1 to 101, not");
        else if (strcmp(argv[i], "--product") == 0)
            with_product = argv[i + 1][0] == 'y';
        else
            give_up("there is no option", argv[i]);
    if (size > MOST_RANKS)
        give_up("there is room for 1024 ranks, not for", "more");
    for (int s = 0; s < count; s++)
        for (int w = 0; w < 3; w++)
            cell(&ways[w], sizes[s], rounds, with_product);
    MPI_Finalize();
    return 0;
}
