/* A buffer whose parts are computed one after the other and may leave as they are ready:
 * partitioned sends (MPI 5.0, chapter 4) beside one message at the end. One JSON line a size, a
 * number of parts and a way.
 *
 *     parts [--sizes LIST] [--parts LIST] [--work US] [--rounds N]
 *
 * Rank 0 computes each part for --work / parts microseconds (default 1000 in all) and says that
 * it is ready ("partitioned"), or sends all after the last one ("send"). Rank 1 has started its
 * receive before, which it has said. The time of a round is from the first computation until
 * rank 0 has heard that everything is there, less the computation: what communication adds. A
 * rank wants a processor of its own. */
#define PROGRAM "parts"
#include "clock.h"
#include "measure.h"
#include "options.h"

#define LIST 16
#define LARGEST (16 << 20)
#define MOST_PARTS 1024

static int rank;
static char *buffer;
static const MPI_Comm all = MPI_COMM_WORLD;

static void compute(double us)
{
    double end = now() + us * 1e-6;
    while (now() < end)
        ;
}

static void word(int from, int to)
{
    if (rank == from)
        MPI_Send(NULL, 0, MPI_CHAR, to, 2, all);
    if (rank == to)
        MPI_Recv(NULL, 0, MPI_CHAR, from, 2, all, MPI_STATUS_IGNORE);
}

static void make(int bytes, int parts, int partitioned, MPI_Request *request)
{
    if (partitioned && rank == 0)
        MPI_Psend_init(buffer, parts, bytes / parts, MPI_CHAR, 1, 1, all, MPI_INFO_NULL, request);
    else if (partitioned)
        MPI_Precv_init(buffer, parts, bytes / parts, MPI_CHAR, 0, 1, all, MPI_INFO_NULL, request);
    else if (rank == 0)
        MPI_Send_init(buffer, bytes, MPI_CHAR, 1, 1, all, request);
    else
        MPI_Recv_init(buffer, bytes, MPI_CHAR, 0, 1, all, request);
}

static double sender(int parts, double work, int partitioned, MPI_Request *request)
{
    double begin;
    word(1, 0);
    begin = now();
    if (partitioned)
        MPI_Start(request);
    for (int i = 0; i < parts; i++) {
        compute(work / parts);
        if (partitioned)
            MPI_Pready(i, *request);
    }
    if (!partitioned)
        MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    word(1, 0);
    return (now() - begin) * 1e6 - work;
}

static void receiver(MPI_Request *request)
{
    MPI_Start(request);
    word(1, 0);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    word(1, 0);
}

static void cell(int bytes, int parts, double work, int rounds, int partitioned)
{
    static struct batches b;
    MPI_Request request;
    make(bytes, parts, partitioned, &request);
    for (int round = -2; round < rounds; round++)
        if (rank == 0)
            b.us[round < 0 ? 0 : round] = sender(parts, work, partitioned, &request);
        else
            receiver(&request);
    MPI_Request_free(&request);
    if (rank != 0)
        return;
    b.count = rounds;
    printf("{\"bench\": \"parts\", \"op\": \"%s\", \"mode\": \"%d parts\", \"bytes\": %d, \"work_us\": %.0f, \"ranks\": 2, ",
           partitioned ? "partitioned" : "send", parts, bytes, work);
    print_times("added_us", &b);
    printf("}\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int sizes[LIST] = {65536, 1 << 20, 4 << 20}, parts[LIST] = {4, 16, 64}, n = 3, m = 3, work = 1000, rounds = 51;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &rank);
    for (int i = 1; i < argc; i += 2)
        if (i + 1 == argc)
            give_up("a value is missing after", argv[i]);
        else if (!strcmp(argv[i], "--sizes"))
            n = parse_sizes(argv[i + 1], sizes, LIST, MOST_PARTS, MOST_PARTS, LARGEST, "a size is 1024 to 16777216 bytes, in steps of 1024, not");
        else if (!strcmp(argv[i], "--parts"))
            m = parse_sizes(argv[i + 1], parts, LIST, 1, 1, MOST_PARTS, "parts are 1 to 1024 in number, not");
        else if (!strcmp(argv[i], "--work"))
            work = whole_number(argv[i + 1], 0, 1000000, "the work is 0 to 1000000 microseconds, not");
        else if (!strcmp(argv[i], "--rounds"))
            rounds = whole_number(argv[i + 1], 1, MOST_BATCHES, "the rounds are 1 to 101, not");
        else
            give_up("no such option:", argv[i]);
    buffer = calloc(1, LARGEST);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < m; k++)
            for (int way = 0; way < 2; way++)
                cell(sizes[i], parts[k], work, rounds, way);
    free(buffer);
    MPI_Finalize();
    return 0;
}
