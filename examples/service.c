/* A server, and clients that come and go, each a job of its own:
 *
 *     mpicc -O2 -o service service.c
 *     mpiexec -n 1 ./service serve NAME CLIENTS &
 *     mpiexec -n 3 ./service ask NAME 17
 *
 * The server publishes a port under NAME, and serves one client after the other: each of the
 * client's processes sends a number and gets its square. It ends after CLIENTS clients. A client
 * that comes before the server has published the port asks again for up to ten seconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void serve(const char *name, int clients)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Publish_name(name, MPI_INFO_NULL, port);
    for (int i = 0; i < clients; i++) {
        MPI_Comm client;
        int size;
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &client);
        MPI_Comm_remote_size(client, &size);
        for (int k = 0; k < size; k++) {
            MPI_Status status;
            long number;
            MPI_Recv(&number, 1, MPI_LONG, MPI_ANY_SOURCE, 0, client, &status);
            number *= number;
            MPI_Send(&number, 1, MPI_LONG, status.MPI_SOURCE, 0, client);
        }
        MPI_Comm_disconnect(&client);
        printf("client %d had %d processes\n", i, size);
        fflush(stdout);
    }
    MPI_Unpublish_name(name, MPI_INFO_NULL, port);
    MPI_Close_port(port);
}

static void look_up(const char *name, char *port)
{
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int tries = 0; tries < 100; tries++) {
        if (MPI_Lookup_name(name, MPI_INFO_NULL, port) == MPI_SUCCESS)
            return;
        usleep(100000);
    }
    fprintf(stderr, "service: '%s' is not served\n", name);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void ask(const char *name, long number)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm server;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    number += rank;
    long square = number;
    if (rank == 0)
        look_up(name, port);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &server);
    MPI_Sendrecv_replace(&square, 1, MPI_LONG, 0, 0, 0, 0, server, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&server);
    printf("the square of %ld is %ld\n", number, square);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc == 4 && strcmp(argv[1], "serve") == 0)
        serve(argv[2], atoi(argv[3]));
    else if (argc == 4 && strcmp(argv[1], "ask") == 0)
        ask(argv[2], atol(argv[3]));
    else {
        fprintf(stderr, "service: wanted is 'serve NAME CLIENTS' or 'ask NAME NUMBER'\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
