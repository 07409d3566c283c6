/* accumulates SECONDS: every rank adds to counters of all ranks, by MPI_Accumulate, MPI_Fetch_and_op, long accumulates and under locks, and
 * keeps a count of its own. Rank 0 says whether every counter has what all ranks together have added, neither more nor less, and whether no ticket
 * of MPI_Fetch_and_op was given twice. For networks that break connections meanwhile: what is repeated there would be added twice. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 512 };

static int rank, size;
static long added[64 * CELLS], tickets;
static unsigned long ticket_sum;

static unsigned dice(void)
{
    static unsigned state;
    if (!state)
        state = 12345 + rank * 7919;
    return (state = state * 1664525u + 1013904223u) >> 8;
}

/* Adds `n` to some cells of a target. */
static void add(MPI_Win win, int target, int at, int cells, long n)
{
    long values[CELLS];
    for (int i = 0; i < cells; i++) {
        values[i] = n + i;
        added[target * CELLS + at + i] += n + i;
    }
    MPI_Accumulate(values, cells, MPI_LONG, target, at, cells, MPI_LONG, MPI_SUM, win);
    MPI_Win_flush_local(target, win);
}

static void ticket(MPI_Win win)
{
    long one = 1, mine = -1;
    MPI_Fetch_and_op(&one, &mine, MPI_LONG, 0, CELLS, MPI_SUM, win);
    MPI_Win_flush(0, win);
    tickets++;
    ticket_sum += (unsigned long)mine;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    long *memory, sum[CELLS], operations = 0;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate((CELLS + 1) * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, (CELLS + 1) * sizeof(long));
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (long round = 0; MPI_Wtime() - begin < seconds; round++) {
        if (round % 4 == 3) {
            int target = (int)(dice() % size);
            MPI_Win_lock(dice() % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win);
            add(win, target, (int)(dice() % CELLS), 1, round);
            MPI_Win_unlock(target, win);
            operations++;
            continue;
        }
        MPI_Win_lock_all(0, win);
        for (int i = 0; i < 50; i++) {
            int target = (int)(dice() % size);
            if (dice() % 10 == 0)
                add(win, target, 0, CELLS, i);
            else
                add(win, target, (int)(dice() % CELLS), 1, 1);
        }
        ticket(win);
        operations += 51;
        MPI_Win_unlock_all(win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int wrong = 0;
    for (int target = 0; target < size; target++) {
        MPI_Reduce(added + target * CELLS, sum, CELLS, MPI_LONG, MPI_SUM, target, MPI_COMM_WORLD);
        if (target == rank)
            for (int i = 0; i < CELLS; i++)
                wrong += memory[i] != sum[i];
    }
    unsigned long sums[2] = {(unsigned long)tickets, ticket_sum};
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        wrong += memory[CELLS] != (long)sums[0] || sums[1] != sums[0] * (sums[0] - 1) / 2;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &operations, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %ld operations, %d counters wrong\n", wrong ? "wrong" : "right", operations, wrong);
    MPI_Win_free(&win);
    MPI_Finalize();
    return wrong != 0;
}
