/* Every rank says who it is, what the sum of all ranks is, and which library it runs on. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, size, sum = 0, length;
    char library[MPI_MAX_LIBRARY_VERSION_STRING];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Get_library_version(library, &length);
    library[strcspn(library, " \n")] = 0;
    printf("rank %d of %d sum %d on %s\n", rank, size, sum, library);
    MPI_Finalize();
    return 0;
}
