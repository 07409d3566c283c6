// run: n=2,3,8 timeout=120 abi=one
/* coll_ahead [ROUNDS]: a random mix of collectives, short and long, while ranks run ahead of each other as far as they can: each is held up
 * at moments of its own, so that shared areas come back into use while some rank is still far behind. Every result is checked. */
#include "check.h"

#define MOST 3000 /* ints: lines, short areas and long ones */

static unsigned common = 20261121; /* the same numbers on all ranks */
static unsigned own;               /* others on each */

static unsigned next(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Now and then this rank lets the others go ahead. */
static void dawdle(void) {
    static volatile unsigned spent;
    if (next(&own) % 64 == 0)
        for (unsigned i = 0, much = next(&own) % 200000; i < much; i++) spent += i;
}

/* What rank r gives at i in a round. */
static int value(int round, int r, int i) { return round * 31 + r * 7 + i; }
static int sum(int round, int i) {
    int all = 0;
    for (int r = 0; r < check_size; r++) all += value(round, r, i);
    return all;
}

static int give[MOST], got[MOST];

static void same(int round, int kind, const int *a, int n, int who, int first, int summed) {
    for (int i = 0; i < n; i++) {
        int want = summed ? sum(round, first + i) : value(round, who, first + i);
        if (a[i] != want) {
            FAILED("round %d, kind %d: %d at %d, not %d", round, kind, a[i], i, want);
            return;
        }
    }
}

static void one(int round) {
    static const int lengths[] = {1, 2, 14, 15, 100, MOST};
    int n = lengths[next(&common) % 16 ? next(&common) % 4 : next(&common) % 6];
    int kind = next(&common) % 8, root = next(&common) % check_size, each = n / check_size, counts[64] = {0}, i;
    MPI_Comm all = check_comm;
    for (i = 0; i < n; i++) give[i] = value(round, check_rank, i), got[i] = -1;
    switch (kind) {
    case 0:
        OK(MPI_Barrier(all));
        break;
    case 1:
        OK(MPI_Bcast(check_rank == root ? give : got, n, MPI_INT, root, all));
        same(round, kind, check_rank == root ? give : got, n, root, 0, 0);
        break;
    case 2:
        OK(MPI_Reduce(give, got, n, MPI_INT, MPI_SUM, root, all));
        if (check_rank == root) same(round, kind, got, n, 0, 0, 1);
        break;
    case 3:
        OK(MPI_Allreduce(give, got, n, MPI_INT, MPI_SUM, all));
        same(round, kind, got, n, 0, 0, 1);
        break;
    case 4:
        OK(MPI_Allgather(give, each, MPI_INT, got, each, MPI_INT, all));
        for (i = 0; i < check_size; i++) same(round, kind, got + i * each, each, i, 0, 0);
        break;
    case 5:
        OK(MPI_Alltoall(give, each, MPI_INT, got, each, MPI_INT, all));
        for (i = 0; i < check_size; i++) same(round, kind, got + i * each, each, i, check_rank * each, 0);
        break;
    case 6: /* all for one rank: the others do not wait */
        counts[root] = n;
        OK(MPI_Reduce_scatter(give, got, counts, MPI_INT, MPI_SUM, all));
        if (check_rank == root) same(round, kind, got, n, 0, 0, 1);
        break;
    default: /* one after the other from the same root: the others may be far behind */
        for (i = 0; i < 100; i++) {
            int news = check_rank == root ? value(round, root, i) : -1;
            OK(MPI_Bcast(&news, 1, MPI_INT, root, all));
            CHECK_EQ(news, value(round, root, i));
            if (check_rank != root) dawdle();
        }
    }
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    int rounds = argc > 1 ? atoi(argv[1]) : check_times(6000, 2000);
    own = 7u * (unsigned)check_rank + 1;
    for (int round = 0; round < rounds && !check_failed; round++) {
        one(round);
        dawdle();
    }
    return check_end();
}
