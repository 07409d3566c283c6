/* A program that posts a receive, sends, waits, and computes between such visits to MPI leaves nothing behind that the event
 * thread could move while it computes. What that thread uses of a processor, in looks whether the program stays away, is at most its
 * share (waiting/async_progress.rs, Budget) of the time that passes, and what it may use in advance: each look is paid for, in this very
 * currency, before the next, so a slow or busy machine has fewer looks. The limit here leaves room for what it does in earnest. */
#define _GNU_SOURCE
#include <mpi.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void fail(const char *what)
{
    fprintf(stderr, "visits: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#define VISITS 400
#define COUNT 2500
#define WORK 400000
#define LIMIT(elapsed) (0.02 * (elapsed) + 1e-3)

/* The clock of what a thread of this process uses, as the kernel numbers it. */
static clockid_t clock_of(int thread)
{
    return ((~(clockid_t)thread) << 3) | 6;
}

static int is_event_thread(const char *thread)
{
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", thread);
    FILE *f = fopen(path, "r");
    int read = f && fgets(name, sizeof name, f);
    if (f)
        fclose(f);
    return read && strcmp(name, "kw-event\n") == 0;
}

/* Seconds of a processor that the event thread has used; 0 when there is none. */
static double used(void)
{
    struct timespec t = {0, 0};
    struct dirent *d;
    DIR *threads = opendir("/proc/self/task");
    if (!threads)
        fail("cannot see my threads");
    while ((d = readdir(threads)))
        if (is_event_thread(d->d_name) && clock_gettime(clock_of(atoi(d->d_name)), &t))
            fail("the event thread has no clock");
    closedir(threads);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void visit(int peer, double *given, double *got)
{
    double sum = 0, all;
    MPI_Request r;
    MPI_Irecv(got, COUNT, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &r);
    for (int i = 0; i < COUNT; i++)
        sum += given[i];
    MPI_Send(given, COUNT, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static double given[COUNT], got[COUNT];
    volatile double x = 1;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double start = MPI_Wtime();
    for (int i = 0; i < VISITS; i++) {
        visit(rank ^ 1, given, got);
        for (int k = 0; k < WORK; k++)
            x = x * 1.0000001;
    }
    double elapsed = MPI_Wtime() - start, taken = used();
    if (taken > LIMIT(elapsed)) {
        fprintf(stderr, "visits: in %.3f s the event thread used %.4f s of a processor, though nothing was left to it\n", elapsed, taken);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("visits: ok\n");
    MPI_Finalize();
    return 0;
}
