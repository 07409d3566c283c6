/* How long the slow ones take: every operation is timed by itself, one JSON line an operation and
 * size.
 *
 *     tails [--count N] [--ops LIST] [--sizes LIST]
 *
 * Operations (default: all): pingpong (half a round trip of ranks 0 and 1, the others wait),
 * barrier, allreduce (of doubles; the size is rounded down to them). Rank 0 looks at the clock after
 * each of N (default 10,000) operations in a row, so a figure is what a step of a loop takes there.
 * "p50_us" to "p999_us" are the times that so many of them do not exceed, "most_us" is the longest.
 * What takes a processor away from a rank is in them: compare libraries in turns, on a machine that
 * does nothing else. */
#define PROGRAM "tails"
#include "measure.h"
#include "options.h"

#define LIST 16
#define MOST 1000000
#define LARGEST (1 << 20)

static int rank, size;
static char *given, *got;
static const MPI_Comm all = MPI_COMM_WORLD;

static void pingpong(int bytes)
{
    if (rank > 1)
        return;
    if (rank == 0)
        MPI_Send(given, bytes, MPI_CHAR, 1, 1, all);
    MPI_Recv(got, bytes, MPI_CHAR, 1 - rank, 1, all, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(given, bytes, MPI_CHAR, 0, 1, all);
}

static void barrier(int bytes) { (void)bytes, MPI_Barrier(all); }
static void allreduce(int bytes) { MPI_Allreduce(given, got, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, all); }

static const struct operation {
    const char *name;
    void (*run)(int);
    int sized, trips;
} operations[] = {{"pingpong", pingpong, 1, 2}, {"barrier", barrier, 0, 1}, {"allreduce", allreduce, 1, 1}};
#define OPERATIONS (int)(sizeof operations / sizeof operations[0])

static double at(const double *sorted, int count, double share)
{
    int i = (int)ceil(share * count) - 1;
    return sorted[i < 0 ? 0 : i];
}

static void cell(const struct operation *op, int bytes, int count, double *times)
{
    for (int i = 0; i < count / 10 + 1; i++) /* to warm up */
        op->run(bytes);
    MPI_Barrier(all);
    double before = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        op->run(bytes);
        double after = MPI_Wtime();
        times[i] = (after - before) * 1e6 / op->trips;
        before = after;
    }
    MPI_Barrier(all);
    if (rank)
        return;
    qsort(times, count, sizeof *times, by_value);
    printf("{\"bench\": \"tails\", \"op\": \"%s\", \"bytes\": %d, \"ranks\": %d, \"iterations\": %d, \"p50_us\": %.4f, \"p90_us\": %.4f, \"p99_us\": %.4f, \"p999_us\": %.4f, "
           "\"most_us\": %.4f}\n", op->name, bytes, size, count, at(times, count, 0.5), at(times, count, 0.9), at(times, count, 0.99), at(times, count, 0.999), times[count - 1]);
    fflush(stdout);
}

static int is_wanted(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || !at[length]))
            return 1;
    return 0;
}

/* Every name of the list is an operation's. */
static void check(const char *list)
{
    char *copy = strdup(list);
    for (char *word = strtok(copy, ","); word; word = strtok(NULL, ",")) {
        int known = 0;
        for (int o = 0; o < OPERATIONS; o++)
            known |= strcmp(word, operations[o].name) == 0;
        if (!known)
            give_up("there is no operation", word);
    }
    free(copy);
}

int main(int argc, char **argv)
{
    int sizes[LIST] = {8, 1 << 13}, size_count = 2, count = 10000;
    const char *ops = "pingpong,barrier,allreduce";
    start_ranks(&argc, &argv, &rank, &size);
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            give_up("an option without a value:", argv[i]);
        else if (strcmp(argv[i], "--count") == 0)
            count = whole_number(argv[i + 1], 10, MOST, "operations go from 10 to a million, not");
        else if (strcmp(argv[i], "--ops") == 0)
            check(ops = argv[i + 1]);
        else if (strcmp(argv[i], "--sizes") == 0)
            size_count = parse_sizes(argv[i + 1], sizes, LIST, 1, 0, LARGEST, "sizes go from 0 to 1 MB, not");
        else
            give_up("there is no option", argv[i]);
    }
    double *times = malloc(count * sizeof *times);
    given = calloc(1, LARGEST), got = calloc(1, LARGEST);
    if (!times || !given || !got)
        give_up("no memory for", "times and messages");
    for (int o = 0; o < OPERATIONS; o++)
        for (int s = 0; s < size_count && is_wanted(ops, operations[o].name) && (s == 0 || operations[o].sized); s++)
            cell(&operations[o], operations[o].sized ? sizes[s] : 0, count, times);
    MPI_Finalize();
    return 0;
}
