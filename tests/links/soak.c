/* soak SECONDS [WAIT]: every pair of ranks exchanges messages of all sizes, several under way at once, each checked: its bytes, its order, its
 * length. Rank 0 says whether all was right, how many there were, and what its longest round took. For networks that break connections meanwhile.
 * With WAIT, rank 0 then waits for a message of rank 1, which sleeps for WAIT seconds first. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW 8
#define LARGEST (1 << 20)

static const int sizes[] = {0, 8, 100, 3000, 20000, 65536, 100000, 300000, LARGEST};
static int rank, size, wrong;
static long messages;

static unsigned dice(unsigned *state) { return (*state = *state * 1664525u + 1013904223u) >> 8; }

static void fill(unsigned char *p, int n, unsigned salt)
{
    for (int i = 0; i < n; i++)
        p[i] = (unsigned char)(i * 7 + salt);
}

static int right(const unsigned char *p, int n, unsigned salt)
{
    for (int i = 0; i < n; i++)
        if (p[i] != (unsigned char)(i * 7 + salt))
            return 0;
    return 1;
}

/* One window of messages with a partner: the same tag, so that their order counts; both know the sizes from the round. */
static void exchange(int partner, unsigned round, unsigned char *out[], unsigned char *in[])
{
    MPI_Request requests[2 * WINDOW];
    int from[WINDOW], n = 0;
    unsigned mine = round * 131 + rank * 17 + partner, theirs = round * 131 + partner * 17 + rank;
    for (int k = 0; k < WINDOW; k++) {
        from[k] = sizes[dice(&theirs) % (sizeof sizes / sizeof *sizes)];
        MPI_Irecv(in[k], LARGEST, MPI_BYTE, partner, 5, MPI_COMM_WORLD, &requests[n++]);
    }
    for (int k = 0; k < WINDOW; k++) {
        int len = sizes[dice(&mine) % (sizeof sizes / sizeof *sizes)];
        fill(out[k], len, round + k + rank);
        if (k % 3)
            MPI_Isend(out[k], len, MPI_BYTE, partner, 5, MPI_COMM_WORLD, &requests[n++]);
        else {
            MPI_Send(out[k], len < 60000 ? len : 60000, MPI_BYTE, partner, 5, MPI_COMM_WORLD);
            memset(out[k], 255, len); /* it is ours again: who reads it now sends nonsense */
        }
    }
    MPI_Status statuses[2 * WINDOW];
    MPI_Waitall(n, requests, statuses);
    for (int k = 0; k < WINDOW; k++) {
        int len, want = k % 3 || from[k] < 60000 ? from[k] : 60000;
        MPI_Get_count(&statuses[k], MPI_BYTE, &len);
        wrong += len != want || !right(in[k], len, round + k + partner);
        messages++;
    }
    for (int k = 0; k < WINDOW; k++)
        memset(out[k], 254, 64);
}

int main(int argc, char **argv)
{
    unsigned char *out[WINDOW], *in[WINDOW];
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    int going = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int k = 0; k < WINDOW; k++)
        out[k] = malloc(LARGEST), in[k] = malloc(LARGEST);
    double begin = MPI_Wtime(), last = begin, longest = 0;
    for (unsigned round = 0; going; round++) {
        for (int partner = 0; partner < size; partner++)
            if (partner != rank)
                exchange(partner, round, out, in);
        going = MPI_Wtime() - begin < seconds;
        MPI_Bcast(&going, 1, MPI_INT, 0, MPI_COMM_WORLD);
        double now = MPI_Wtime();
        longest = now - last > longest ? now - last : longest;
        last = now;
    }
    if (argc > 2 && rank == 1) {
        for (unsigned left = atoi(argv[2]); left; left = sleep(left))
            ;
        MPI_Send(&going, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
    }
    if (argc > 2 && rank == 0)
        MPI_Recv(&going, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int all = 0;
    long total = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&messages, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %ld messages, longest round %.2f s\n", all == 0 ? "right" : "WRONG", total, longest);
    MPI_Finalize();
    return all != 0;
}
