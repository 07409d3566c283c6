/* Communication goes on while the program computes. Rank 0 starts operations and then stays outside MPI until rank 1 has
 * seen them complete; it hears of that through a file, not through MPI. Without progress by itself this never ends. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BYTES (3 << 20)

static void fail(const char *what)
{
    fprintf(stderr, "async: %s\n", what);
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

int main(int argc, char **argv)
{
    int rank;
    char *a = malloc(BYTES), *b = malloc(BYTES);
    char sent[512], received[512];
    MPI_Request r;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(sent, sizeof sent, "%s/sent", argv[1]);
    snprintf(received, sizeof received, "%s/received", argv[1]);
    memset(a, rank + 1, BYTES);
    memset(b, 0, BYTES);

    /* A send whose receive is posted after the sender has left MPI. */
    if (rank == 0) {
        MPI_Isend(a, BYTES, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &r);
        compute_until(sent);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        usleep(20000);
        MPI_Recv(b, BYTES, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (b[0] != 1 || b[BYTES - 1] != 1)
            fail("wrong data");
        tell(sent);
    }
    MPI_Barrier(MPI_COMM_WORLD);

    /* A receive whose synchronous send comes after the receiver has left MPI. */
    if (rank == 0) {
        MPI_Irecv(b, BYTES, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &r);
        compute_until(received);
        if (b[0] != 2 || b[BYTES - 1] != 2)
            fail("data is not in place before MPI_Wait");
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        usleep(20000);
        MPI_Ssend(a, BYTES, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
        usleep(200000);
        tell(received);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("async: ok\n");
    MPI_Finalize();
    return 0;
}
