/* What the programs of this directory share: order statistics of batches, and one JSON line a
 * measurement.
 *
 * A batch is a run of iterations between two looks at the clock; its time for one iteration is
 * the slowest rank's. Batches are kept, not averaged: the line has the smallest, the median, and
 * the 95 % confidence interval of the median, which is made of two of the sorted times and
 * assumes nothing of their distribution. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_BATCHES 101

struct batches {
    int count;
    double us[MOST_BATCHES]; /* for one iteration, in the order they were run; after slowest(), on rank 0, of the slowest rank */
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Where the confidence interval of the median of `count` sorted times begins; it ends as far from
 * the other end. */
static int interval_start(int count)
{
    int start = (int)floor((count - 1.96 * sqrt(count)) / 2) - 1;
    return start < 0 ? 0 : start;
}

/* Every batch becomes its slowest rank's; all ranks call, rank 0 has the result. */
__attribute__((unused)) static void slowest(struct batches *b, MPI_Comm comm)
{
    double all[MOST_BATCHES];
    MPI_Reduce(b->us, all, b->count, MPI_DOUBLE, MPI_MAX, 0, comm);
    for (int i = 0; i < b->count; i++)
        b->us[i] = all[i];
}

/* That a turn of many has passed, in a line that is not a measurement: a reader that waits for the last turn
 * sees that this program goes on. */
__attribute__((unused)) static void tell_turn(int rank, int turn, int turns)
{
    if (rank == 0) {
        printf("# turn %d of %d\n", turn + 1, turns);
        fflush(stdout);
    }
}

/* Whether `n` iterations make a batch; else they are doubled. Two batches in a row must have been
 * long enough: one may have lost its core. `telling` begins at 0. */
__attribute__((unused)) static int are_enough(int *iterations, double took, double wanted, int *telling)
{
    *telling = took >= wanted ? *telling + 1 : 0;
    if (*telling == 2 || *iterations >= 1 << 20)
        return 1;
    if (*telling == 0)
        *iterations *= 2;
    return 0;
}

__attribute__((unused)) static void print_times(const char *name, const struct batches *b)
{
    struct batches sorted = *b;
    int start = interval_start(b->count);
    qsort(sorted.us, b->count, sizeof sorted.us[0], by_value);
    printf("\"%s\": {\"min\": %.4f, \"median\": %.4f, \"low\": %.4f, \"high\": %.4f, \"batches\": [", name, sorted.us[0],
           sorted.us[b->count / 2], sorted.us[start], sorted.us[b->count - 1 - start]);
    for (int i = 0; i < b->count; i++)
        printf("%s%.4f", i ? ", " : "", b->us[i]);
    printf("]}");
}
