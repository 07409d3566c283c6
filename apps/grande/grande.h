/* What the kernels of this directory share: their size (A, B or C), Java's random numbers, and what they print.
 *
 * They follow the public description of section 2 of the Java Grande benchmarks: same work, same sizes, same known results. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, which;
static const MPI_Comm all = MPI_COMM_WORLD;

/* Starts MPI and reads the size; 0, 1 or 2 for A, B or C. */
static void begin(int *argc, char ***argv, const char *name)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    if (*argc != 2 || strlen((*argv)[1]) != 1 || !strchr("ABC", (*argv)[1][0])) {
        if (rank == 0)
            fprintf(stderr, "%s: its one argument is a size: A, B or C\n", name);
        MPI_Abort(all, 1);
    }
    which = (*argv)[1][0] - 'A';
}

static void *memory(size_t bytes)
{
    void *got = malloc(bytes ? bytes : 1);
    if (!got) {
        fprintf(stderr, "rank %d has no memory for %zu bytes\n", rank, bytes);
        MPI_Abort(all, 1);
    }
    return got;
}

/* Where a rank's part of n things begins. */
__attribute__((unused)) static int first_of(int n, int r) { return (int)((int64_t)n * r / size); }

/* Prints what kwlab reads, and ends MPI; the status says whether the result is right. */
static int finish(double seconds, double operations, int right)
{
    if (rank == 0) {
        printf("seconds %.6f\nMop/s %.3f\n%s\n", seconds, operations / seconds / 1e6, right ? "verified" : "wrong");
        fflush(stdout);
    }
    MPI_Bcast(&right, 1, MPI_INT, 0, all);
    MPI_Finalize();
    return !right;
}

/* Seconds since `start` on the slowest rank. */
static double slowest_since(double start)
{
    double mine = MPI_Wtime() - start, most;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, all);
    return most;
}

static double now_together(void)
{
    MPI_Barrier(all);
    return MPI_Wtime();
}

/* java.util.Random, as its documentation defines it. */
static uint64_t seed;
__attribute__((unused)) static void start_random(uint64_t s) { seed = (s ^ 0x5DEECE66DULL) & ((1ULL << 48) - 1); }
__attribute__((unused)) static int32_t next_bits(int bits)
{
    seed = (seed * 0x5DEECE66DULL + 0xB) & ((1ULL << 48) - 1);
    return (int32_t)(uint32_t)(seed >> (48 - bits));
}
__attribute__((unused)) static int32_t next_int(void) { return next_bits(32); }
__attribute__((unused)) static double next_double(void)
{
    int64_t high = (int64_t)(uint32_t)next_bits(26) << 27;
    return (high + (uint32_t)next_bits(27)) * 0x1.0p-53;
}
