/* What a job's memory grows by when all ranks have exchanged messages: one JSON line.
 *
 *     memory [--size BYTES] [--rounds N]
 *
 * Every rank sends --size bytes (default 16384) to every rank --rounds times (default 20) and
 * receives as many. Memory is the proportional set size of the whole job (pages that several ranks
 * map are shared out among them), in MB: of the program's own data, of all before the first message
 * but one barrier's, and of all at the end. What the library needs is the end less the own data. */
#define PROGRAM "memory"
#include "options.h"
#include "proc.h"

static double own_mb(void)
{
    long kb = own_kilobytes("smaps_rollup", "Pss");
    if (kb < 0)
        give_up("memory cannot be read from", "/proc/self/smaps_rollup");
    return kb / 1024.;
}

/* All ranks look between two barriers: no rank's pages are counted while they change. */
static double all_mb(void)
{
    double own, all;
    MPI_Barrier(MPI_COMM_WORLD);
    own = own_mb();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void round_of(char *out, char *in, int size, int ranks, int round, MPI_Request *requests)
{
    for (int i = 0; i < ranks; i++)
        MPI_Irecv(in + (size_t)i * size, size, MPI_CHAR, i, 1, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < ranks; i++) {
        out[(size_t)i * size] = (char)round;
        MPI_Isend(out + (size_t)i * size, size, MPI_CHAR, i, 1, MPI_COMM_WORLD, &requests[ranks + i]);
    }
    MPI_Waitall(2 * ranks, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < ranks; i++)
        if (in[(size_t)i * size] != (char)round)
            give_up("wrong data in messages from one of the ranks of", PROGRAM);
}

int main(int argc, char **argv)
{
    int rank, ranks, size = 16384, rounds = 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--size"))
            size = whole_number(value, 1, 1 << 26, "--size wants bytes from 1 to 67108864, not");
        else if (!strcmp(argv[i], "--rounds"))
            rounds = whole_number(value, 1, 1000000, "--rounds wants a number from 1 to 1000000, not");
        else
            give_up("options are --size and --rounds, not", argv[i]);
    }
    char *out = malloc((size_t)size * ranks), *in = malloc((size_t)size * ranks);
    MPI_Request *requests = malloc(sizeof *requests * 2 * ranks);
    if (!out || !in || !requests)
        give_up("there is no memory for", "the messages of all ranks");
    memset(out, 1, (size_t)size * ranks);
    memset(in, 1, (size_t)size * ranks);
    double before = all_mb();
    for (int round = 0; round < rounds; round++)
        round_of(out, in, size, ranks, round, requests);
    double after = all_mb(), data = 2. * size * ranks * ranks / (1 << 20);
    if (rank == 0)
        printf("{\"ranks\": %d, \"bytes\": %d, \"rounds\": %d, \"data_mb\": %.1f, \"before_mb\": %.1f, \"after_mb\": %.1f}\n", ranks,
               size, rounds, data, before, after);
    MPI_Finalize();
    return 0;
}
