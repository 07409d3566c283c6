/* A library to load before any MPI library: MPI_Allreduce takes a twentieth more time, as measured
 * by the clock that programs use. */
#include <mpi.h>

int MPI_Allreduce(const void *give, void *got, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    double start = MPI_Wtime(), until;
    int code = PMPI_Allreduce(give, got, count, type, op, comm);
    until = start + 1.05 * (MPI_Wtime() - start);
    while (MPI_Wtime() < until)
        ;
    return code;
}
