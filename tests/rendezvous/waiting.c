/* After all have met, the process with END=kill or END=abort ends the job in that way; the others compute for ever. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *end = getenv("END");

    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    if (end && strcmp(end, "kill") == 0)
        raise(SIGKILL);
    if (end && strcmp(end, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 7);
    for (;;)
        pause();
}
