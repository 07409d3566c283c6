/* A tool in C, which sees what Fortran calls. */
#include <mpi.h>

int of_c;

int MPI_Barrier(MPI_Comm comm)
{
    of_c++;
    return PMPI_Barrier(comm);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    of_c++;
    return PMPI_Bcast(buffer, count, type, root, comm);
}
