/* What waiting costs: rank 1 waits in MPI_Recv for as many seconds as the argument says (default
 * 3) while rank 0 sleeps. One JSON line: the processor time of rank 1, user and system together,
 * in per cent of the time it waited. */
#define PROGRAM "idle"
#include "options.h"
#include <sys/resource.h>
#include <unistd.h>

static double cpu(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

int main(int argc, char **argv)
{
    int rank, seconds, x = 0;
    MPI_Init(&argc, &argv);
    seconds = argc > 1 ? whole_number(argv[1], 1, 3600, "seconds go from 1 to 3600, not") : 3;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        sleep(seconds);
        MPI_Send(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    } else if (rank == 1) {
        double before = cpu(), start = MPI_Wtime();
        MPI_Recv(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double waited = MPI_Wtime() - start;
        printf("{\"bench\": \"idle\", \"ranks\": 2, \"seconds\": %.1f, \"cpu_percent\": %.2f}\n", waited, 100 * (cpu() - before) / waited);
    }
    MPI_Finalize();
    return 0;
}
