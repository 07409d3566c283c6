// A flood of unexpected messages: rank 0 sends COUNT messages of BYTES bytes to
// rank 1, which is away for a while and then receives them all in order. One JSON line: how long it
// took, and by how much the receiver's memory grew at most (VmHWM, so the program runs once for
// each line).
//
//   flood [COUNT [BYTES [away|busy]]]
//
// away: rank 1 sleeps outside MPI, with nothing going on. busy: it sleeps while a send of its own
// is under way that rank 0 receives at the end, so that a library with a thread for progress takes
// messages in meanwhile.
#include "proc.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECONDS_AWAY 2
#define LARGE (4 << 20)

// Most memory that the process ever had resident, KB.
static long peak(void) {
    return own_kilobytes("status", "VmHWM");
}

static long send_all(long count, int bytes, char *m) {
    long i;
    for (i = 0; i < count; i++) {
        memcpy(m, &i, sizeof i);
        MPI_Send(m, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    }
    return 0;
}

static long receive_all(long count, int bytes, char *m) {
    long i, v, wrong = 0;
    for (i = 0; i < count; i++) {
        MPI_Recv(m, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memcpy(&v, m, sizeof v);
        wrong += v != i;
    }
    return wrong;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 10000000;
    int bytes = argc > 2 ? atoi(argv[2]) : 8, busy = argc > 3 && !strcmp(argv[3], "busy"), me;
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (bytes < (int)sizeof(long)) bytes = sizeof(long);
    char *m = calloc(1, bytes), *large = calloc(1, LARGE);
    memset(large, 1, LARGE);
    MPI_Barrier(MPI_COMM_WORLD);
    long before = peak(), wrong;
    double start = MPI_Wtime();
    if (me == 1) {
        if (busy) MPI_Isend(large, LARGE, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &r);
        sleep(SECONDS_AWAY);
    }
    if (me > 1) goto out;
    wrong = me == 0 ? send_all(count, bytes, m) : receive_all(count, bytes, m);
    double took = MPI_Wtime() - start;
    if (me == 0 && busy) MPI_Recv(large, LARGE, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (me == 1)
        printf("{\"bench\": \"flood\", \"op\": \"%s\", \"bytes\": %d, \"count\": %ld, \"seconds\": %.1f, \"grew_mb\": %.0f, "
               "\"wrong\": %ld}\n", busy ? "busy" : "away", bytes, count, took, (peak() - before) * 1024 / 1e6, wrong);
    fflush(stdout);
out:
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
