/* What a communicator costs: bytes of memory a rank for each duplicate (heap in use, and
 * resident pages of the process, the mean and the worst over the ranks), with and without a
 * collective on it; and the time of MPI_Comm_split and MPI_Comm_dup. One JSON line each.
 *
 *   comm [duplicates [repetitions]]
 */
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;

static double heap(void) {
    struct mallinfo2 m = mallinfo2();
    return (double)m.uordblks + (double)m.hblkhd;
}

static double resident(void) {
    long pages = 0, shared = 0, all = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f) {
        if (fscanf(f, "%ld %ld %ld", &all, &pages, &shared) != 3) pages = shared = 0;
        fclose(f);
    }
    return 4096.0 * (double)pages;
}

static void report(const char *what, double mine) {
    double sum, worst;
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"bench\": \"comm\", \"op\": \"%s\", \"ranks\": %d, \"mean_bytes\": %.1f, \"worst_bytes\": %.1f}\n", what, size,
               sum / size, worst);
}

static void memory(int n, int used) {
    MPI_Comm *c = malloc((size_t)n * sizeof *c);
    double before, held;
    int one = 1, sum;
    for (int i = 0; i < n; i++) c[i] = MPI_COMM_NULL;
    before = heap(), held = resident();
    for (int i = 0; i < n; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &c[i]);
        if (used) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c[i]);
    }
    before = heap() - before, held = resident() - held;
    report(used ? "heap, used" : "heap, never used", before / n);
    report(used ? "resident, used" : "resident, never used", held / n);
    for (int i = 0; i < n; i++) MPI_Comm_free(&c[i]);
    free(c);
}

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median over the repetitions of the slowest rank's time. */
static void splits(const char *what, int reps, int parts) {
    double *t = malloc((size_t)reps * sizeof *t);
    for (int i = 0; i < reps; i++) {
        MPI_Comm c;
        double begin, took;
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        if (parts) MPI_Comm_split(MPI_COMM_WORLD, rank % parts, -rank, &c);
        else MPI_Comm_dup(MPI_COMM_WORLD, &c);
        took = 1e6 * (MPI_Wtime() - begin);
        MPI_Allreduce(&took, &t[i], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Comm_free(&c);
    }
    qsort(t, (size_t)reps, sizeof *t, by_time);
    if (rank == 0)
        printf("{\"bench\": \"comm\", \"op\": \"%s\", \"ranks\": %d, \"median_us\": %.1f, \"lowest_us\": %.1f}\n", what, size,
               t[reps / 2], t[0]);
    free(t);
}

int main(int argc, char **argv) {
    int many = argc > 1 ? atoi(argv[1]) : 200, reps = argc > 2 ? atoi(argv[2]) : 51;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    memory(8, 1); /* what comes once: connections, pools */
    memory(many, 0);
    memory(many, 1);
    splits("MPI_Comm_split, one part", reps, 1);
    splits("MPI_Comm_split, two parts", reps, 2);
    splits("MPI_Comm_dup", reps, 0);
    MPI_Finalize();
    return 0;
}
