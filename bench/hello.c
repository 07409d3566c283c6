/* Start and end: one JSON line with the largest resident set of a rank, and what of it is not part of
 * any file; how long it took is measured by its parent. Pages of libraries count in the resident set
 * of each rank, but are in memory once a host. "cpus_least" and "cpus_most" are on how many
 * processors a rank may run: how the launcher has bound them. */
#define _GNU_SOURCE
#include "proc.h"
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>

/* On how many processors this rank may run. */
static int processors(void)
{
    /* The kernel refuses a set that is smaller than its own. */
    for (int most = CPU_SETSIZE; most <= 1 << 20; most *= 2) {
        cpu_set_t *set = CPU_ALLOC(most);
        size_t bytes = CPU_ALLOC_SIZE(most);
        int count = set && !sched_getaffinity(0, bytes, set) ? CPU_COUNT_S(bytes, set) : -1;
        CPU_FREE(set);
        if (count >= 0)
            return count;
    }
    return -1;
}

int main(int argc, char **argv)
{
    int rank, size;
    long mine[3], largest[3], least;
    struct rusage u;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    getrusage(RUSAGE_SELF, &u);
    mine[0] = u.ru_maxrss;
    mine[1] = own_kilobytes("smaps_rollup", "Anonymous");
    mine[2] = processors();
    MPI_Reduce(mine, largest, 3, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine[2], &least, 1, MPI_LONG, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"bench\": \"hello\", \"ranks\": %d, \"resident_kb\": %ld, \"anonymous_kb\": %ld, \"cpus_least\": %ld, \"cpus_most\": %ld}\n", size,
               largest[0], largest[1], least, largest[2]);
    MPI_Finalize();
    return 0;
}
