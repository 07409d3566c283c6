/* Rank 0 waits in a collective write until rank 1 has come, which takes long. A session that begins afterwards changes nothing. */
#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char data[1 << 20];
    int rank;
    MPI_File file;
    MPI_Session session;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    if (rank == 1)
        usleep(300000);
    MPI_File_write_at_all(file, (MPI_Offset)rank * sizeof data, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Session_finalize(&session);
    MPI_Finalize();
    return 0;
}
