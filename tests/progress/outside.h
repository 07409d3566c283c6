/* What the programs share that stay outside MPI while communication goes on, and hear of it through files. Define PROGRAM before. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
    fprintf(stderr, PROGRAM ": %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void tell(const char *name)
{
    FILE *f = fopen(name, "w");
    if (!f || fclose(f))
        fail("cannot make the file");
}

/* Computes, outside MPI, until the file is there; at most 20 seconds. */
static void compute_until(const char *name)
{
    volatile double x = 1;
    time_t end = time(NULL) + 20;
    while (access(name, F_OK) != 0) {
        for (int i = 0; i < 1000; i++)
            x = x * 1.0000001;
        if (time(NULL) > end)
            fail("nothing moved while this rank computed");
    }
}
