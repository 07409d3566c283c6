/* A job that serves a port under a published name, or one that connects to it:
 *     meets serve NAME CLIENTS | meets call NAME */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void talk(MPI_Comm inter) {
    static double out[20000], in[20000];
    int remote, sum = 0, one = 1, i, mine, all_size;
    MPI_Comm all;
    MPI_Comm_remote_size(inter, &remote);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    MPI_Intercomm_merge(inter, 0, &all);
    MPI_Comm_rank(all, &mine);
    MPI_Comm_size(all, &all_size);
    for (i = 0; i < 20000; i++) out[i] = mine;
    MPI_Sendrecv(out, 20000, MPI_DOUBLE, (mine + 1) % all_size, 0, in, 20000, MPI_DOUBLE,
                 (mine + all_size - 1) % all_size, 0, all, MPI_STATUS_IGNORE);
    if (sum != remote || in[19999] != (mine + all_size - 1) % all_size) MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Allreduce(out, in, 20000, MPI_DOUBLE, MPI_SUM, all);
    if (in[0] != all_size * (all_size - 1) / 2) MPI_Abort(MPI_COMM_WORLD, 4);
    MPI_Comm_free(&all);
    if (rank == 0) printf("met %d\n", remote), fflush(stdout);
}

int main(int argc, char **argv) {
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    int i, serves;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    serves = strcmp(argv[1], "serve") == 0;
    if (serves && rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name(argv[2], MPI_INFO_NULL, port);
        printf("ready\n");
        fflush(stdout);
    }
    if (!serves && rank == 0) MPI_Lookup_name(argv[2], MPI_INFO_NULL, port);
    for (i = 0; i < (serves ? atoi(argv[3]) : 1); i++) {
        if (serves) MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        else MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        talk(inter);
        MPI_Comm_disconnect(&inter);
    }
    if (serves && rank == 0) {
        MPI_Unpublish_name(argv[2], MPI_INFO_NULL, port);
        MPI_Close_port(port);
    }
    MPI_Finalize();
    return 0;
}
