/* A library to load before any MPI library. It gives the program (nothing else) a clock of its own, on
 * which MPI_Allreduce takes 20 us of a restless machine, SLOWER times (environment, default 1) as
 * long, and a look at the clock 50 ns. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "noise.h"

static double seconds = 1000, luck;

static int first(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(const void **)base = (const void *)info->dlpi_addr;
    return 1;
}

/* Whether the program itself calls. */
static int of_program(const void *caller)
{
    static const void *program;
    Dl_info found;
    if (!program)
        dl_iterate_phdr(first, &program);
    return dladdr(caller, &found) && found.dli_fbase == program;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (!of_program(__builtin_return_address(0)))
        return (int)syscall(SYS_clock_gettime, clock, t);
    seconds += 50e-9;
    t->tv_sec = (time_t)seconds;
    t->tv_nsec = (long)((seconds - (double)t->tv_sec) * 1e9);
    return 0;
}

int MPI_Allreduce(const void *give, void *got, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    const char *slower = getenv("SLOWER");
    if (luck == 0)
        luck = begin() * (slower ? atof(slower) : 1);
    seconds += 20e-6 * luck * restless();
    return PMPI_Allreduce(give, got, count, type, op, comm);
}
