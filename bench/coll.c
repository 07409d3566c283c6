/* Collective operations by size: one JSON line each.
 *
 *     coll [--ms BUDGET] [--turns N] [--apart] [--ops a,b,...] [--sizes 8,1024,...]
 *
 * Method. A batch is a barrier and then a run of iterations; it counts from the moment at which
 * the first rank left the barrier until the last rank has done its iterations. Ranks of one host
 * have one clock. Where they are on several, each times its own iterations and the slowest
 * rank's count, which is too little where ranks that share cores need not wait for each other:
 * what others did before this rank left the barrier is in no rank's time. How many iterations
 * make a batch is found while warming up, so that a cell (one operation of one size) takes about
 * BUDGET milliseconds (default 100) whatever it costs, but never fewer than 3 batches of one
 * iteration each. All batches are in the line; its figures are order statistics of them, never a
 * mean (measure.h). With --turns N the batches of a cell are not run in a row: all cells are
 * gone through N times (default 1), a part of the batches each time, so that sizes are measured
 * under the same conditions and a curve can be fitted to them. Lines then come at the end of the
 * last turn.
 *
 * Ranks may run ahead of each other in broadcast, reduce, gather and scatter. Back to back
 * (default) the root moves on by one rank each iteration, so that no rank gets further ahead
 * than one round of roots: the figure is what a loop of such calls costs each. With --apart a
 * barrier follows each call, as the measurements do that linear models are fitted to
 * ("Performance Analysis of Message-Passing Libraries on High-Speed Clusters"); the line then
 * has call and barrier together as "us", and as "barrier_us" the barrier alone, measured just
 * before. One is not subtracted from the other: ranks that come late out of a call and early out
 * of a barrier make the difference too small, on cores that ranks share even negative. Starting
 * all ranks at an agreed time would need neither, but means nothing where ranks wait for a core.
 *
 * Every pair of ranks exchanges a message before anything is measured: where connections are
 * made on first use, a loop whose root moves on would else make some in each of the first
 * iterations, and with a small BUDGET measure little else.
 *
 * Bytes are a block's: what each rank gives or gets in gather, scatter, allgather and alltoall;
 * all of it in broadcast and reductions; in reduce_scatter the whole vector, of which each rank
 * gets its share (as Intel's benchmarks count). Reductions add doubles. Every operation's data
 * is checked once for each size, outside the timing, with two roots; where it is wrong the line
 * says so in place of times ("wrong": how many ranks' data). */
#define PROGRAM "coll"
#include "clock.h"
#include "measure.h"
#include "options.h"

#define USUAL_BATCHES 11
#define FEWEST_BATCHES 3
#define MOST_ITERATIONS 1000000
#define LIST 64

static int rank, size, one_clock;
static double *given, *got;
static int *counts; /* of reduce_scatter */
static const MPI_Comm all = MPI_COMM_WORLD;

/* The operations: `count` doubles a block. */
static void barrier(int count, int root) { (void)count, (void)root, MPI_Barrier(all); }
static void bcast(int count, int root) { MPI_Bcast(rank == root ? given : got, count, MPI_DOUBLE, root, all); }
static void reduce(int count, int root) { MPI_Reduce(given, got, count, MPI_DOUBLE, MPI_SUM, root, all); }
static void allreduce(int count, int root) { (void)root, MPI_Allreduce(given, got, count, MPI_DOUBLE, MPI_SUM, all); }
static void gather(int count, int root) { MPI_Gather(given, count, MPI_DOUBLE, got, count, MPI_DOUBLE, root, all); }
static void scatter(int count, int root) { MPI_Scatter(given, count, MPI_DOUBLE, got, count, MPI_DOUBLE, root, all); }
static void allgather(int count, int root) { (void)root, MPI_Allgather(given, count, MPI_DOUBLE, got, count, MPI_DOUBLE, all); }
static void alltoall(int count, int root) { (void)root, MPI_Alltoall(given, count, MPI_DOUBLE, got, count, MPI_DOUBLE, all); }
static void reduce_scatter(int count, int root) { (void)count, (void)root, MPI_Reduce_scatter(given, got, counts, MPI_DOUBLE, MPI_SUM, all); }
static void scan(int count, int root) { (void)root, MPI_Scan(given, got, count, MPI_DOUBLE, MPI_SUM, all); }
static void exscan(int count, int root) { (void)root, MPI_Exscan(given, got, count, MPI_DOUBLE, MPI_SUM, all); }

/* What rank `from` gives at `i`, and sums of it over the ranks before `end`. Whole numbers:
 * additions are exact. */
static double value(int from, int i) { return 8 * from + i % 7; }
static double sum(int end, int i) { return 4.0 * end * (end - 1) + end * (i % 7); }

/* What this rank must have got at `i`. */
static double of_root(int count, int root, int i) { return (void)count, value(root, i); }
static double of_all(int count, int root, int i) { return (void)count, (void)root, sum(size, i); }
static double of_sender(int count, int root, int i) { return (void)root, value(i / count, i % count); }
static double my_block_of_root(int count, int root, int i) { return value(root, rank * count + i); }
static double my_block_of_sender(int count, int root, int i) { return (void)root, value(i / count, rank * count + i % count); }
static double my_share_of_all(int count, int root, int i) { return (void)root, sum(size, rank * (count / size) + (rank < count % size ? rank : count % size) + i); }
static double of_those_to_me(int count, int root, int i) { return (void)count, (void)root, sum(rank + 1, i); }
static double of_those_before_me(int count, int root, int i) { return (void)count, (void)root, sum(rank, i); }

/* How many doubles this rank must have got. */
static int none(int count, int root) { return (void)count, (void)root, 0; }
static int block(int count, int root) { return (void)root, count; }
static int blocks(int count, int root) { return (void)root, count * size; }
static int block_elsewhere(int count, int root) { return rank == root ? 0 : count; }
static int block_at_root(int count, int root) { return rank == root ? count : 0; }
static int blocks_at_root(int count, int root) { return rank == root ? count * size : 0; }
static int share(int count, int root) { return (void)count, (void)root, counts[rank]; }
static int block_but_first(int count, int root) { return (void)root, rank ? count : 0; }

static const struct operation {
    const char *name;
    void (*run)(int count, int root);
    int (*results)(int count, int root);
    double (*expected)(int count, int root, int i);
} operations[] = {
    {"barrier", barrier, none, of_all},
    {"bcast", bcast, block_elsewhere, of_root},
    {"reduce", reduce, block_at_root, of_all},
    {"allreduce", allreduce, block, of_all},
    {"allgather", allgather, blocks, of_sender},
    {"alltoall", alltoall, blocks, my_block_of_sender},
    {"reduce_scatter", reduce_scatter, share, my_share_of_all},
    {"gather", gather, blocks_at_root, of_sender},
    {"scatter", scatter, block, my_block_of_root},
    {"scan", scan, block, of_those_to_me},
    {"exscan", exscan, block_but_first, of_those_before_me},
};
#define OPERATIONS ((int)(sizeof operations / sizeof operations[0]))
#define GRID 7 /* the first ones are measured when none is named */

/* How many ranks got wrong data; each says so. */
static int wrong_ranks(const struct operation *op, int count, int root)
{
    int wrong = 0, all_wrong;
    for (int i = 0; i < count * size; i++)
        got[i] = -1;
    op->run(count, root);
    for (int i = 0; i < op->results(count, root) && !wrong; i++)
        if (got[i] != op->expected(count, root, i)) {
            fprintf(stderr, "coll: %s of %d doubles, root %d: rank %d of %d has %g at %d, not %g\n", op->name, count, root,
                    rank, size, got[i], i, op->expected(count, root, i));
            wrong = 1;
        }
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, all);
    return all_wrong;
}

/* Whether all ranks run on one kernel, and so have one clock. */
static int have_one_clock(void)
{
    char mine[64] = "", first[64];
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    int known = file && fgets(mine, sizeof mine, file), same;
    if (file)
        fclose(file);
    memcpy(first, mine, sizeof first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, all);
    known = known && memcmp(first, mine, sizeof first) == 0;
    MPI_Allreduce(&known, &same, 1, MPI_INT, MPI_MIN, all);
    return same;
}

/* From when the first rank began until the last had ended; without one clock, how long this rank
 * took. */
static double whole(double start, double end)
{
    double mine[2] = {-start, end}, last[2];
    if (!one_clock)
        return end - start;
    MPI_Allreduce(mine, last, 2, MPI_DOUBLE, MPI_MAX, all);
    return last[0] + last[1];
}

/* Microseconds of one iteration. */
static double batch(const struct operation *op, int count, int iterations, int apart)
{
    static int turn;
    MPI_Barrier(all);
    double start = now();
    for (int i = 0; i < iterations; i++) {
        op->run(count, turn++ % size);
        if (apart)
            MPI_Barrier(all);
    }
    return whole(start, now()) * 1e6 / iterations;
}

/* What an iteration costs at best: batches double until two in a row were long enough to tell, or
 * one took the whole budget. */
static double warm_up(const struct operation *op, int count, double budget_us, int apart)
{
    double best = 0, once, mine;
    int telling = 0;
    for (int n = 1; telling < 2; n = n < MOST_ITERATIONS ? n * 2 : n) {
        mine = batch(op, count, n, apart);
        MPI_Allreduce(&mine, &once, 1, MPI_DOUBLE, MPI_MAX, all);
        telling = once * n >= budget_us ? 2 : once * n >= budget_us / 20 || n == MOST_ITERATIONS ? telling + 1 : 0;
        best = n == 1 || once < best ? once : best;
    }
    return best;
}

/* Whole rounds of roots where there is time for one. */
static int iterations_for(double us, double once)
{
    double n = us / once;
    if (n >= MOST_ITERATIONS)
        return MOST_ITERATIONS;
    return n < 1 ? 1 : n < size ? (int)n : (int)n / size * size;
}

/* One operation of one size, and what is known of it so far. */
struct cell {
    const struct operation *op;
    int bytes, iterations, batches, wrong;
    struct batches times, barriers;
};

/* Checks the data, and finds how many iterations make a batch and how many batches there will be. */
static void prepare(struct cell *c, int count, double budget_us, int apart)
{
    c->wrong = wrong_ranks(c->op, count, 0) + wrong_ranks(c->op, count, size - 1);
    if (c->wrong)
        return;
    double once = warm_up(c->op, count, budget_us, apart);
    c->iterations = iterations_for(budget_us / USUAL_BATCHES, once);
    double fitting = budget_us / (once * c->iterations);
    c->batches = fitting > USUAL_BATCHES ? USUAL_BATCHES : fitting < FEWEST_BATCHES ? FEWEST_BATCHES : (int)fitting;
}

/* The part of a cell's batches that belongs to one of `turns` turns, at least one. */
static void some_batches(struct cell *c, int count, int turns, int apart)
{
    for (int b = 0; b < (c->batches + turns - 1) / turns; b++) {
        if (apart)
            c->barriers.us[c->barriers.count++] = batch(&operations[0], 0, c->iterations, 0);
        c->times.us[c->times.count++] = batch(c->op, count, c->iterations, apart);
    }
}

static void print_cell(struct cell *c, int apart)
{
    printf("{\"bench\": \"coll\", \"op\": \"%s\", \"bytes\": %d, \"ranks\": %d, ", c->op->name, c->bytes, size);
    if (c->wrong) {
        printf("\"wrong\": %d}\n", c->wrong);
        return;
    }
    printf("\"mode\": \"%s\", \"iterations\": %d, ", apart ? "apart" : "back-to-back", c->iterations);
    print_times("us", &c->times);
    if (apart) {
        printf(", ");
        print_times("barrier_us", &c->barriers);
    }
    printf("}\n");
    fflush(stdout);
}

static void visit(struct cell *c, int turn, int turns, double budget_us, int apart)
{
    int count = c->bytes / (int)sizeof(double);
    for (int r = 0; r < size; r++)
        counts[r] = count / size + (r < count % size);
    if (turn == 0)
        prepare(c, count, budget_us, apart);
    else if (!c->wrong)
        c->op->run(count, 0); /* its memory has gone cold meanwhile */
    if (!c->wrong)
        some_batches(c, count, turns, apart);
    if (turn + 1 < turns)
        return;
    slowest(&c->times, all);
    slowest(&c->barriers, all);
    if (rank == 0)
        print_cell(c, apart);
}

static const struct operation *by_name(const char *name)
{
    for (int i = 0; i < OPERATIONS; i++)
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    give_up("there is no operation", name);
    return NULL;
}

static int parse_ops(char *text, const struct operation **ops)
{
    int n = 0;
    for (char *name = strtok(text, ","); name && n < LIST; name = strtok(NULL, ","))
        ops[n++] = by_name(name);
    return n;
}

static void fill(int largest)
{
    size_t doubles = (size_t)largest / sizeof(double) * size;
    given = malloc(doubles * sizeof(double));
    got = malloc(doubles * sizeof(double));
    counts = malloc(size * sizeof(int));
    if (!given || !got || !counts)
        give_up("no memory for buffers of", "the largest size");
    for (size_t i = 0; i < doubles; i++)
        given[i] = value(rank, (int)i), got[i] = 0;
}

/* Small sizes first: a slow run that is ended has them. The cells' number. */
static int list_cells(struct cell *cells, const struct operation **ops, int op_count, const int *sizes, int size_count)
{
    int n = 0;
    for (int s = 0; s < size_count; s++)
        for (int o = 0; o < op_count; o++)
            if (ops[o] != operations || s == 0)
                cells[n++] = (struct cell){.op = ops[o], .bytes = ops[o] == operations ? 0 : sizes[s]};
    return n;
}

/* Every pair exchanges a message, so that no operation pays for the connections. */
static void meet(void)
{
    double mine = rank, theirs;
    for (int step = 1; step < size; step++)
        MPI_Sendrecv(&mine, 1, MPI_DOUBLE, (rank + step) % size, 0, &theirs, 1, MPI_DOUBLE, (rank + size - step) % size, 0, all,
                     MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    const struct operation *ops[LIST];
    int sizes[LIST] = {8, 1 << 10, 1 << 16, 1 << 20}, op_count = GRID, size_count = 4, apart = 0, turns = 1, largest = 0;
    double budget_ms = 100;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    one_clock = have_one_clock();
    for (int i = 0; i < GRID; i++)
        ops[i] = &operations[i];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--apart") == 0)
            apart = 1;
        else if (strcmp(argv[i], "--ms") == 0 && i + 1 < argc)
            budget_ms = atof(argv[++i]);
        else if (strcmp(argv[i], "--turns") == 0 && i + 1 < argc)
            turns = whole_number(argv[++i], 1, MOST_BATCHES, "turns go from 1 to 101, not");
        else if (strcmp(argv[i], "--ops") == 0 && i + 1 < argc)
            op_count = parse_ops(argv[++i], ops);
        else if (strcmp(argv[i], "--sizes") == 0 && i + 1 < argc)
            size_count = parse_sizes(argv[++i], sizes, LIST, sizeof(double), 8, 1 << 26, "sizes are multiples of 8 up to 64 MB, not");
        else
            give_up("there is no option", argv[i]);
    }
    for (int s = 0; s < size_count; s++)
        largest = sizes[s] > largest ? sizes[s] : largest;
    fill(largest);
    meet();
    struct cell *cells = calloc((size_t)op_count * size_count, sizeof *cells);
    if (!cells)
        give_up("no memory for the times of", "all cells");
    int cell_count = list_cells(cells, ops, op_count, sizes, size_count);
    for (int turn = 0; turn < turns; turn++) {
        for (int c = 0; c < cell_count; c++)
            visit(&cells[c], turn, turns, budget_ms * 1e3, apart);
        if (turn + 1 < turns)
            tell_turn(rank, turn, turns);
    }
    free(cells);
    MPI_Finalize();
    return 0;
}
