/* What a library takes from a program that computes most of the time: one JSON line a kind of
 * step.
 *
 *     sweep [--kinds LIST] [--points N] [--halo N] [--steps N]
 *
 * Each step of an iterative solver is the same amount of work: sweeps over --points doubles
 * (default 200000, about a millisecond), a halo of --halo doubles (default 2500) to and from the
 * rank beside this one, two sums over all ranks. Kinds:
 *   between   receive, send and wait in one go, then the sweeps: nothing is under way while the program computes
 *   across    the halo is under way during the sweeps
 *   alone     the sweeps without a call to MPI
 * "us" is the wall-clock time of a step, the slowest rank's, in batches of --steps (default 20).
 * A loop that computes until some time has passed would not see what a thread of the library
 * takes meanwhile; here it makes the step longer. */
#define PROGRAM "sweep"
#include "measure.h"
#include "options.h"

#define BATCHES 15
#define MOST_POINTS 10000000

static int rank, size, points = 200000, halo = 2500, steps = 20;
static double *now_at, *next, *given, *got;
static MPI_Request requests[2];
static const MPI_Comm all = MPI_COMM_WORLD;
enum { BETWEEN, ACROSS, ALONE, KINDS };
static const char *const names[KINDS] = {"between", "across", "alone"};

static void begin_halo(void)
{
    int peer = (rank ^ 1) < size ? rank ^ 1 : MPI_PROC_NULL;
    MPI_Irecv(got, halo, MPI_DOUBLE, peer, 1, all, &requests[0]);
    for (int i = 0; i < halo; i++)
        given[i] = now_at[i];
    MPI_Isend(given, halo, MPI_DOUBLE, peer, 1, all, &requests[1]);
}

static void end_halo(void)
{
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static double sum(double mine, int kind)
{
    double total = mine;
    if (kind != ALONE)
        MPI_Allreduce(&mine, &total, 1, MPI_DOUBLE, MPI_SUM, all);
    return total;
}

/* Smooths and adds up. */
static double sweep(void)
{
    double s = 0;
    for (int turn = 0; turn < 2; turn++)
        for (int i = 1; i < points - 1; i++)
            next[i] = .25 * now_at[i - 1] + .5 * now_at[i] + .25 * now_at[i + 1];
    for (int i = 0; i < points; i++)
        s += next[i];
    return s;
}

static double step(int kind)
{
    double s;
    if (kind != ALONE)
        begin_halo();
    if (kind == BETWEEN)
        end_halo();
    s = sum(sweep(), kind);
    if (kind == ACROSS)
        end_halo();
    for (int i = 0; i < points; i++)
        now_at[i] = .5 * (now_at[i] + next[i]) + 1e-12 * s;
    return sum(now_at[points / 2], kind);
}

static void measure(int kind)
{
    static struct batches b;
    volatile double sink = 0;
    b.count = BATCHES;
    for (int batch = -2; batch < BATCHES; batch++) {
        MPI_Barrier(all);
        double start = MPI_Wtime();
        for (int i = 0; i < steps; i++)
            sink += step(kind);
        if (batch >= 0)
            b.us[batch] = (MPI_Wtime() - start) / steps * 1e6;
    }
    slowest(&b, all);
    if (rank)
        return;
    printf("{\"bench\": \"sweep\", \"op\": \"%s\", \"bytes\": %d, \"ranks\": %d, ", names[kind], halo * (int)sizeof(double), size);
    print_times("us", &b);
    printf("}\n");
    fflush(stdout);
}

static int kind_of(const char *word)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (strcmp(word, names[kind]) == 0)
            return kind;
    give_up("no such kind of step:", word);
    return 0;
}

static void read_arguments(int argc, char **argv, int *wanted)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--points") == 0)
            points = whole_number(value, 3, MOST_POINTS, "points are 3 to 10000000, not");
        else if (strcmp(argv[i], "--halo") == 0)
            halo = whole_number(value, 0, MOST_POINTS, "doubles of a halo are 0 to 10000000, not");
        else if (strcmp(argv[i], "--steps") == 0)
            steps = whole_number(value, 1, 100000, "steps of a batch are 1 to 100000, not");
        else if (strcmp(argv[i], "--kinds") == 0 && i + 1 < argc) {
            memset(wanted, 0, sizeof(int) * KINDS);
            for (char *word = strtok(argv[i + 1], ","); word; word = strtok(NULL, ","))
                wanted[kind_of(word)] = 1;
        } else
            give_up("there is no option", argv[i]);
    }
    if (halo > points)
        halo = points;
}

int main(int argc, char **argv)
{
    int wanted[KINDS] = {1, 1, 1};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    read_arguments(argc, argv, wanted);
    now_at = calloc(points, sizeof(double));
    next = calloc(points, sizeof(double));
    given = calloc(points, sizeof(double));
    got = calloc(points, sizeof(double));
    for (int i = 0; i < points; i++)
        now_at[i] = i % 7;
    for (int kind = 0; kind < KINDS; kind++)
        if (wanted[kind])
            measure(kind);
    MPI_Finalize();
    return 0;
}
