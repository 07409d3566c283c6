#include <mpi.h>

int main(int argc, char **argv)
{
    int version, subversion;
    (void)argc;
    (void)argv;
    /* may be called before MPI_Init, so this shows that the library is found at run time */
    return MPI_Get_version(&version, &subversion) != MPI_SUCCESS || version < 5;
}
