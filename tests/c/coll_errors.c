// run: n=1,2,4 timeout=60
/* Wrong arguments of collectives give the right error class (MPI 5.0, 9.4). Any number of processes; nobody communicates
 * in a call that fails. */
#include "check.h"

int main(int argc, char **argv)
{
    int rank, size, a[64] = {0}, b[64] = {0}, minus[64], at[64] = {0};
    float f[4] = {0}, g[4];
    MPI_Op op = MPI_OP_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 64; i++)
        minus[i] = -1;
    CHECK_FAILS(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
    CHECK_FAILS(MPI_Bcast(a, -1, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
    CHECK_FAILS(MPI_Bcast(a, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT);
    CHECK_FAILS(MPI_Bcast(a, 1, MPI_INT, -1, MPI_COMM_WORLD), MPI_ERR_ROOT);
    CHECK_FAILS(MPI_Bcast(a, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    CHECK_FAILS(MPI_Reduce(a, b, 1, MPI_INT, MPI_SUM, size, MPI_COMM_WORLD), MPI_ERR_ROOT);
    CHECK_FAILS(MPI_Allreduce(a, b, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP);
    CHECK_FAILS(MPI_Allreduce(f, g, 1, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD), MPI_ERR_OP);
    CHECK_FAILS(MPI_Allreduce(f, g, 1, MPI_FLOAT, MPI_MAXLOC, MPI_COMM_WORLD), MPI_ERR_OP);
    CHECK_FAILS(MPI_Allreduce(a, a, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CHECK_FAILS(MPI_Allgather(a, -1, MPI_INT, b, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_COUNT);
    CHECK_FAILS(MPI_Alltoallv(a, minus, at, MPI_INT, b, minus, at, MPI_INT, MPI_COMM_WORLD), MPI_ERR_COUNT);
    CHECK_FAILS(MPI_Gather(a, 1, MPI_INT, b, 1, MPI_INT, size + 3, MPI_COMM_WORLD), MPI_ERR_ROOT);
    CHECK_FAILS(MPI_Op_free(&op), MPI_ERR_OP);
    op = MPI_SUM;
    CHECK_FAILS(MPI_Op_free(&op), MPI_ERR_OP);
    CHECK_FAILS(MPI_Reduce_local(f, g, 1, MPI_FLOAT, MPI_LXOR), MPI_ERR_OP);
    /* What was refused left no trace: this still works. */
    a[0] = 1;
    MPI_Allreduce(a, b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(b[0], size);
    return check_result();
}
