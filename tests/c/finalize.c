// run: n=1,2
/* MPI_Finalize with an operation that has not ended is an error, and MPI stays up. */
#include "check.h"

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
#if STRICT
    int x = -1;
    MPI_Request r;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    OK(MPI_Irecv(&x, 1, MPI_INT, check_rank, 3, MPI_COMM_WORLD, &r));
    CHECK_CLASS(MPI_Finalize(), MPI_ERR_REQUEST);
    OK(MPI_Send(&check_rank, 1, MPI_INT, check_rank, 3, MPI_COMM_WORLD));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK_EQ(x, check_rank);
#endif
    return check_end();
}
