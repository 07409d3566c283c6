/* Jobs that were started apart meet:
 *
 *   meet serve FILE ROUNDS     opens a port, writes its name into FILE, accepts so often
 *   meet call FILE ROUNDS      connects so often, and prints JSON lines
 *   meet pair ROUNDS           spawns one that serves and one that calls, a job each
 *
 * At most 101 rounds, each of which disconnects. Of "connect", "us" is how long MPI_Comm_connect took,
 * "whole_us" how long a round took, with MPI_Comm_disconnect, and "worst_us" the longest
 * MPI_Comm_connect. In the last round the two exchange messages as well, after the clock was read: of
 * "message", "us" is the time of a message, half a ping-pong, by its bytes. FILE must not exist
 * before. */
#define PROGRAM "meet"
#include "measure.h"
#include "options.h"
#include <unistd.h>

/* The parent of this process, or MPI_COMM_NULL. */
static MPI_Comm parent;

/* Half the time of a ping-pong of BYTES bytes, microseconds. */
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

static void tell(const char *file, const char *port)
{
    char half[4096];
    if (parent != MPI_COMM_NULL) {
        MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, parent);
        return;
    }
    snprintf(half, sizeof half, "%s.new", file);
    FILE *f = fopen(half, "w");
    if (!f || fputs(port, f) < 0 || fclose(f) || rename(half, file))
        give_up("the name of the port cannot be written to", file);
}

static void hear(const char *file, char *port)
{
    FILE *f;
    if (parent != MPI_COMM_NULL) {
        MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, parent, MPI_STATUS_IGNORE);
        return;
    }
    while (!(f = fopen(file, "r")))
        usleep(1000); /* until the server is there */
    if (!fgets(port, MPI_MAX_PORT_NAME, f))
        give_up("there is no name of a port in", file);
    fclose(f);
}

static void serve(const char *file, int rounds)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Open_port(MPI_INFO_NULL, port);
    tell(file, port);
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
    struct batches connect = {rounds, {0}}, whole = {rounds, {0}};
    double of_short = 0, of_long = 0, worst = 0;
    hear(file, port);
    for (int i = 0; i < rounds; i++) {
        MPI_Comm server;
        double begun = MPI_Wtime();
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &server);
        connect.us[i] = (MPI_Wtime() - begun) * 1e6;
        worst = connect.us[i] > worst ? connect.us[i] : worst;
        double talked = MPI_Wtime();
        if (i == rounds - 1) {
            of_short = one_way(server, SHORT, SHORTS, 0);
            of_long = one_way(server, LONG, LONGS, 0);
        }
        talked = MPI_Wtime() - talked;
        MPI_Comm_disconnect(&server);
        whole.us[i] = (MPI_Wtime() - begun - talked) * 1e6;
    }
    printf("{\"bench\": \"meet\", \"op\": \"connect\", ");
    print_times("us", &connect);
    printf(", ");
    print_times("whole_us", &whole);
    printf(", \"worst_us\": %.1f}\n", worst);
    printf("{\"bench\": \"meet\", \"op\": \"message\", \"bytes\": %d, \"us\": %.3f}\n", SHORT, of_short);
    printf("{\"bench\": \"meet\", \"op\": \"message\", \"bytes\": %d, \"us\": %.3f}\n", LONG, of_long);
    fflush(stdout);
}

/* Two jobs of one process each, that know nothing of each other. */
static void pair(char *program, char *rounds)
{
    char port[MPI_MAX_PORT_NAME], none[] = "-", serves[] = "serve", calls[] = "call";
    char *server[] = {serves, none, rounds, NULL}, *client[] = {calls, none, rounds, NULL};
    MPI_Comm of_server, of_client;
    MPI_Comm_spawn(program, server, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &of_server, MPI_ERRCODES_IGNORE);
    MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, of_server, MPI_STATUS_IGNORE);
    MPI_Comm_spawn(program, client, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &of_client, MPI_ERRCODES_IGNORE);
    MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, of_client);
    MPI_Comm_disconnect(&of_client);
    MPI_Comm_disconnect(&of_server);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    const char *what = argc > 1 ? argv[1] : "";
    int pairs = strcmp(what, "pair") == 0;
    if (argc != (pairs ? 3 : 4))
        give_up("wanted are 'serve' or 'call', a file, and a number of rounds, or 'pair' and the rounds; not", what);
    int rounds = whole_number(argv[argc - 1], 1, MOST_BATCHES, "the number of rounds is from 1 to 101, not");
    if (pairs)
        pair(argv[0], argv[2]);
    else if (strcmp(what, "serve") == 0)
        serve(argv[2], rounds);
    else if (strcmp(what, "call") == 0)
        call(argv[2], rounds);
    else
        give_up("wanted is 'serve', 'call' or 'pair', not", what);
    if (parent != MPI_COMM_NULL)
        MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
}
