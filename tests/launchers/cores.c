/* Ranks of one job that may run on different processors: cores [CPU] binds itself to that processor before it starts MPI, and then looks at
 * the data of collectives of many sizes, byte by byte. All ranks must choose the same algorithms whatever each may run on. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 20 };

static const int sizes[] = {8, 2000, 3000, 20000, 100000, MOST};
static unsigned char *one, *all;
static int rank, size, wrong;

static unsigned char value(int round, int from, int i) { return (unsigned char)(round * 31 + from * 7 + i % 251 + 1); }

static void fill(unsigned char *bytes, int n, int round, int from)
{
    for (int i = 0; i < n; i++) bytes[i] = value(round, from, i);
}

/* What has come of another rank. */
static void look(const char *what, const unsigned char *bytes, int n, int round, int from)
{
    for (int i = 0; i < n; i++)
        if (bytes[i] != value(round, from, i)) {
            printf("rank %d: %s of %d bytes, byte %d from rank %d is %d\n", rank, what, n, i, from, bytes[i]);
            wrong = 1;
            return;
        }
}

static void moved(int n, int round)
{
    int root = round % size, part = n / size;
    fill(one, n, round, root);
    for (int i = 0; i < n && rank != root; i++) one[i] = 0;
    MPI_Bcast(one, n, MPI_BYTE, root, MPI_COMM_WORLD);
    look("MPI_Bcast", one, n, round, root);
    fill(one, part, round, rank);
    MPI_Allgather(one, part, MPI_BYTE, all, part, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) look("MPI_Allgather", all + r * part, part, round, r);
    MPI_Gather(one, part, MPI_BYTE, all, part, MPI_BYTE, root, MPI_COMM_WORLD);
    for (int r = 0; r < size && rank == root; r++) look("MPI_Gather", all + r * part, part, round, r);
    for (int r = 0; r < size; r++) fill(all + r * part, part, round + r, rank);
    MPI_Alltoall(all, part, MPI_BYTE, one, part, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) look("MPI_Alltoall", one + r * part, part, round + rank, r);
}

static void combined(int n, int round)
{
    int *mine = (int *)one, *sum = (int *)all, count = n / (int)sizeof(int), root = round % size;
    for (int i = 0; i < count; i++) mine[i] = rank + i + round;
    for (int to_all = 0; to_all < 2; to_all++) {
        if (to_all) MPI_Allreduce(mine, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        else MPI_Reduce(mine, sum, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        for (int i = 0; i < count && (to_all || rank == root); i++)
            if (sum[i] != size * (i + round) + size * (size - 1) / 2) {
                printf("rank %d: %s of %d ints, int %d is %d\n", rank, to_all ? "MPI_Allreduce" : "MPI_Reduce", count, i, sum[i]);
                wrong = 1;
                break;
            }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(atoi(argv[1]), &set);
        if (sched_setaffinity(0, sizeof set, &set)) return perror("sched_setaffinity"), 1;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    one = malloc(MOST), all = malloc(MOST);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes && !wrong; i++)
        for (int round = 0; round < 3; round++) moved(sizes[i], round), combined(sizes[i], round);
    if (wrong) MPI_Abort(MPI_COMM_WORLD, 1);
    printf("rank %d of %d right\n", rank, size);
    MPI_Finalize();
    return 0;
}
