// run: n=2,4 timeout=20 abi=one
/* A communicator of MPI_Comm_idup may be used as soon as MPI_Request_get_status, or one of its forms for several requests, has said
 * that its request is complete (MPI 5.0, 7.4.2): it is another time than MPI_Wait, which comes after the use here. */
#include "check.h"

static void use(MPI_Comm comm) {
    int sum = 0, size;
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Allreduce(&check_rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, size * (size - 1) / 2);
    OK(MPI_Barrier(comm));
}

static int one(MPI_Request *request) {
    int flag;
    OK(MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE));
    return flag;
}

static int any(MPI_Request *request) {
    int flag, index;
    OK(MPI_Request_get_status_any(1, request, &index, &flag, MPI_STATUS_IGNORE));
    return flag;
}

static int all(MPI_Request *request) {
    int flag;
    OK(MPI_Request_get_status_all(1, request, &flag, MPI_STATUSES_IGNORE));
    return flag;
}

static int some(MPI_Request *request) {
    int count, index;
    OK(MPI_Request_get_status_some(1, request, &count, &index, MPI_STATUSES_IGNORE));
    return count == 1;
}

int main(int argc, char **argv) {
    int (*ways[])(MPI_Request *) = {one, any, all, some};
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    for (int i = 0; i < 4; i++) {
        MPI_Comm comm;
        MPI_Request request;
        OK(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request));
        while (!ways[i](&request)) {}
        use(comm);
        CHECK_EQ(ways[i](&request), 1); /* once more: nothing is done twice */
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        use(comm);
        OK(MPI_Comm_free(&comm));
    }
    return check_end();
}
