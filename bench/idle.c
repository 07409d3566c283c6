/* What waiting costs: rank 1 waits in MPI_Recv for as many seconds as the argument says (default 3) while rank 0 sleeps.
 * Output: "idle SECONDS CPU_PERCENT" of rank 1, user and system time together. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
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
    int rank, seconds = argc > 1 ? atoi(argv[1]) : 3, x = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        sleep(seconds);
        MPI_Send(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    } else if (rank == 1) {
        double before = cpu(), start = MPI_Wtime();
        MPI_Recv(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("idle %.1f %.2f\n", MPI_Wtime() - start, 100 * (cpu() - before) / (MPI_Wtime() - start));
    }
    MPI_Finalize();
    return 0;
}
