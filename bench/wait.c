/* What a receiver still waits for after computing: the program of Figure 4.9 of the thesis "High Performance MPI Libraries for
 * Ethernet" (section 4.4.1). One JSON line a size and an amount of computation.
 *
 *     wait [--sizes LIST] [--work LIST] [--rounds N]
 *
 * Rank 0 sends; rank 1 posts the receive, computes so many million increments (--work, default 0,1,10), waits, and answers with
 * four bytes. "wait_us" is the time in MPI_Wait, "total_us" that of receive, computation and wait together, "work_us" that of the computation. Each
 * round is kept; the first is not. A rank wants a processor of its own. */
#include "measure.h"
#include <string.h>

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

static int parse(char *text, int *list, int most)
{
    int n = 0;
    for (char *word = strtok(text, ","); word && n < LIST; word = strtok(NULL, ",")) {
        list[n] = atoi(word);
        if (list[n] < 0 || list[n] > most) {
            fprintf(stderr, "wait: %s is not between 0 and %d\n", word, most);
            MPI_Abort(all, 1);
        }
        n++;
    }
    return n;
}

int main(int argc, char **argv)
{
    int sizes[LIST] = {1024, 8192, 65536, 524288, 2097152}, works[LIST] = {0, 1, 10}, size_count = 5, work_count = 3, rounds = 21, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &ranks);
    if (ranks != 2 || argc % 2 == 0) {
        fprintf(stderr, "wait: wants 2 ranks, and options with values\n");
        MPI_Abort(all, 1);
    }
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--sizes") == 0)
            size_count = parse(argv[i + 1], sizes, LARGEST);
        else if (strcmp(argv[i], "--work") == 0)
            work_count = parse(argv[i + 1], works, 1000);
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = atoi(argv[i + 1]) < 1 || atoi(argv[i + 1]) > MOST_BATCHES ? MOST_BATCHES : atoi(argv[i + 1]);
        else {
            fprintf(stderr, "wait: there is no option '%s'\n", argv[i]);
            MPI_Abort(all, 1);
        }
    }
    buffer = calloc(1, LARGEST);
    for (int w = 0; w < work_count; w++)
        for (int s = 0; s < size_count; s++)
            cell(sizes[s], works[w], rounds);
    MPI_Finalize();
    return 0;
}
