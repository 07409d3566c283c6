/* C's side of what crosses between the languages: attributes, handles. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

int c_keyval(void)
{
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    return key;
}

int c_set(int comm, int keyval, intptr_t value)
{
    return MPI_Comm_set_attr(MPI_Comm_fromint(comm), keyval, (void *)value);
}

intptr_t c_get(int comm, int keyval, int behind)
{
    void *value;
    int flag;
    if (MPI_Comm_get_attr(MPI_Comm_fromint(comm), keyval, &value, &flag) != MPI_SUCCESS || !flag)
        return -1;
    return behind ? *(MPI_Aint *)value : (intptr_t)value;
}

int c_rank(int comm)
{
    int rank = -1;
    MPI_Comm_rank(MPI_Comm_fromint(comm), &rank);
    return rank;
}
