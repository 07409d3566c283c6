// run: n=3 timeout=60 abi=one
/* A rank that is in MPI_Finalize while others wait for it: what it had sent comes, and a rank that waits for more gets an error with its name. */
#include "check.h"

#define WORLD MPI_COMM_WORLD
#define LARGE (4 << 20)

static char large[LARGE];

static void names_rank_0(int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int len;
    CHECK_EQ(check_class(code), MPI_ERR_PROC_ABORTED);
    if (code == MPI_SUCCESS) return;
    MPI_Error_string(code, text, &len);
    if (!strstr(text, "rank 0")) FAILED("'%s' does not name rank 0", text);
}

// Rank 0 sends unexpected messages, long and short, and ends.
static void send_and_end(void) {
    MPI_Request r;
    int to, x = 7;
    fill(large, LARGE, 3);
    for (to = 1; to < 3; to++) OK(MPI_Send(&x, 1, MPI_INT, to, 1, WORLD));
    OK(MPI_Isend(large, LARGE, MPI_BYTE, 1, 2, WORLD, &r));
    OK(MPI_Request_free(&r));
}

static void what_was_sent_comes(void) {
    int x = 0;
    names_rank_0(MPI_Recv(&x, 1, MPI_INT, 0, 5, WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Recv(&x, 1, MPI_INT, 0, 1, WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(x, 7);
    if (check_rank == 2) return;
    OK(MPI_Recv(large, LARGE, MPI_BYTE, 0, 2, WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(differs(large, LARGE, 3), -1);
}

static void what_cannot_end_fails(void) {
    MPI_Request r;
    int x = 1, y;
    names_rank_0(MPI_Probe(0, 5, WORLD, MPI_STATUS_IGNORE));
    names_rank_0(MPI_Ssend(&x, 1, MPI_INT, 0, 5, WORLD));
    names_rank_0(MPI_Send(large, LARGE, MPI_BYTE, 0, 5, WORLD));
    names_rank_0(MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, WORLD));
    names_rank_0(MPI_Barrier(WORLD));
    OK(MPI_Ibarrier(WORLD, &r));
    names_rank_0(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

// What the program does not wait for goes on, and can be cancelled.
static void what_is_cancelled_is_no_error(void) {
    MPI_Request r[2];
    MPI_Status s;
    int x, y = 0, z, flag, other = 3 - check_rank;
    OK(MPI_Irecv(&x, 1, MPI_INT, 0, 5, WORLD, &r[0]));
    OK(MPI_Irecv(&y, 1, MPI_INT, MPI_ANY_SOURCE, 6, WORLD, &r[1]));
    names_rank_0(MPI_Recv(&z, 1, MPI_INT, 0, 5, WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE));
    CHECK_EQ(flag, 0);
    OK(MPI_Send(&check_rank, 1, MPI_INT, other, 6, WORLD));
    OK(MPI_Waitany(2, r, &flag, &s));
    CHECK_EQ(flag, 1);
    CHECK_EQ(y, other);
    OK(MPI_Cancel(&r[0]));
    OK(MPI_Wait(&r[0], &s));
    OK(MPI_Test_cancelled(&s, &flag));
    CHECK_EQ(flag, 1);
}

static int tested(MPI_Request *r) {
    int flag = 0, code = MPI_SUCCESS;
    while (!flag && !code) code = MPI_Test(r, &flag, MPI_STATUS_IGNORE);
    return code;
}

static int tested_with_another(MPI_Request *r) {
    int flag = 0, code = MPI_SUCCESS;
    MPI_Request two[2] = {*r, MPI_REQUEST_NULL};
    while (!flag && !code) code = MPI_Testall(2, two, &flag, MPI_STATUSES_IGNORE);
    *r = two[0];
    return code;
}

// Loops of calls that return without what they look for end, too.
static void loops_end(void) {
    MPI_Request r;
    MPI_Message m;
    MPI_Status s;
    int x, flag = 0, code = MPI_SUCCESS;
    OK(MPI_Irecv(&x, 1, MPI_INT, 0, 5, WORLD, &r));
    names_rank_0(tested(&r));
    OK(MPI_Ibarrier(WORLD, &r));
    names_rank_0(tested(&r));
    while (!flag && !code) code = MPI_Iprobe(0, 5, WORLD, &flag, &s);
    names_rank_0(code);
    for (code = MPI_SUCCESS; !flag && !code;) code = MPI_Improbe(0, 5, WORLD, &flag, &m, &s);
    names_rank_0(code);
    OK(MPI_Irecv(&x, 1, MPI_INT, 0, 5, WORLD, &r));
    CHECK(tested_with_another(&r) != MPI_SUCCESS);
}

// Rank 2 ends, and no rank is left that could send.
static void nobody_is_left(void) {
    int x;
    CHECK_CLASS(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, MPI_STATUS_IGNORE), MPI_ERR_PROC_ABORTED);
    CHECK_CLASS(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, MPI_STATUS_IGNORE), MPI_ERR_PROC_ABORTED);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
#if STRICT
    OK(MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    if (check_rank == 0) {
        send_and_end();
    } else {
        what_was_sent_comes();
        what_cannot_end_fails();
        loops_end();
        what_is_cancelled_is_no_error();
        if (check_rank == 1) nobody_is_left();
    }
    MPI_Finalize();
    return check_failed != 0;
#endif
    return check_end();
}
