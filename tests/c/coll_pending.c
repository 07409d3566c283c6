// run: n=1,2,3,4,7,8 timeout=120 abi=one
/* Non-blocking and persistent collectives: several at once on one communicator, mixed with blocking ones and messages,
 * with user-defined operations (MPI 5.0, 6.12 and 6.13). Any number of processes. */
#include "check.h"

static int rank, size;

static void largest(void *in, void *inout, int *n, MPI_Datatype *type)
{
    int bytes, *a = in, *b = inout;
    MPI_Type_size(*type, &bytes);
    for (int i = 0; i < *n; i++)
        if (a[i] > b[i])
            b[i] = a[i];
}

static void many_at_once(void)
{
    enum { M = 12, N = 3000 };
    static int in[M][N], out[M][N], all[64 * 3];
    int mine[3] = {rank, rank * 2, rank * 3}, word = rank == 0 ? 77 : 0, scanned;
    MPI_Request requests[M + 4];
    for (int k = 0; k < M; k++) {
        for (int i = 0; i < N; i++)
            in[k][i] = rank + k + i;
        MPI_Iallreduce(in[k], out[k], k % 2 ? N : 3, MPI_INT, k % 3 ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD, &requests[k]);
    }
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[M]);
    MPI_Iallgather(mine, 3, MPI_INT, all, 3, MPI_INT, MPI_COMM_WORLD, &requests[M + 1]);
    MPI_Ibcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[M + 2]);
    MPI_Iscan(&rank, &scanned, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[M + 3]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(M + 4, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < M; k++)
        for (int i = 0; i < (k % 2 ? N : 3); i++)
            CHECK_EQ(out[k][i], k % 3 ? size * (size - 1) / 2 + size * (k + i) : size - 1 + k + i);
    for (int r = 0; r < size; r++)
        CHECK_EQ(all[3 * r + 2], 3 * r);
    CHECK_EQ(word, 77);
    CHECK_EQ(scanned, rank * (rank + 1) / 2);
}

static void with_user_operation(void)
{
    MPI_Op op;
    MPI_Request requests[3];
    int in[5], out[3][5], flag = 0;
    MPI_Op_create(largest, 1, &op);
    for (int i = 0; i < 5; i++)
        in[i] = (rank + i) % size;
    for (int k = 0; k < 3; k++)
        MPI_Iallreduce(in, out[k], 5, MPI_INT, op, MPI_COMM_WORLD, &requests[k]);
    MPI_Op_free(&op);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    while (!flag)
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 5; i++)
            CHECK_EQ(out[k][i], size - 1);
}

static void persistent(void)
{
    MPI_Request requests[3];
    int in = 0, sum = 0, word = 0, column[64], row[64];
    MPI_Allreduce_init(&in, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Bcast_init(&word, 1, MPI_INT, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Alltoall_init(row, 1, MPI_INT, column, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
    for (int round = 0; round < 50; round++) {
        in = rank + round;
        word = rank == size - 1 ? round : -1;
        for (int r = 0; r < size; r++)
            row[r] = rank * 100 + r + round;
        MPI_Startall(3, requests);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        CHECK_EQ(sum, size * (size - 1) / 2 + size * round);
        CHECK_EQ(word, round);
        for (int r = 0; r < size; r++)
            CHECK_EQ(column[r], r * 100 + rank + round);
    }
    for (int k = 0; k < 3; k++)
        MPI_Request_free(&requests[k]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    many_at_once();
    with_user_operation();
    persistent();
    return check_result();
}
