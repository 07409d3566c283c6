/* Jobs that were started apart meet:
 *
 *   meet serve FILE ROUNDS     opens a port, writes its name into FILE, accepts so often
 *   meet call FILE ROUNDS      connects so often, and prints one JSON line
 *
 * Both disconnect each time. "connect_ms" is how long MPI_Comm_connect took, "whole_ms" how long a
 * round took, with MPI_Comm_disconnect. FILE must not exist before. */
#define PROGRAM "meet"
#include "measure.h"
#include "options.h"
#include <unistd.h>

static void print(const char *name, double *ms, int rounds)
{
    double first = ms[0];
    qsort(ms, rounds, sizeof *ms, by_value);
    printf("\"%s\": {\"min\": %.3f, \"median\": %.3f, \"worst\": %.3f, \"first\": %.3f}", name, ms[0], ms[rounds / 2], ms[rounds - 1], first);
}

static void serve(const char *file, int rounds)
{
    char port[MPI_MAX_PORT_NAME], half[4096];
    MPI_Open_port(MPI_INFO_NULL, port);
    snprintf(half, sizeof half, "%s.new", file);
    FILE *f = fopen(half, "w");
    if (!f || fputs(port, f) < 0 || fclose(f) || rename(half, file))
        give_up("the name of the port cannot be written to", file);
    for (int i = 0; i < rounds; i++) {
        MPI_Comm client;
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &client);
        MPI_Comm_disconnect(&client);
    }
    MPI_Close_port(port);
}

static void call(const char *file, int rounds)
{
    char port[MPI_MAX_PORT_NAME] = "";
    double *connect = malloc(rounds * sizeof *connect), *whole = malloc(rounds * sizeof *whole);
    FILE *f;
    while (!(f = fopen(file, "r")))
        usleep(1000); /* until the server is there */
    if (!fgets(port, sizeof port, f))
        give_up("there is no name of a port in", file);
    fclose(f);
    for (int i = 0; i < rounds; i++) {
        MPI_Comm server;
        double begun = MPI_Wtime();
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &server);
        connect[i] = (MPI_Wtime() - begun) * 1e3;
        MPI_Comm_disconnect(&server);
        whole[i] = (MPI_Wtime() - begun) * 1e3;
    }
    printf("{\"bench\": \"meet\", \"rounds\": %d, ", rounds);
    print("connect_ms", connect, rounds);
    printf(", ");
    print("whole_ms", whole, rounds);
    printf("}\n");
    free(connect);
    free(whole);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc != 4)
        give_up("wanted are 'serve' or 'call', a file, and a number of rounds; not", argc > 1 ? argv[1] : "");
    int rounds = whole_number(argv[3], 1, 1000000, "the number of rounds is from 1 to 1000000, not");
    if (strcmp(argv[1], "serve") == 0)
        serve(argv[2], rounds);
    else if (strcmp(argv[1], "call") == 0)
        call(argv[2], rounds);
    else
        give_up("wanted is 'serve' or 'call', not", argv[1]);
    MPI_Finalize();
    return 0;
}
