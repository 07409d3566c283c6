/* What a rank loses of its computation while another works on its memory, and how long one operation takes then.
 *
 *     served [--rate PER_SECOND] [--ms WORK] [--rounds N] [--windows LIST]
 *
 * Rank 1 computes for WORK ms (default 500), without a call of MPI: in turns undisturbed, and while rank 0 locks, accumulates
 * 8 bytes and unlocks RATE times a second (default 1000) and sleeps between. One JSON line a kind of window: the microseconds
 * of an operation (median, 99th percentile, worst), and the part of the computation that was lost (of the fastest round of each
 * kind, and of the median round). With fewer than two cores for two ranks the figures say what the scheduler does. */
#define PROGRAM "served"
#include "clock.h"
#include "measure.h"
#include "options.h"

enum { MOST_ROUNDS = 51, MOST_OPS = 1 << 20 };

static int rank;
static MPI_Win win;
static double us[MOST_OPS];
static int count;

/* The same computation each time; its seconds. */
static double compute(long steps)
{
    double start = now();
    volatile double sum = 0;
    for (long i = 0; i < steps; i++)
        sum = sum * 0.999 + i;
    return now() - start;
}

/* Operations at this rate for these seconds, or only the pauses between them. */
static void disturb(double seconds, double rate, int really)
{
    const long one = 1;
    double begin = now();
    for (int i = 0; i < seconds * rate; i++) {
        while (now() < begin + i / rate) {
            struct timespec pause = {0, 20000};
            nanosleep(&pause, NULL);
        }
        if (!really)
            continue;
        double start = now();
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        MPI_Accumulate(&one, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_SUM, win);
        MPI_Win_unlock(1, win);
        if (count < MOST_OPS)
            us[count++] = (now() - start) * 1e6;
    }
}

static void measure(const char *window, double rate, double seconds, int rounds)
{
    double took[2][MOST_ROUNDS];
    long steps = 1 << 16;
    while (rank == 1 && compute(steps) < seconds)
        steps *= 2;
    if (rank == 1)
        steps *= seconds / compute(steps);
    count = 0;
    for (int i = 0; i < 2 * rounds; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1)
            took[i % 2][i / 2] = compute(steps);
        if (rank == 0)
            disturb(seconds, rate, i % 2);
    }
    MPI_Bcast(took, 2 * MOST_ROUNDS, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    if (rank)
        return;
    qsort(us, count, sizeof *us, by_value);
    for (int kind = 0; kind < 2; kind++)
        qsort(took[kind], rounds, sizeof **took, by_value);
    printf("{\"bench\": \"served\", \"mode\": \"%s\", \"rate\": %g, \"operations\": %d, \"median_us\": %.3f, \"p99_us\": %.3f, "
           "\"worst_us\": %.3f, \"lost_least_percent\": %.3f, \"lost_median_percent\": %.3f}\n",
           window, rate, count, us[count / 2], us[count - 1 - count / 100], us[count - 1], 100 * (took[1][0] / took[0][0] - 1),
           100 * (took[1][rounds / 2] / took[0][rounds / 2] - 1));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    double rate = 1000, ms = 500;
    int size, rounds = 7, windows = 3;
    long lent[512] = {0};
    start_ranks(&argc, &argv, &rank, &size);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--rate") == 0)
            rate = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--ms") == 0)
            ms = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--windows") == 0)
            windows = (strstr(argv[i + 1], "allocated") ? 1 : 0) | (strstr(argv[i + 1], "created") ? 2 : 0);
        else
            give_up("there is no option", argv[i]);
    }
    if (size != 2 || rounds < 1 || rounds > MOST_ROUNDS || rate <= 0 || ms <= 0)
        give_up("it takes 2 ranks, a rate, ms and rounds from 1 to 51, not", argc > 1 ? argv[argc - 1] : "these ranks");
    for (int w = 0; w < 2; w++) {
        void *memory;
        if (!(windows >> w & 1))
            continue;
        if (w == 0)
            MPI_Win_allocate(sizeof lent, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
        else
            MPI_Win_create(lent, sizeof lent, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        measure(w ? "created" : "allocated", rate, ms * 1e-3, rounds);
        MPI_Win_free(&win);
    }
    MPI_Finalize();
    return 0;
}
