// run: n=2 timeout=60
// Cancelling: a receive that nothing matched is cancelled; a send is cancelled or received, never both, never neither.
#include "check.h"

static void receives(void) {
    int v = 7, i, flag = 0;
    MPI_Request r;
    MPI_Status s;
    for (i = 0; i < 3; i++) {
        OK(MPI_Irecv(&v, 1, MPI_INT, i == 0 ? MPI_ANY_SOURCE : check_rank ^ 1, i == 2 ? MPI_ANY_TAG : 55, MPI_COMM_WORLD, &r));
        OK(MPI_Cancel(&r));
        CHECK(r != MPI_REQUEST_NULL);
        flag = 0;
        if (i == 1)
            while (!flag) OK(MPI_Test(&r, &flag, &s));
        else
            OK(MPI_Wait(&r, &s));
        CHECK(r == MPI_REQUEST_NULL);
        OK(MPI_Test_cancelled(&s, &flag));
        CHECK(flag);
    }
    OK(MPI_Irecv(&v, 1, MPI_INT, check_rank ^ 1, 56, MPI_COMM_WORLD, &r));
    OK(MPI_Cancel(&r));
    OK(MPI_Request_free(&r));
    CHECK(r == MPI_REQUEST_NULL);
    // Cancelled after it was matched: it stays received.
    OK(MPI_Irecv(&v, 1, MPI_INT, 0, 57, MPI_COMM_SELF, &r));
    int w = 9;
    OK(MPI_Send(&w, 1, MPI_INT, 0, 57, MPI_COMM_SELF));
    OK(MPI_Cancel(&r));
    OK(MPI_Wait(&r, &s));
    OK(MPI_Test_cancelled(&s, &flag));
    if (flag) // the message had not come yet
        OK(MPI_Recv(&v, 1, MPI_INT, 0, 57, MPI_COMM_SELF, &s));
    CHECK(v == 9 && count_of(&s, MPI_INT) == 1);
    // A persistent receive can be used again afterwards.
    OK(MPI_Recv_init(&v, 1, MPI_INT, check_rank ^ 1, 58, MPI_COMM_WORLD, &r));
    for (i = 0; i < 2; i++) {
        OK(MPI_Start(&r));
        OK(MPI_Cancel(&r));
        OK(MPI_Wait(&r, &s));
        OK(MPI_Test_cancelled(&s, &flag));
        CHECK(flag && r != MPI_REQUEST_NULL);
    }
    OK(MPI_Request_free(&r));
}

static void sends(int n, int synchronous) {
    char *buf = malloc(n + 1);
    int cancelled = 0, flag;
    MPI_Status s;
    if (check_rank == 0) {
        MPI_Request r;
        OK((synchronous ? MPI_Issend : MPI_Isend)(buf, n, MPI_BYTE, 1, 60, MPI_COMM_WORLD, &r));
        OK(MPI_Cancel(&r));
        OK(MPI_Wait(&r, &s));
        OK(MPI_Test_cancelled(&s, &cancelled));
        OK(MPI_Send(&cancelled, 1, MPI_INT, 1, 61, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(&cancelled, 1, MPI_INT, 0, 61, MPI_COMM_WORLD, &s));
        if (cancelled) {
            OK(MPI_Iprobe(0, 60, MPI_COMM_WORLD, &flag, &s));
            if (flag) FAILED("a cancelled %s of %d bytes was seen", synchronous ? "Issend" : "Isend", n);
        } else
            OK(MPI_Recv(buf, n, MPI_BYTE, 0, 60, MPI_COMM_WORLD, &s));
    }
    meet(); // before the next message
    free(buf);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    receives();
    meet();
    int n[] = {0, 8, 5000, 100000, 1 << 20}, i, k;
    // MPICH 5.0 waits for ever after the cancellation of a long send.
    for (i = 0; i < (STRICT ? 5 : 3); i++)
        for (k = 0; k < 4; k++) sends(n[i], STRICT && k % 2);
    // What has been received is not cancelled.
    if (check_rank == 0) {
        MPI_Request r;
        MPI_Status s;
        int v = 3, flag;
        OK(MPI_Issend(&v, 1, MPI_INT, 1, 70, MPI_COMM_WORLD, &r));
        OK(MPI_Recv(&v, 1, MPI_INT, 1, 71, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&r, &s));
        OK(MPI_Test_cancelled(&s, &flag));
        CHECK(!flag);
    } else {
        int v;
        OK(MPI_Recv(&v, 1, MPI_INT, 0, 70, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Send(&v, 1, MPI_INT, 0, 71, MPI_COMM_WORLD));
    }
    return check_end();
}
