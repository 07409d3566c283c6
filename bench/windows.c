/* One-sided communication: one JSON line an operation, kind of window and size.
 *
 *     windows [--ms BUDGET] [--ops LIST] [--windows LIST] [--sizes LIST]
 *
 * Operations (default: all). Rank 0 calls them on the memory of rank 1, which waits in a barrier, unless said otherwise:
 *     put, get        one of each size, and a flush, under MPI_Win_lock_all
 *     fetch           MPI_Fetch_and_op of 8 bytes and a flush; swap: MPI_Compare_and_swap; add: MPI_Accumulate
 *     rate            put of 8 bytes, RATE of them and one flush; the time of one
 *     lock            MPI_Win_lock (exclusive), put of 8 bytes, MPI_Win_unlock
 *     fence           put of 8 bytes and MPI_Win_fence, on both ranks
 *     post            post, start, put of 8 bytes, complete, wait, on both ranks
 *     passive         lock, accumulate, unlock while rank 1 computes for BUSY ms and makes no call: how long one takes.
 *                     Libraries that progress only inside calls take as long as rank 1 computes
 *     contend         all ranks: MPI_Fetch_and_op on one counter of rank 0 and a flush
 * Windows (default: both): allocated (MPI_Win_allocate), created (MPI_Win_create on malloc'ed memory).
 *
 * Time is of one operation. Batches of iterations between two looks at the clock, the slowest rank's time; order
 * statistics of the batches, never a mean. */
#define PROGRAM "windows"
#include "clock.h"
#include "measure.h"
#include "options.h"

enum { BATCHES = 21, PASSIVE_BATCHES = 11, RATE = 100, BUSY = 20, LIST = 32, LARGEST = 16 << 20 };

enum op { PUT, GET, FETCH, SWAP, ADD, PUT_RATE, LOCK, FENCE, POST, PASSIVE, CONTEND, OPS };
static const char *const op_names[] = {"put", "get", "fetch", "swap", "add", "rate", "lock", "fence", "post", "passive", "contend"};
static const char *const window_names[] = {"allocated", "created"};

static int rank, size;
static MPI_Win win;
static MPI_Group other;
static char *mine;
static long one = 1, zero, got;
static const MPI_Comm all = MPI_COMM_WORLD;

static void put(int bytes) { MPI_Put(mine, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win); }

/* One iteration. `i`: which. */
static void once(enum op op, int bytes, int i)
{
    switch (op) {
    case PUT: put(bytes), MPI_Win_flush(1, win); break;
    case GET: MPI_Get(mine, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win), MPI_Win_flush(1, win); break;
    case FETCH: MPI_Fetch_and_op(&one, &got, MPI_LONG, 1, 0, MPI_SUM, win), MPI_Win_flush(1, win); break;
    case SWAP: MPI_Compare_and_swap(&one, &zero, &got, MPI_LONG, 1, 0, win), MPI_Win_flush(1, win); break;
    case ADD: MPI_Accumulate(&one, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_SUM, win), MPI_Win_flush(1, win); break;
    case PUT_RATE: /* each to a place of its own: puts to one place in one epoch have no order */
        MPI_Put(mine, 8, MPI_BYTE, 1, i % RATE * 8, 8, MPI_BYTE, win);
        if (i % RATE == RATE - 1)
            MPI_Win_flush(1, win);
        break;
    case LOCK:
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        put(8);
        MPI_Win_unlock(1, win);
        break;
    case FENCE:
        if (rank == 0)
            put(8);
        MPI_Win_fence(0, win);
        break;
    case POST:
        MPI_Win_post(other, 0, win);
        MPI_Win_start(other, 0, win);
        MPI_Put(mine, 8, MPI_BYTE, 1 - rank, 8, 8, MPI_BYTE, win);
        MPI_Win_complete(win);
        MPI_Win_wait(win);
        break;
    case PASSIVE:
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        MPI_Accumulate(&one, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_SUM, win);
        MPI_Win_unlock(1, win);
        break;
    default: MPI_Fetch_and_op(&one, &got, MPI_LONG, 0, 0, MPI_SUM, win), MPI_Win_flush(0, win);
    }
}

static int takes_part(enum op op) { return op == CONTEND || rank == 0 || (rank == 1 && (op == FENCE || op == POST)); }
static int is_locked(enum op op) { return op <= PUT_RATE || op == CONTEND; }

/* For some seconds, without a call of MPI. */
static void compute(double seconds)
{
    for (double end = now() + seconds; now() < end;)
        ;
}

/* Microseconds of an operation on this rank. */
static double batch(enum op op, int bytes, int iterations)
{
    double start, took = 0;
    MPI_Barrier(all);
    if (op == FENCE && rank > 1)
        for (int i = 0; i < iterations; i++)
            MPI_Win_fence(0, win);
    if (op == PASSIVE && rank == 1)
        compute(BUSY * 1e-3);
    if (op == PASSIVE && rank == 0)
        compute(BUSY * 1e-4); /* rank 1 computes by now */
    if (takes_part(op)) {
        if (is_locked(op))
            MPI_Win_lock_all(0, win);
        start = MPI_Wtime();
        for (int i = 0; i < iterations; i++)
            once(op, bytes, i);
        took = (MPI_Wtime() - start) * 1e6 / iterations;
        if (is_locked(op))
            MPI_Win_unlock_all(win);
    }
    MPI_Barrier(all);
    return took;
}

static void measure_op(enum op op, const char *window, int bytes, double budget_us)
{
    struct batches times = {.count = 0};
    int iterations = op == PUT_RATE ? RATE : 1, telling = 0, count = op == PASSIVE ? PASSIVE_BATCHES : BATCHES;
    if (op == FENCE)
        MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    batch(op, bytes, iterations);
    for (double most = 0; op != PASSIVE;) {
        double took = batch(op, bytes, iterations) * iterations;
        MPI_Allreduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, all);
        if (are_enough(&iterations, most, budget_us / BATCHES, &telling))
            break;
    }
    while (times.count < count)
        times.us[times.count++] = batch(op, bytes, iterations);
    if (op == FENCE)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    slowest(&times, all);
    if (rank)
        return;
    printf("{\"bench\": \"windows\", \"op\": \"%s\", \"mode\": \"%s\", \"bytes\": %d, \"ranks\": %d, \"iterations\": %d, ", op_names[op], window, bytes,
           size, iterations);
    print_times("us", &times);
    printf("}\n");
    fflush(stdout);
}

/* Bit i: name i is in the list. */
static int chosen(char *text, const char *const *names, int count)
{
    int found = 0;
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        int i = 0;
        while (i < count && strcmp(names[i], word))
            i++;
        if (i == count)
            give_up("there is no operation or window", word);
        found |= 1 << i;
    }
    return found;
}

/* Every operation that is wanted, on one window. */
static void measure_all(int ops, const char *window, const int *sizes, int size_count, double budget_us)
{
    for (int op = 0; op < OPS; op++) {
        if (!(ops >> op & 1))
            continue;
        for (int s = 0; s < (op <= GET ? size_count : 1); s++)
            measure_op(op, window, op <= GET ? sizes[s] : 8, budget_us);
    }
}

int main(int argc, char **argv)
{
    int sizes[LIST] = {8, 1024, 8192, 65536, 524288, 4194304}, size_count = 6, largest = RATE * 8, ops = (1 << OPS) - 1, windows = 3;
    double budget_ms = 60;
    start_ranks(&argc, &argv, &rank, &size);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--ms") == 0)
            budget_ms = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--ops") == 0)
            ops = chosen(argv[i + 1], op_names, OPS);
        else if (strcmp(argv[i], "--windows") == 0)
            windows = chosen(argv[i + 1], window_names, 2);
        else if (strcmp(argv[i], "--sizes") == 0)
            size_count = parse_sizes(argv[i + 1], sizes, LIST, 1, 1, LARGEST, "sizes go from 1 to 16 MB, not");
        else
            give_up("there is no option", argv[i]);
    }
    if (argc % 2 == 0)
        give_up("an option without a value:", argv[argc - 1]);
    for (int s = 0; s < size_count; s++)
        largest = sizes[s] > largest ? sizes[s] : largest;
    char *lent = calloc(1, largest);
    mine = calloc(1, largest);
    if (!lent || !mine)
        give_up("no memory for buffers of", "the largest size");
    for (int w = 0; w < 2; w++) {
        MPI_Group group;
        char *memory;
        if (!(windows >> w & 1))
            continue;
        if (w == 0) {
            MPI_Win_allocate(largest, 1, MPI_INFO_NULL, all, &memory, &win);
            memset(memory, 0, largest);
        } else
            MPI_Win_create(lent, largest, 1, MPI_INFO_NULL, all, &win);
        MPI_Comm_group(all, &group);
        MPI_Group_incl(group, rank < 2, (int[]){1 - rank}, &other);
        measure_all(ops, window_names[w], sizes, size_count, budget_ms * 1e3);
        MPI_Group_free(&group);
        MPI_Group_free(&other);
        MPI_Win_free(&win);
    }
    free(lent);
    free(mine);
    MPI_Finalize();
    return 0;
}
