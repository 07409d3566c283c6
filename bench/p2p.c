/* Ping-pong: half a round trip, median and best of batches, one line a size.
 *
 * Method: both ranks use the same buffer for sending and receiving; for each size a warm-up, then batches long enough
 * that reading the clock does not matter; each batch gives one mean, and the median of the batches is reported.
 * Output: "p2p BYTES MEDIAN_US BEST_US" for each size given on the command line (default: the sizes of docs/benchmarks.md).
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 21

static char *buffer;

static double batch(int rank, int bytes, int rounds)
{
    double start = MPI_Wtime();
    for (int i = 0; i < rounds; i++) {
        if (rank == 0) {
            MPI_Send(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) * 1e6 / rounds / 2;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(int rank, int bytes)
{
    double times[BATCHES];
    int rounds = 20;
    double once = batch(rank, bytes, rounds);
    if (rank == 0) {
        rounds = (int)(3000 / once) + 4; /* a batch of about 6 ms */
        if (rounds > 5000)
            rounds = 5000;
    }
    MPI_Bcast(&rounds, 1, MPI_INT, 0, MPI_COMM_WORLD);
    batch(rank, bytes, rounds);
    for (int i = 0; i < BATCHES; i++)
        times[i] = batch(rank, bytes, rounds);
    qsort(times, BATCHES, sizeof times[0], by_value);
    if (rank == 0) {
        printf("p2p %d %.3f %.3f\n", bytes, times[BATCHES / 2], times[0]);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    static const int usual[] = {0, 8, 1024, 8192, 65536, 524288, 4194304};
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) {
        if (rank == 0)
            fprintf(stderr, "p2p: wants 2 ranks, not %d\n", size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    buffer = malloc(64 << 20);
    memset(buffer, 1, 64 << 20);
    if (argc > 1)
        for (int i = 1; i < argc; i++)
            measure(rank, atoi(argv[i]));
    else
        for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
            measure(rank, usual[i]);
    MPI_Finalize();
    return 0;
}
