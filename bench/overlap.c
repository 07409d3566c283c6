/* Overlap of communication and computation: one JSON line an operation and size.
 *
 *     overlap [--ms BUDGET] [OPERATION:BYTES...]        operations: exchange, ibcast, ireduce, iallreduce, iallgather,
 *                                                      igather, iscatter, ialltoall, ireduce_scatter, iscan, raw, kernel
 *
 * Method. Batches of iterations between two looks at the clock, slowest rank's time, as in
 * coll.c; four kinds of batch are run in turn, so that a network whose speed drifts treats them
 * alike:
 *   blocking    the blocking call (for exchange: MPI_Sendrecv)
 *   alone       start, wait: t
 *   work        computation only, c: a fixed amount that took 1.5 t when it was calibrated on this rank
 *   total       start, the same computation in one piece without a call to MPI, wait
 * overlap = 1 - (total - c) / t, of the medians: 1 when communication costs nothing beside
 * computation, 0 when it is not begun before the wait, below 0 when both together take longer
 * than one after the other. The work is arithmetic in registers; every rank wants a processor of
 * its own. In exchange each rank sends to and receives from the one beside it; the bytes of
 * ibcast, ireduce, iallreduce, iscan and ireduce_scatter (equal shares; a multiple of 8 times
 * the ranks) are the vector's, the others' a block's; rank 0 is the root. raw is the exchange
 * over a plain TCP connection, by two threads that sleep in the system: what this machine and
 * this network leave for overlap. kernel is the same without any thread: the sockets have room
 * for everything, start puts it there and wait takes it out, so that no thread wakes while the
 * program computes. Data is checked after each kind of batch, outside the timing. */
#define PROGRAM "overlap"
#include "measure.h"
#include "options.h"
#include "raw.h"
#include <pthread.h>
#include <semaphore.h>

#define BATCHES 11
#define WORK_PER_T 1.5

static int rank, size, count;
static double *given, *got;
static MPI_Request requests[2];
static const MPI_Comm all = MPI_COMM_WORLD;

static void start_exchange(void)
{
    MPI_Irecv(got, count, MPI_DOUBLE, rank ^ 1, 1, all, &requests[0]);
    MPI_Isend(given, count, MPI_DOUBLE, rank ^ 1, 1, all, &requests[1]);
}

static void block_exchange(void)
{
    MPI_Sendrecv(given, count, MPI_DOUBLE, rank ^ 1, 1, got, count, MPI_DOUBLE, rank ^ 1, 1, all, MPI_STATUS_IGNORE);
}

/* The exchange without a library: two threads that sleep in one call of the system each. */
static int raw = -1, raw_awaits;
static sem_t raw_begin[2], raw_ended;

static void *raw_sender(void *unused)
{
    for (;;) {
        while (sem_wait(&raw_begin[0])) {}
        raw_send(raw, (const char *)given, sizeof(double) * count, 0);
        sem_post(&raw_ended);
    }
    return unused;
}

static void *raw_receiver(void *unused)
{
    for (;;) {
        while (sem_wait(&raw_begin[1])) {}
        raw_receive_asleep(raw, (char *)got, sizeof(double) * count);
        sem_post(&raw_ended);
    }
    return unused;
}

static void open_raw(void)
{
    pthread_t thread;
    raw = raw_connect(rank, 0);
    raw_check(sem_init(&raw_begin[0], 0, 0) == 0 && sem_init(&raw_begin[1], 0, 0) == 0 && sem_init(&raw_ended, 0, 0) == 0, "sem_init");
    raw_check(pthread_create(&thread, NULL, raw_sender, NULL) == 0 && pthread_create(&thread, NULL, raw_receiver, NULL) == 0, "thread");
}

static void start_raw(void)
{
    if (raw < 0)
        open_raw();
    requests[0] = requests[1] = MPI_REQUEST_NULL;
    raw_awaits = 2;
    sem_post(&raw_begin[1]);
    sem_post(&raw_begin[0]);
}

static void wait_raw(void)
{
    for (; raw_awaits; raw_awaits--)
        while (sem_wait(&raw_ended)) {}
}

static void block_raw(void)
{
    start_raw();
    wait_raw();
}

/* The exchange by the two kernels alone. */
static int roomy = -1, roomy_awaits;

static void start_kernel(void)
{
    if (roomy < 0)
        roomy = raw_connect(rank, 8 << 20);
    requests[0] = requests[1] = MPI_REQUEST_NULL;
    roomy_awaits = 1;
    raw_send(roomy, (const char *)given, sizeof(double) * count, 0);
}

static void wait_kernel(void)
{
    if (roomy_awaits)
        raw_receive_asleep(roomy, (char *)got, sizeof(double) * count);
    roomy_awaits = 0;
}

static void block_kernel(void)
{
    start_kernel();
    wait_kernel();
}

/* A collective by its arguments, started and blocking; the second request is for exchange only. */
#define COLLECTIVE(name, Name, ...)                                                                                                 \
    static void start_i##name(void) { requests[1] = MPI_REQUEST_NULL, MPI_I##name(__VA_ARGS__, all, &requests[0]); }                \
    static void block_i##name(void) { MPI_##Name(__VA_ARGS__, all); }

COLLECTIVE(bcast, Bcast, rank ? got : given, count, MPI_DOUBLE, 0)
COLLECTIVE(reduce, Reduce, given, got, count, MPI_DOUBLE, MPI_SUM, 0)
COLLECTIVE(allreduce, Allreduce, given, got, count, MPI_DOUBLE, MPI_SUM)
COLLECTIVE(allgather, Allgather, given, count, MPI_DOUBLE, got, count, MPI_DOUBLE)
COLLECTIVE(gather, Gather, given, count, MPI_DOUBLE, got, count, MPI_DOUBLE, 0)
COLLECTIVE(scatter, Scatter, given, count, MPI_DOUBLE, got, count, MPI_DOUBLE, 0)
COLLECTIVE(alltoall, Alltoall, given, count, MPI_DOUBLE, got, count, MPI_DOUBLE)
COLLECTIVE(scan, Scan, given, got, count, MPI_DOUBLE, MPI_SUM)
COLLECTIVE(reduce_scatter_block, Reduce_scatter_block, given, got, count / size, MPI_DOUBLE, MPI_SUM)

/* Rank r gives r + 1 everywhere. */
static double from_neighbour(void) { return (rank ^ 1) + 1; }
static double sum_of_all(void) { return size * (size + 1) / 2; }
static double sum_to_me(void) { return (rank + 1) * (rank + 2) / 2; }
static double from_last(void) { return size; }
static double from_root(void) { return 1; }

/* How many doubles this rank gets. */
static int block(void) { return count; }
static int blocks(void) { return count * size; }
static int share(void) { return count / size; }
static int block_at_root(void) { return rank ? 0 : count; }
static int blocks_at_root(void) { return rank ? 0 : count * size; }
static int block_elsewhere(void) { return rank ? count : 0; }

static const struct operation {
    const char *name;
    void (*start)(void), (*block)(void);
    int (*results)(void);
    double (*last)(void); /* value of the last double received */
} operations[] = {
    {"exchange", start_exchange, block_exchange, block, from_neighbour},
    {"ibcast", start_ibcast, block_ibcast, block_elsewhere, from_root},
    {"ireduce", start_ireduce, block_ireduce, block_at_root, sum_of_all},
    {"iallreduce", start_iallreduce, block_iallreduce, block, sum_of_all},
    {"iallgather", start_iallgather, block_iallgather, blocks, from_last},
    {"igather", start_igather, block_igather, blocks_at_root, from_last},
    {"iscatter", start_iscatter, block_iscatter, block, from_root},
    {"ialltoall", start_ialltoall, block_ialltoall, blocks, from_last},
    {"raw", start_raw, block_raw, block, from_neighbour},
    {"kernel", start_kernel, block_kernel, block, from_neighbour},
    {"ireduce_scatter", start_ireduce_scatter_block, block_ireduce_scatter_block, share, sum_of_all},
    {"iscan", start_iscan, block_iscan, block, sum_to_me},
};

/* Arithmetic that a compiler cannot leave out and that touches no memory but one word at its ends. */
static volatile double state = 3;

static void compute(long steps)
{
    double x = state;
    for (long i = 0; i < steps; i++)
        x = x * 0.999999 + 1e-6;
    state = x;
}

enum kind { BLOCKING, ALONE, WORK, TOTAL, KINDS };
static const char *const kind_names[] = {"blocking_us", "alone_us", "work_us", "total_us"};

static void iteration(const struct operation *op, enum kind kind, long steps)
{
    if (kind == BLOCKING)
        op->block();
    if (kind == ALONE || kind == TOTAL)
        op->start();
    if (kind == WORK || kind == TOTAL)
        compute(steps);
    if (kind == ALONE || kind == TOTAL) {
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        wait_raw();
        wait_kernel();
    }
}

/* Microseconds of one iteration on this rank. */
static double batch(const struct operation *op, enum kind kind, long steps, int iterations)
{
    MPI_Barrier(all);
    double start = MPI_Wtime();
    for (int i = 0; i < iterations; i++)
        iteration(op, kind, steps);
    return (MPI_Wtime() - start) * 1e6 / iterations;
}

static double slowest_of(double mine)
{
    double most;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, all);
    return most;
}

/* Microseconds of start and wait: the median of a few batches after a warm-up. */
static double calibrate_t(const struct operation *op, int iterations)
{
    double t[5];
    batch(op, ALONE, 0, 2);
    for (int i = 0; i < 5; i++)
        t[i] = slowest_of(batch(op, ALONE, 0, iterations));
    qsort(t, 5, sizeof t[0], by_value);
    return t[2];
}

/* Steps of computation that take `us` here, at this rank's best speed. */
static long calibrate_work(double us)
{
    double best = 1e30;
    for (int i = 0; i < 5; i++) {
        double start = MPI_Wtime();
        compute(2000000);
        double took = MPI_Wtime() - start;
        best = took < best ? took : best;
    }
    return (long)(us * 1e-6 / best * 2000000);
}

static void check(const struct operation *op, enum kind kind)
{
    int results = op->results();
    if (kind != WORK && results && got[results - 1] != op->last())
        give_up("wrong data from", op->name);
    memset(got, 0, sizeof(double) * count * size);
}

static double median(struct batches b)
{
    qsort(b.us, b.count, sizeof b.us[0], by_value);
    return b.us[b.count / 2];
}

static void print(const struct operation *op, int iterations, struct batches *times)
{
    double t = median(times[ALONE]), c = median(times[WORK]), total = median(times[TOTAL]);
    printf("{\"bench\": \"overlap\", \"op\": \"%s\", \"bytes\": %d, \"ranks\": %d, \"iterations\": %d, \"overlap\": %.4f", op->name,
           count * (int)sizeof(double), size, iterations, 1 - (total - c) / t);
    for (int k = 0; k < KINDS; k++) {
        printf(", ");
        print_times(kind_names[k], &times[k]);
    }
    printf("}\n");
    fflush(stdout);
}

static void measure(const struct operation *op, int bytes, double budget_us)
{
    struct batches times[KINDS];
    count = bytes / (int)sizeof(double);
    given = malloc(sizeof(double) * count * size);
    got = calloc((size_t)count * size, sizeof(double));
    for (int i = 0; i < count * size; i++)
        given[i] = rank + 1;
    double t = calibrate_t(op, 2);
    /* a batch of each kind: 1 + 1 + 1.5 + 1.5 to 2.5 t an iteration */
    int iterations = (int)(budget_us / BATCHES / (t * 5.5)) + 1;
    MPI_Bcast(&iterations, 1, MPI_INT, 0, all);
    long steps = calibrate_work(WORK_PER_T * calibrate_t(op, iterations));
    for (int b = 0; b < BATCHES; b++)
        for (int k = 0; k < KINDS; k++) {
            times[k].us[b] = batch(op, k, steps, iterations);
            check(op, k);
        }
    for (int k = 0; k < KINDS; k++) {
        times[k].count = BATCHES;
        slowest(&times[k], all);
    }
    if (rank == 0)
        print(op, iterations, times);
    free(given);
    free(got);
}

static void measure_named(const char *text, double budget_us)
{
    const char *colon = strchr(text, ':');
    int bytes = colon ? atoi(colon + 1) : 0;
    if (bytes <= 0 || bytes % (int)sizeof(double) || bytes > 1 << 28)
        give_up("wants OPERATION:BYTES, a multiple of 8 up to 256 MB, not", text);
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (strncmp(operations[i].name, text, colon - text) == 0 && strlen(operations[i].name) == (size_t)(colon - text)) {
            measure(&operations[i], bytes, budget_us);
            return;
        }
    give_up("there is no operation", text);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"exchange:65536", "exchange:524288", "exchange:4194304", "iallreduce:1048576", "ialltoall:1048576"};
    double budget_ms = 1000;
    int first = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    if (size % 2)
        give_up("wants an even number of ranks, not", "an odd one");
    if (argc > 2 && strcmp(argv[1], "--ms") == 0) {
        budget_ms = atof(argv[2]);
        first = 3;
    }
    for (int i = first; i < argc; i++)
        measure_named(argv[i], budget_ms * 1e3);
    for (size_t i = 0; first == argc && i < sizeof usual / sizeof usual[0]; i++)
        measure_named(usual[i], budget_ms * 1e3);
    MPI_Finalize();
    return 0;
}
