/* What the programs of this directory share: every rank checks what it reads, and rank 0 says how
 * many values were right. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;
static long right;

/* Ends the job where something is not so. */
static void must(int well, const char *what)
{
    if (well)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Compares a value that was read. */
static void same(double found, double expected, const char *what, long at)
{
    if (found == expected) {
        right++;
        return;
    }
    fprintf(stderr, "rank %d: %s has %g at %ld and not %g\n", rank, what, found, at, expected);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void begin(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static int finish(void)
{
    long all;
    MPI_Reduce(&right, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("result %d ranks %ld values\n", size, all);
    MPI_Finalize();
    return 0;
}
