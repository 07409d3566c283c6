/* What a receiver still waits for after computing: the program of Figure 4.9 of the thesis "High
 * Performance MPI Libraries for Ethernet" (section 4.4.1). One JSON line a size and an amount of
 * computation.
 *
 *     wait [--sizes LIST] [--work LIST] [--rounds N]
 *
 * Rank 0 sends; rank 1 posts the receive, computes N million increments (--work, default
 * 0,1,10), waits, and answers with four bytes. "wait_us" is the time in MPI_Wait, "total_us"
 * that of receive, computation and wait together, "work_us" that of the computation. Each round
 * is kept; the first is not. A rank wants a processor of its own. */
#define PROGRAM "wait"
#include "measure.h"
#include "options.h"

#define LIST 32
#define LARGEST (16 << 20)

static int rank;
static char *buffer, answer[4];
static volatile long counter;
static const MPI_Comm all = MPI_COMM_WORLD;

static void compute(long millions)
{
    for (long i = 0; i < millions * 1000000; i++)
        counter++;
}

struct times {
    struct batches wait, total, work;
};

static void receiver(int bytes, long millions, int round, struct times *t)
{
    MPI_Request request;
    double posted = MPI_Wtime(), computed, began;
    MPI_Irecv(buffer, bytes, MPI_CHAR, 0, 1, all, &request);
    began = MPI_Wtime();
    compute(millions);
    computed = MPI_Wtime();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    t->wait.us[round] = (MPI_Wtime() - computed) * 1e6;
    t->total.us[round] = (MPI_Wtime() - posted) * 1e6;
    t->work.us[round] = (computed - began) * 1e6;
    MPI_Send(answer, 4, MPI_CHAR, 0, 2, all);
}

static void sender(int bytes)
{
    MPI_Send(buffer, bytes, MPI_CHAR, 1, 1, all);
    MPI_Recv(answer, 4, MPI_CHAR, 1, 2, all, MPI_STATUS_IGNORE);
}

static void cell(int bytes, long millions, int rounds)
{
    static struct times t;
    for (int round = -1; round < rounds; round++)
        rank == 0 ? sender(bytes) : receiver(bytes, millions, round < 0 ? 0 : round, &t);
    if (rank == 0)
        return;
    t.wait.count = t.total.count = t.work.count = rounds;
    printf("{\"bench\": \"wait\", \"op\": \"irecv-compute-wait\", \"mode\": \"%ldM\", \"bytes\": %d, \"ranks\": 2, ", millions, bytes);
    print_times("wait_us", &t.wait);
    printf(", ");
    print_times("total_us", &t.total);
    printf(", ");
    print_times("work_us", &t.work);
    printf("}\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int sizes[LIST] = {1024, 8192, 65536, 524288, 2097152}, works[LIST] = {0, 1, 10}, size_count = 5, work_count = 3, rounds = 21, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &ranks);
    if (ranks != 2)
        give_up("wants 2 ranks, not", "others");
    for (int i = 1; i < argc; i += 2)
        if (i + 1 == argc)
            give_up("an option without a value:", argv[i]);
        else if (strcmp(argv[i], "--sizes") == 0)
            size_count = parse_sizes(argv[i + 1], sizes, LIST, 1, 0, LARGEST, "sizes go from 0 to 16 MB, not");
        else if (strcmp(argv[i], "--work") == 0)
            work_count = parse_sizes(argv[i + 1], works, LIST, 1, 0, 1000, "work goes from 0 to 1000 million increments, not");
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = whole_number(argv[i + 1], 1, MOST_BATCHES, "rounds go from 1 to 101, not");
        else
            give_up("there is no option", argv[i]);
    buffer = calloc(1, LARGEST);
    for (int w = 0; w < work_count; w++)
        for (int s = 0; s < size_count; s++)
            cell(sizes[s], works[w], rounds);
    MPI_Finalize();
    return 0;
}
