/* steady SECONDS COUNT: alltoall of COUNT integers a rank, over and over; every rank prints, for
 * each 5 ms or so, when it ended (CLOCK_MONOTONIC, s), rounds since the last line, and processor
 * time that the rank itself has used meanwhile (us). For programs that change something while it
 * runs (`kwlab attack`). */
#include "clock.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static double used(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 + r.ru_utime.tv_usec + r.ru_stime.tv_usec;
}

int main(int argc, char **argv)
{
    enum { MOST = 1 << 20, TOGETHER = 100 };
    int rank, size, n = 0, wrong = 0;
    double seconds = argc > 1 ? atof(argv[1]) : 1, before, *lines = malloc(sizeof(double) * 3 * MOST);
    int count = argc > 2 ? atoi(argv[2]) : 1000, on = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *out = malloc(sizeof(int) * count * size), *in = malloc(sizeof(int) * count * size);
    MPI_Barrier(MPI_COMM_WORLD);
    double end = now() + seconds;
    before = used();
    for (int round = 0; on; round++) {
        for (int i = 0; i < size; i++)
            out[i * count] = round ^ rank << 20 ^ i << 10;
        MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < size; i++)
            wrong += in[i * count] != (round ^ i << 20 ^ rank << 10);
        if (round % TOGETHER != TOGETHER - 1)
            continue;
        lines[3 * n] = now();
        lines[3 * n + 1] = TOGETHER;
        lines[3 * n + 2] = used() - before;
        before += lines[3 * n++ + 2];
        on = lines[3 * n - 3] < end && n < MOST;
        MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    for (int i = 0; i < n; i++)
        printf("%d %.6f %.0f %.0f\n", rank, lines[3 * i], lines[3 * i + 1], lines[3 * i + 2]);
    if (wrong)
        fprintf(stderr, "steady: %d values came wrong\n", wrong);
    MPI_Finalize();
    return wrong != 0;
}
