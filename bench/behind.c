/* What an answer waits behind long messages on their way to the same rank: one JSON line.
 *
 *     behind [--bytes N] [--every MS] [--questions N]
 *
 * Rank 0 sends messages of BYTES bytes (default: 4 MB), two at a time, to rank 1, without end.
 * Now and then (every 50 ms by default) rank 1 asks with 8 bytes, and rank 0 answers at once
 * with 8 bytes. "us" is the time from question to answer, which a library that hands long
 * messages to the kernel as a whole makes as long as they take. Both ranks poll in MPI; each
 * wants a processor of its own. "stream_mb_s" is what the long messages achieved meanwhile. */
#define PROGRAM "behind"
#include "measure.h"
#include "options.h"

#define DEPTH 2
enum { LONG = 1, QUESTION, ANSWER };

static const MPI_Comm all = MPI_COMM_WORLD;
static int bytes = 4 << 20, every = 50, questions = 40;
static char *place[DEPTH];
static MPI_Request requests[DEPTH + 1];

/* A question of -1 is the last one. */
static void answer_while_sending(void)
{
    double question, last = 0;
    MPI_Irecv(&question, 1, MPI_DOUBLE, 1, QUESTION, all, &requests[DEPTH]);
    for (int i = 0; i < DEPTH; i++)
        MPI_Isend(place[i], bytes, MPI_CHAR, 1, LONG, all, &requests[i]);
    for (int which; last >= 0;) {
        MPI_Waitany(DEPTH + 1, requests, &which, MPI_STATUS_IGNORE);
        if (which < DEPTH) {
            MPI_Isend(place[which], bytes, MPI_CHAR, 1, LONG, all, &requests[which]);
            continue;
        }
        MPI_Send(&question, 1, MPI_DOUBLE, 1, ANSWER, all);
        last = question;
        if (last >= 0)
            MPI_Irecv(&question, 1, MPI_DOUBLE, 1, QUESTION, all, &requests[DEPTH]);
    }
    MPI_Waitall(DEPTH, requests, MPI_STATUSES_IGNORE);
    place[0][0] = 1;
    MPI_Send(place[0], 1, MPI_CHAR, 1, LONG, all);
}

/* The message of one byte has come, which is the last one. It may come before the last answer is
 * looked for. */
static int ended;

/* Takes a long message that has come, and makes room for the next. Its bytes. */
static int take_long(void)
{
    int which, here, n;
    MPI_Status status;
    MPI_Testany(DEPTH, requests, &which, &here, &status);
    if (!here || which == MPI_UNDEFINED)
        return 0;
    MPI_Get_count(&status, MPI_CHAR, &n);
    if (n == 1)
        ended = 1;
    else
        MPI_Irecv(place[which], bytes, MPI_CHAR, 0, LONG, all, &requests[which]);
    return n;
}

/* Asks; `question` has no answer worth timing when it is -1. Receives long messages until the
 * answer comes. */
static long ask(double question, double *us)
{
    double echo, asked = MPI_Wtime();
    long came = 0;
    MPI_Irecv(&echo, 1, MPI_DOUBLE, 0, ANSWER, all, &requests[DEPTH]);
    MPI_Send(&question, 1, MPI_DOUBLE, 0, QUESTION, all);
    for (int here = 0; !here; MPI_Test(&requests[DEPTH], &here, MPI_STATUS_IGNORE))
        came += take_long();
    *us = (MPI_Wtime() - asked) * 1e6;
    if (echo != question)
        give_up("wrong answer", "from rank 0");
    return came;
}

/* MB/s of the long messages. */
static double ask_while_receiving(struct batches *times)
{
    double began = MPI_Wtime(), took, unused;
    long came = 0;
    for (int i = 0; i < DEPTH; i++)
        MPI_Irecv(place[i], bytes, MPI_CHAR, 0, LONG, all, &requests[i]);
    for (; times->count < questions; times->count++) {
        for (double next = MPI_Wtime() + every * 1e-3; MPI_Wtime() < next;)
            came += take_long();
        came += ask(times->count, &times->us[times->count]);
    }
    took = MPI_Wtime() - began;
    ask(-1, &unused);
    while (!ended)
        take_long();
    for (int i = 0; i < DEPTH; i++)
        if (requests[i] != MPI_REQUEST_NULL) {
            MPI_Cancel(&requests[i]);
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        }
    return came / took / 1e6;
}

int main(int argc, char **argv)
{
    static struct batches times;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--bytes") == 0)
            bytes = whole_number(argv[i + 1], 2, 1 << 28, "--bytes wants 2 to 256 MB, not");
        else if (strcmp(argv[i], "--every") == 0)
            every = whole_number(argv[i + 1], 0, 10000, "--every wants milliseconds, not");
        else if (strcmp(argv[i], "--questions") == 0)
            questions = whole_number(argv[i + 1], 1, MOST_BATCHES, "--questions wants 1 to 101, not");
        else
            give_up("there is no option", argv[i]);
    }
    if (size != 2)
        give_up("wants two ranks, not", "another number");
    for (int i = 0; i < DEPTH; i++)
        place[i] = calloc(bytes, 1);
    if (rank == 0)
        answer_while_sending();
    else {
        double rate = ask_while_receiving(&times);
        printf("{\"bench\": \"behind\", \"op\": \"answer\", \"bytes\": %d, \"ranks\": 2, \"every_ms\": %d, \"stream_mb_s\": %.1f, ", bytes, every, rate);
        print_times("us", &times);
        printf("}\n");
    }
    MPI_Finalize();
    return 0;
}
