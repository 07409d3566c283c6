/* Messages and collectives that are known, for a trace: tests/trace/test_trace.py knows them, too.
   Two ranks or more; only the first two speak. An argument names another part. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, other;
static int a[4096], b[4096];

/* Rank 0 sends, rank 1 receives: 5 messages of 3 ints with tag 7, one of 2 with tag 8. */
static void blocking(void) {
    MPI_Status s;
    if (rank == 0) {
        for (int i = 0; i < 5; i++)
            MPI_Send(a, 3, MPI_INT, 1, 7, MPI_COMM_WORLD);
        MPI_Ssend(a, 2, MPI_INT, 1, 8, MPI_COMM_WORLD);
    } else if (rank == 1) {
        for (int i = 0; i < 4; i++)
            MPI_Recv(b, 8, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(b, 8, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &s);
        if (s.MPI_SOURCE != 0 || s.MPI_TAG != 7)
            MPI_Abort(MPI_COMM_WORLD, 9);
        MPI_Recv(b, 8, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Both ways: tags 20 to 29, completed in all ways; receives from anybody, too. */
static void nonblocking(void) {
    MPI_Request r[8];
    MPI_Status s[8];
    int done, index, many, indices[8], flag = 0;
    for (int i = 0; i < 4; i++) {
        MPI_Irecv(b + 16 * i, 16, MPI_INT, other, 20 + i, MPI_COMM_WORLD, &r[i]);
        MPI_Isend(a, 4 + i, MPI_INT, other, 20 + i, MPI_COMM_WORLD, &r[4 + i]);
    }
    MPI_Waitall(8, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; i++)
        MPI_Irecv(b, 16, MPI_INT, MPI_ANY_SOURCE, 24, MPI_COMM_WORLD, &r[i]);
    for (int i = 0; i < 3; i++)
        MPI_Send(a, 1 + i, MPI_INT, other, 24, MPI_COMM_WORLD);
    MPI_Wait(&r[2], s); /* not in the order in which they were posted */
    for (done = 1; done < 3; done += many) {
        MPI_Waitsome(3, r, &many, indices, MPI_STATUSES_IGNORE);
    }
    MPI_Irecv(b, 16, MPI_INT, other, 25, MPI_COMM_WORLD, &r[0]);
    MPI_Issend(a, 5, MPI_INT, other, 25, MPI_COMM_WORLD, &r[1]);
    MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
    MPI_Waitany(2, r, &index, s);
    MPI_Irecv(b, 16, MPI_INT, other, 26, MPI_COMM_WORLD, &r[0]);
    MPI_Send(a, 6, MPI_INT, other, 26, MPI_COMM_WORLD);
    while (!flag)
        MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
    MPI_Irecv(b, 16, MPI_INT, other, 99, MPI_COMM_WORLD, &r[0]); /* never comes */
    MPI_Cancel(&r[0]);
    MPI_Wait(&r[0], s);
    MPI_Sendrecv(a, 2, MPI_DOUBLE, other, 27, b, 32, MPI_INT, other, 27, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(a, 2, MPI_DOUBLE, MPI_PROC_NULL, 27, b, 32, MPI_INT, MPI_PROC_NULL, 27, MPI_COMM_WORLD, s);
    MPI_Send(a, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
}

/* Persistent requests, three times, tag 30; probed messages, tag 31. */
static void further(void) {
    MPI_Request r[2];
    MPI_Message m;
    MPI_Status s;
    MPI_Recv_init(b, 64, MPI_INT, other, 30, MPI_COMM_WORLD, &r[0]);
    MPI_Send_init(a, 7, MPI_INT, other, 30, MPI_COMM_WORLD, &r[1]);
    for (int i = 0; i < 3; i++) {
        MPI_Startall(2, r);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
    for (int i = 0; i < 2; i++) {
        MPI_Isend(a, 9, MPI_INT, other, 31, MPI_COMM_WORLD, &r[0]);
        MPI_Mprobe(MPI_ANY_SOURCE, 31, MPI_COMM_WORLD, &m, &s);
        MPI_Mrecv(b, 64, MPI_INT, &m, MPI_STATUS_IGNORE);
        MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    }
}

/* Communicators: one of the first two ranks turned round, in which 1 is rank 0; its copy. */
static void communicators(void) {
    MPI_Comm turned, copy;
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2, -rank, &turned);
    MPI_Comm_dup(turned, &copy);
    MPI_Comm_set_name(copy, "copy");
    if (rank == 1)
        MPI_Send(a, 1, MPI_INT, 1, 40, turned); /* to rank 0 of all */
    if (rank == 0)
        MPI_Recv(b, 1, MPI_INT, 0, 40, turned, MPI_STATUS_IGNORE);
    if (rank < 2) {
        MPI_Bcast(a, 6, MPI_INT, 0, copy); /* root is rank 1 of all */
        MPI_Sendrecv(a, 1, MPI_INT, rank, 41, b, 1, MPI_INT, rank, 41, copy, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&copy);
    MPI_Comm_free(&turned);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(a, 6, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allreduce(a, b, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void kills(void *in, void *inout, int *len, MPI_Datatype *datatype) {
    (void)in, (void)inout, (void)len, (void)datatype;
    raise(SIGKILL);
}

static void die(const char *how) {
    if (!strcmp(how, "kill")) {
        MPI_Op op;
        MPI_Op_create(kills, 1, &op);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1)
            MPI_Reduce_local(a, b, 1, MPI_INT, op);
        MPI_Recv(b, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (!strcmp(how, "exit"))
        _Exit(5);
}

/* More records than a ring holds (32768), twice. */
static void flood(void) {
    for (int i = 0; i < 80000; i++)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    other = 1 - rank;
    if (argc > 1 && !strcmp(argv[1], "flood"))
        flood();
    blocking();
    if (argc > 1)
        die(argv[1]);
    if (rank < 2) {
        nonblocking();
        further();
    }
    MPI_Pcontrol(2);
    communicators();
    MPI_Finalize();
    return 0;
}
