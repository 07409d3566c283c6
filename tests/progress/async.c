/* Communication goes on while the program computes. Rank 0 starts operations and then stays outside MPI until rank 1 has
 * seen them complete; it hears of that through a file, not through MPI. Without progress by itself this never ends. */
#define PROGRAM "async"
#include "outside.h"
#include <stdlib.h>
#include <string.h>

#define BYTES (3 << 20)

int main(int argc, char **argv)
{
    int rank;
    char *a = malloc(BYTES), *b = malloc(BYTES);
    char sent[512], received[512], answered[512];
    MPI_Request r;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(sent, sizeof sent, "%s/sent", argv[1]);
    snprintf(received, sizeof received, "%s/received", argv[1]);
    snprintf(answered, sizeof answered, "%s/answered", argv[1]);
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

    /* The same with a short message: no thread wakes for that, but a rank that polls now and then answers its sender. */
    if (rank == 0) {
        MPI_Irecv(b, 8, MPI_CHAR, 1, 3, MPI_COMM_WORLD, &r);
        compute_until(answered);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        usleep(20000);
        MPI_Ssend(a, 8, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
        tell(answered);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("async: ok\n");
    MPI_Finalize();
    return 0;
}
