/* Sessions without MPI_Init: process sets, a communicator from a group, an intercommunicator from groups. */
// run: n=1,2,4
#include "check.h"

int main(int argc, char **argv) {
    MPI_Session s;
    MPI_Group world, self;
    MPI_Comm c;
    MPI_Info info;
    int n, rank, size, len, flag, got = -1;
    char name[256];
    (void)argc; (void)argv;
    // The handler that a call is given for what it makes is also asked when the call fails.
    CHECK_CLASS(MPI_Session_init((MPI_Info)(intptr_t)0x7ffff0, MPI_ERRORS_RETURN, &s), MPI_ERR_INFO);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s));
    CHECK_CLASS(MPI_Comm_create_from_group(MPI_GROUP_NULL, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c), MPI_ERR_GROUP);
    OK(MPI_Session_set_errhandler(s, MPI_ERRORS_RETURN));
    OK(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n));
    CHECK(n >= 2);
    for (int i = 0; i < n; i++) {
        len = 0;
        OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &len, NULL));
        CHECK(len > 1 && len < 256);
        OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &len, name));
        CHECK_EQ(len, strlen(name) + 1);
        OK(MPI_Session_get_pset_info(s, name, &info));
        OK(MPI_Info_get(info, "mpi_size", 255, name, &flag));
        CHECK(flag && atoi(name) > 0);
        OK(MPI_Info_free(&info));
    }
    OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &world));
    OK(MPI_Group_from_session_pset(s, "mpi://SELF", &self));
    OK(MPI_Group_size(self, &size));
    CHECK_EQ(size, 1);
    OK(MPI_Comm_create_from_group(world, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    OK(MPI_Comm_rank(c, &rank));
    OK(MPI_Comm_size(c, &size));
    check_rank = rank;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, right, 5, &got, 1, MPI_INT, left, 5, c, MPI_STATUS_IGNORE));
    CHECK_EQ(got, left);
    if (size > 1) {
        MPI_Group low, high;
        MPI_Comm inter;
        int zero = 0, mine = rank == 0;
        OK(MPI_Group_incl(world, 1, &zero, &low));
        OK(MPI_Group_excl(world, 1, &zero, &high));
        OK(MPI_Intercomm_create_from_groups(mine ? low : high, 0, mine ? high : low, 0, "two",
                                            MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
        OK(MPI_Comm_remote_size(inter, &n));
        CHECK_EQ(n, mine ? size - 1 : 1);
        OK(MPI_Comm_free(&inter));
        OK(MPI_Group_free(&low));
        OK(MPI_Group_free(&high));
    }
    OK(MPI_Comm_free(&c));
    OK(MPI_Group_free(&self));
    OK(MPI_Group_free(&world));
    OK(MPI_Session_finalize(&s));
    CHECK(s == MPI_SESSION_NULL);
    return check_failed != 0;
}
