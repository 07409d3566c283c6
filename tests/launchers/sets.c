/* Every rank says which process sets it is in, and how many are in each; those of the set "left" add their ranks. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int n, rank, size, one = 1, sum;
    char name[MPI_MAX_PSET_NAME_LEN], line[1000] = "";

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n);
    for (int i = 0; i < n; i++) {
        int length = sizeof name;
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name);
        MPI_Group_from_session_pset(session, name, &group);
        MPI_Group_size(group, &size);
        sprintf(line + strlen(line), " %s=%d", name, size);
        MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        if (i == 0)
            MPI_Comm_rank(comm, &rank);
        sprintf(line + strlen(line), "(%d)", sum);
        MPI_Comm_free(&comm);
        MPI_Group_free(&group);
    }
    printf("rank %d sets%s\n", rank, line);
    MPI_Session_finalize(&session);
    return 0;
}
