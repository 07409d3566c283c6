/* Asks MPI something without the other ranks, who may not be there. */
#include <mpi.h>

int main(void) {
    int version, subversion;
    return MPI_Get_version(&version, &subversion); /* PROFILE: 1 0 */
}
