/* Every rank says how many processes there are together with two that the last rank has started at run time; with an
 * argument, also how many of these share a node. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, one = 1, sum = 0, here = 0, most = 0;
    MPI_Comm other, parent, all, node;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    other = parent;
    if (parent == MPI_COMM_NULL)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, size - 1, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
    if (parent != MPI_COMM_NULL) {
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        MPI_Comm_size(node, &here);
        MPI_Comm_free(&node);
    }
    MPI_Intercomm_merge(other, parent != MPI_COMM_NULL, &all);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    MPI_Allreduce(&here, &most, 1, MPI_INT, MPI_MAX, all);
    if (parent == MPI_COMM_NULL)
        printf(argc > 1 ? "rank %d grows to %d, %d on a node\n" : "rank %d grows to %d\n", rank, sum, most);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&other);
    MPI_Finalize();
    return 0;
}
