/* A process that prints a line without flushing it, and ends as its argument says. */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int ready;

/* Holds the lock of standard output for good. */
static void *keep(void *none) {
    flockfile(stdout);
    ready = 1;
    for (;;) pause();
    return none;
}

static void on_signal(int number) {
    (void)number;
    MPI_Abort(MPI_COMM_WORLD, 7);
}

/* Rank 0 ends the job when rank 1 has printed. */
static void others(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD);
    if (rank == 1) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Abort(MPI_COMM_WORLD, 7);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "abort";
    pthread_t thread;
    if (!strcmp(how, "outside")) {
        printf("a line\n");
        MPI_Comm_size(MPI_COMM_WORLD, &argc);
    }
    MPI_Init(&argc, &argv);
    printf("a line\n");
    if (!strcmp(how, "others")) others();
    if (!strcmp(how, "killed")) raise(SIGTERM);
    if (!strcmp(how, "abort")) MPI_Abort(MPI_COMM_WORLD, 7);
    if (!strcmp(how, "fatal")) MPI_Send(NULL, 0, MPI_INT, 99, 0, MPI_COMM_WORLD);
    if (!strcmp(how, "locked")) {
        pthread_create(&thread, NULL, keep, NULL);
        while (!ready) usleep(1000);
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    if (!strcmp(how, "full")) {
        /* standard output is a pipe that is not read */
        int ends[2];
        char some[4096] = {0};
        if (pipe(ends) || fcntl(ends[1], F_SETFL, O_NONBLOCK)) return 2;
        while (write(ends[1], some, sizeof some) > 0) continue;
        fcntl(ends[1], F_SETFL, 0);
        dup2(ends[1], 1);
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    if (!strcmp(how, "handler")) {
        signal(SIGUSR1, on_signal);
        raise(SIGUSR1);
    }
    return 3;
}
