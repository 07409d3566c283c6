// program CALL,... FILE: what 8-byte calls cost in instructions; makes many of each kind, on two ranks. Rank 0 is watched
// (test_instructions.py), which makes it so slow that rank 1 has always done its part before: no call of rank 0 waits for long, and
// the cheapest of them does not wait at all. Messages that rank 0 receives wait in the ring: it learns outside of MPI, by a
// file, that they are there. With FORTRAN defined, watched.F90 has the functions that are counted.
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CALLS = 40 };

int rank, started;

#ifdef FORTRAN
void a_send(void), b_recv(void), c_bcast(void), d_allreduce(void);
void e_isend(void), f_irecv(void), g_waitall(void);
#else
static long long mine = 1, all, came;

// What is counted: one call, and what it takes to make it. No two names begin with the same letter (counting.py).
__attribute__((noinline)) void a_send(void) { MPI_Send(&mine, 1, MPI_LONG_LONG, 1 - rank, 0, MPI_COMM_WORLD); }
__attribute__((noinline)) void b_recv(void) {
    MPI_Recv(&came, 1, MPI_LONG_LONG, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
__attribute__((noinline)) void c_bcast(void) { MPI_Bcast(&mine, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD); }
__attribute__((noinline)) void d_allreduce(void) {
    MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
}

__attribute__((noinline)) void h_rank(void) { MPI_Comm_rank(MPI_COMM_WORLD, &rank); }

static MPI_Request requests[CALLS];
static long long many_came[CALLS];
__attribute__((noinline)) void e_isend(void) {
    MPI_Isend(&mine, 1, MPI_LONG_LONG, 1 - rank, 0, MPI_COMM_WORLD, &requests[started++]);
}
__attribute__((noinline)) void f_irecv(void) {
    MPI_Irecv(&many_came[started], 1, MPI_LONG_LONG, 1 - rank, 0, MPI_COMM_WORLD, &requests[started]);
    started++;
}
// CALLS receives that have ended.
__attribute__((noinline)) void g_waitall(void) { MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE); }
#endif

// The end of CALLS sends, which is not counted. In Fortran, which has the requests, no test counts g_waitall.
static void end_sends(void) {
#ifdef FORTRAN
    g_waitall();
#else
    MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE);
#endif
}

// What is done now and then, as a trace's look at counters, is done in the call that is not counted: valgrind makes time pass.
static void many(void (*call)(void)) {
    int version, part;
    for (int i = 0; i < CALLS; i++) {
        MPI_Get_version(&version, &part);
        call();
    }
}

// Something has happened, and a thread that waits for it hears so, outside of MPI.
static void say(const char *file, const char *what) {
    char name[4096];
    snprintf(name, sizeof name, "%s%s", file, what);
    FILE *f = fopen(name, "w");
    if (!f || fclose(f)) MPI_Abort(MPI_COMM_WORLD, 3);
}

static void until(const char *file, const char *what) {
    char name[4096];
    snprintf(name, sizeof name, "%s%s", file, what);
    while (access(name, F_OK) != 0) sched_yield();
}

// Many calls of one kind; those of Fortran are none of MPI_Comm_rank.
static void make(const char *what, const char *file) {
    if (!strcmp(what, "send")) {
        many(rank == 0 ? a_send : b_recv);
    } else if (!strcmp(what, "recv") && rank == 1) {
        a_send();
        until(file, ".first");
        many(a_send);
        say(file, ".all");
    } else if (!strcmp(what, "recv")) {
        b_recv(); // the first one, which takes all that is there into the queues
        say(file, ".first");
        until(file, ".all");
        many(b_recv);
#ifndef FORTRAN
    } else if (!strcmp(what, "rank")) {
        many(h_rank);
#endif
    } else if (!strcmp(what, "bcast")) {
        many(c_bcast);
    } else if (!strcmp(what, "allreduce")) {
        many(d_allreduce);
    } else if (!strcmp(what, "isend")) {
        started = 0;
        many(rank == 0 ? e_isend : b_recv);
        if (rank == 0) end_sends();
    } else if (!strcmp(what, "irecv") || !strcmp(what, "waitall")) {
        for (int round = 0; round < 3; round++) { // the tables have grown after the first
            started = 0;
            if (rank == 0) many(f_irecv);
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 1) many(a_send);
            MPI_Barrier(MPI_COMM_WORLD); // takes what has come before it into the receives
            if (rank == 0) g_waitall();
        }
    } else {
        fprintf(stderr, "which call?\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *what = strtok(argc > 2 ? argv[1] : "?", ",");
    for (; what; what = strtok(NULL, ",")) make(what, argv[2]);
    MPI_Finalize();
    return 0;
}
