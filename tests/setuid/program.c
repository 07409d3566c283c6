// A program that runs with more rights than its caller: says with which, starts MPI, and says how that went.
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    printf("uid %d rights %d\n", (int)getuid(), (int)geteuid());
    fflush(stdout);
    if (argc > 1 && !strcmp(argv[1], "rights")) return 0;
    MPI_Init(&argc, &argv);
    int size, one = 1, sum;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    printf("started, %d of %d\n", sum, size);
    return sum != size;
}
