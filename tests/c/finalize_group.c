// run: n=3 timeout=60
/* A receive from MPI_ANY_SOURCE ends when all who send in its communicator are in MPI_Finalize, whatever the rest of the job does; with
 * MPI_THREAD_MULTIPLE, too, in a program of one thread. */
#include "check.h"

#define WORLD MPI_COMM_WORLD
#define LEFT(call) CHECK_CLASS(call, MPI_ERR_PROC_ABORTED)

int main(int argc, char **argv) {
    MPI_Comm pair, between = MPI_COMM_NULL;
    MPI_Request r;
    int x = 0;
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
#if STRICT
    OK(MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_split(WORLD, check_rank == 2, 0, &pair));
    if (check_rank < 2) OK(MPI_Intercomm_create(MPI_COMM_SELF, 0, WORLD, 1 - check_rank, 7, &between));
    if (check_rank == 1) {
        LEFT(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 5, pair, MPI_STATUS_IGNORE));
        LEFT(MPI_Probe(MPI_ANY_SOURCE, 5, pair, MPI_STATUS_IGNORE));
        LEFT(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 5, between, MPI_STATUS_IGNORE));
        // rank 2 is still there, and waits for this one
        OK(MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 5, WORLD, &r));
        OK(MPI_Send(&check_rank, 1, MPI_INT, 2, 5, WORLD));
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        CHECK_EQ(x, 2);
        LEFT(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 5, WORLD, MPI_STATUS_IGNORE));
    } else if (check_rank == 2) {
        OK(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 5, WORLD, MPI_STATUS_IGNORE));
        x = 2;
        OK(MPI_Send(&x, 1, MPI_INT, 1, 5, WORLD));
    }
    MPI_Finalize();
    return check_failed != 0;
#endif
    return check_end();
}
