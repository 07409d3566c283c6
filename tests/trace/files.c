/* Writes blocks of all ranks in turn to FILE through one aggregator, and reads its own part back
 * alone. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64, BLOCKS = 1000, BYTES = BLOCK * BLOCKS };

int main(int argc, char **argv)
{
    static char data[BYTES];
    int rank, size;
    MPI_File file;
    MPI_Info info;
    MPI_Datatype type;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    memset(data, 'a' + rank, BYTES);
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_nodes", "1");
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "romio_cb_read", "disable");
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Info_free(&info);
    MPI_Type_vector(BLOCKS, BLOCK, BLOCK * size, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, type, "native", MPI_INFO_NULL);
    MPI_Type_free(&type);
    MPI_File_write_all(file, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, 0, data, BYTES / 2, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
