/* The first session of a process is opened after MPI_Finalize (MPI 5.0, 11.3.1): it works like any other. */
// run: n=1,2,4
#include "check.h"

int main(int argc, char **argv) {
    MPI_Session s;
    MPI_Group world;
    MPI_Comm c;
    int round, rank, size, sum;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Finalize());
    for (round = 0; round < 2; round++) {
        int code = MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
        if (code != MPI_SUCCESS) {
            // Only some launchers make it impossible; those who know want the reason.
            char text[MPI_MAX_ERROR_STRING];
            MPI_Error_string(code, text, &size);
            puts(text);
            return 1;
        }
        OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &world));
        OK(MPI_Comm_create_from_group(world, "after", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
        OK(MPI_Comm_rank(c, &rank));
        OK(MPI_Comm_size(c, &size));
        check_rank = rank;
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c));
        CHECK_EQ(sum, size * (size - 1) / 2);
        OK(MPI_Comm_free(&c));
        OK(MPI_Group_free(&world));
        OK(MPI_Session_finalize(&s));
    }
    return check_failed != 0;
}
