/* Sessions one after the other, and beside and after the world model (MPI 5.0, 11.3.1: MPI_Session_init may be called
 * repeatedly, and after MPI_Finalize). Each works like the first, whatever the one before left behind. */
// run: n=1,2,4
#include "check.h"

/* Opens a session; its processes greet each other. What is made may be left for the session's end to forget. */
static void open_and_close(int round, int tidy) {
    MPI_Session s;
    MPI_Group world;
    MPI_Comm c = MPI_COMM_NULL, d = MPI_COMM_NULL;
    MPI_Request persistent;
    int rank, size, got = -1, mine = 0, sum = 0;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
    OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &world));
    OK(MPI_Comm_create_from_group(world, "round", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    OK(MPI_Comm_rank(c, &rank));
    OK(MPI_Comm_size(c, &size));
    check_rank = rank;
    mine = 10 * round + rank;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    OK(MPI_Sendrecv(&mine, 1, MPI_INT, right, 5, &got, 1, MPI_INT, left, 5, c, MPI_STATUS_IGNORE));
    CHECK_EQ(got, 10 * round + left);
    OK(MPI_Comm_dup(c, &d));
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, d));
    CHECK_EQ(sum, size * (10 * round) + size * (size - 1) / 2);
    OK(MPI_Send_init(&mine, 1, MPI_INT, right, 6, d, &persistent));
    if (tidy) {
        OK(MPI_Request_free(&persistent));
        OK(MPI_Comm_free(&d));
        OK(MPI_Comm_free(&c));
        OK(MPI_Group_free(&world));
    }
    OK(MPI_Session_finalize(&s));
    CHECK(s == MPI_SESSION_NULL);
}

int main(int argc, char **argv) {
    MPI_Session outer;
    int flag;
    open_and_close(1, 1);
#if STRICT
    // What a session leaves behind does no harm to the next one. (The standard has the user free it.)
    open_and_close(2, 0);
#endif
    open_and_close(3, 1);
    // A session beside the world model, which outlives it.
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &outer));
    open_and_close(4, 1);
    OK(MPI_Finalize());
    OK(MPI_Finalized(&flag));
    CHECK(flag);
    open_and_close(5, 1);
    OK(MPI_Session_finalize(&outer));
    // And after all of it.
    open_and_close(6, 1);
    OK(MPI_Initialized(&flag));
    CHECK(flag);
    return check_failed != 0;
}
