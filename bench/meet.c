/* Jobs that were started apart meet:
 *
 *   meet serve FILE ROUNDS     opens a port, writes its name into FILE, accepts so often
 *   meet call FILE ROUNDS      connects so often, and prints one JSON line
 *
 * Both disconnect each time. "connect_ms" is how long MPI_Comm_connect took, "whole_ms" how long a
 * round took, with MPI_Comm_disconnect. In the last round the two exchange messages as well, after
 * the clock was read: "one_way_us" is the time of a message of so many bytes, half a ping-pong. FILE
 * must not exist before. */
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

/* Half the time of a ping-pong of so many bytes, microseconds. */
static double one_way(MPI_Comm other, int bytes, int times, int serves)
{
    char *data = calloc(1, bytes);
    double begun = 0;
    for (int i = -times / 10; i < times; i++) {
        if (i == 0)
            begun = MPI_Wtime();
        if (serves) {
            MPI_Recv(data, bytes, MPI_BYTE, 0, 0, other, MPI_STATUS_IGNORE);
            MPI_Send(data, bytes, MPI_BYTE, 0, 0, other);
        } else {
            MPI_Send(data, bytes, MPI_BYTE, 0, 0, other);
            MPI_Recv(data, bytes, MPI_BYTE, 0, 0, other, MPI_STATUS_IGNORE);
        }
    }
    double us = (MPI_Wtime() - begun) * 1e6 / times / 2;
    free(data);
    return us;
}

enum { SHORT = 8, LONG = 1 << 20, SHORTS = 2000, LONGS = 50 };

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
        if (i == rounds - 1) {
            one_way(client, SHORT, SHORTS, 1);
            one_way(client, LONG, LONGS, 1);
        }
        MPI_Comm_disconnect(&client);
    }
    MPI_Close_port(port);
}

static void call(const char *file, int rounds)
{
    char port[MPI_MAX_PORT_NAME] = "";
    double *connect = malloc(rounds * sizeof *connect), *whole = malloc(rounds * sizeof *whole);
    double of_short = 0, of_long = 0;
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
        double talked = MPI_Wtime();
        if (i == rounds - 1) {
            of_short = one_way(server, SHORT, SHORTS, 0);
            of_long = one_way(server, LONG, LONGS, 0);
        }
        talked = MPI_Wtime() - talked;
        MPI_Comm_disconnect(&server);
        whole[i] = (MPI_Wtime() - begun - talked) * 1e3;
    }
    printf("{\"bench\": \"meet\", \"rounds\": %d, ", rounds);
    print("connect_ms", connect, rounds);
    printf(", ");
    print("whole_ms", whole, rounds);
    printf(", \"one_way_us\": {\"%d\": %.2f, \"%d\": %.2f}}\n", SHORT, of_short, LONG, of_long);
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
