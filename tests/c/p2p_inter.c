// run: n=2,4 timeout=60
// Point-to-point over an intercommunicator: ranks count in the other group.
#include "check.h"

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    int side = check_rank % 2, me, remote, i, v, flag;
    MPI_Comm local, inter;
    MPI_Status s;
    MPI_Request r;
    MPI_Comm_split(MPI_COMM_WORLD, side, check_rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - side, 9, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Comm_rank(inter, &me);
    MPI_Comm_remote_size(inter, &remote);
    for (i = 0; i < remote; i++) {
        v = side * 100 + me;
        OK(MPI_Isend(&v, 1, MPI_INT, i, 3, inter, &r));
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    }
    for (i = 0; i < remote; i++) {
        OK(MPI_Recv(&v, 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : i, 3, inter, &s));
        CHECK_EQ(v, (1 - side) * 100 + s.MPI_SOURCE);
        CHECK_EQ(s.MPI_TAG, 3);
    }
    MPI_Request b;
    v = -1;
    int w = me;
    OK(MPI_Issend(&w, 1, MPI_INT, me, 4, inter, &r));
    OK(MPI_Irecv(&v, 1, MPI_INT, me, 4, inter, &b));
    OK(MPI_Wait(&b, &s));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(v == me && s.MPI_SOURCE == me);
    CHECK_CLASS(MPI_Send(&v, 1, MPI_INT, remote, 0, inter), MPI_ERR_RANK);
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, inter, &flag, &s));
    CHECK(!flag);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
    return check_end();
}
