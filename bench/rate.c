/* How many messages pass when several pairs of ranks, or several threads of a pair, send at once:
 * one JSON line a size.
 *
 *     rate [--ms BUDGET] [--threads N] [--sizes LIST]
 *
 * Rank i of the first half sends to rank i of the second (size / 2 + i), each of N threads (default 1)
 * by a communicator of its own: WINDOW messages into memory of their own, posted before, then one
 * short answer. "us" is the time over all messages of all pairs and threads: what a message costs
 * the job; "per_second" is how many pass. More than one thread asks for MPI_THREAD_MULTIPLE. BUDGET:
 * milliseconds for a size (default 100); batches as in measure.h. */
#define PROGRAM "rate"
#include "measure.h"
#include "options.h"
#include <pthread.h>

#define BATCHES 15
#define WINDOW 64
#define LINE 64 /* bytes: where the memory of a message begins */
#define MOST_THREADS 64
#define LIST 16
#define LARGEST (1 << 20)

static int rank, size, threads = 1;
static MPI_Comm comms[MOST_THREADS];
static struct { /* of the batch that runs */
    int bytes, iterations;
} now;

static size_t stride(int bytes) { return bytes ? (size_t)(bytes + LINE - 1) / LINE * LINE : LINE; }

static void window(char *memory, MPI_Comm comm)
{
    MPI_Request requests[WINDOW];
    char token = 0;
    int half = size / 2, sends = rank < half, peer = sends ? rank + half : rank - half;
    if (sends) {
        MPI_Recv(&token, 1, MPI_CHAR, peer, 2, comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < WINDOW; i++)
            MPI_Isend(memory + i * stride(now.bytes), now.bytes, MPI_CHAR, peer, 1, comm, &requests[i]);
    } else {
        for (int i = 0; i < WINDOW; i++)
            MPI_Irecv(memory + i * stride(now.bytes), now.bytes, MPI_CHAR, peer, 1, comm, &requests[i]);
        MPI_Send(&token, 1, MPI_CHAR, peer, 2, comm);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
}

struct worker {
    pthread_t thread;
    MPI_Comm comm;
    char *memory;
};

static void *work(void *argument)
{
    struct worker *me = argument;
    for (int i = 0; i < now.iterations; i++)
        window(me->memory, me->comm);
    return NULL;
}

/* Seconds of a batch on this rank. */
static double batch(struct worker *workers, int bytes, int iterations)
{
    now.bytes = bytes, now.iterations = iterations;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int t = 1; t < threads; t++)
        if (pthread_create(&workers[t].thread, NULL, work, &workers[t]))
            give_up("cannot start a", "thread");
    work(&workers[0]);
    for (int t = 1; t < threads; t++)
        pthread_join(workers[t].thread, NULL);
    return MPI_Wtime() - begin;
}

static void cell(struct worker *workers, int bytes, double budget)
{
    struct batches us = {.count = BATCHES}, rates = {.count = BATCHES};
    double took, messages = (double)WINDOW * threads * (size / 2);
    int iterations = 1, telling = 0;
    do {
        took = batch(workers, bytes, iterations);
        MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    } while (!are_enough(&iterations, took, budget / BATCHES, &telling));
    for (int b = 0; b < BATCHES; b++)
        us.us[b] = batch(workers, bytes, iterations) * 1e6 / iterations / messages;
    slowest(&us, MPI_COMM_WORLD);
    if (rank)
        return;
    for (int b = 0; b < BATCHES; b++)
        rates.us[b] = 1e6 / us.us[b];
    printf("{\"bench\": \"rate\", \"op\": \"%d pair%s\", \"mode\": \"%d thread%s\", \"bytes\": %d, \"ranks\": %d, \"iterations\": %d, ", size / 2, size > 3 ? "s" : "",
           threads, threads > 1 ? "s" : "", bytes, size, iterations);
    print_times("us", &us);
    printf(", ");
    print_times("per_second", &rates);
    printf("}\n");
    fflush(stdout);
}

/* The thread level that the arguments ask for: who needs none should not pay for it. */
static int wanted(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--threads") == 0 && atoi(argv[i + 1]) > 1)
            return MPI_THREAD_MULTIPLE;
    return MPI_THREAD_SINGLE;
}

int main(int argc, char **argv)
{
    int sizes[LIST] = {8, 1 << 10, 1 << 14}, size_count = 3, given = MPI_THREAD_SINGLE, largest = 0;
    double budget_ms = 100;
    struct worker workers[MOST_THREADS];
    MPI_Init_thread(&argc, &argv, wanted(argc, argv), &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            give_up("an option without a value:", argv[i]);
        else if (strcmp(argv[i], "--ms") == 0)
            budget_ms = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--threads") == 0)
            threads = whole_number(argv[i + 1], 1, MOST_THREADS, "threads go from 1 to 64, not");
        else if (strcmp(argv[i], "--sizes") == 0)
            size_count = parse_sizes(argv[i + 1], sizes, LIST, 1, 0, LARGEST, "sizes go from 0 to 1 MB, not");
        else
            give_up("there is no option", argv[i]);
    }
    if (size % 2)
        give_up("wants pairs of ranks, not", "an odd number");
    if (threads > 1 && given < MPI_THREAD_MULTIPLE)
        give_up("this library has no", "MPI_THREAD_MULTIPLE");
    for (int s = 0; s < size_count; s++)
        largest = sizes[s] > largest ? sizes[s] : largest;
    for (int t = 0; t < threads; t++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
        workers[t].comm = comms[t];
        if (!(workers[t].memory = calloc(WINDOW, stride(largest))))
            give_up("no memory for messages of", "the largest size");
    }
    for (int s = 0; s < size_count; s++)
        cell(workers, sizes[s], budget_ms * 1e-3);
    for (int t = 0; t < threads; t++)
        MPI_Comm_free(&comms[t]), free(workers[t].memory);
    MPI_Finalize();
    return 0;
}
