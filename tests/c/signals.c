/* The program's signals are its own: a thread of the library takes none, so one that the program holds back waits. */
// run: n=2 abi=one
#define _GNU_SOURCE
#include "check.h"
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* How many threads of this process, the caller apart, do not block SIGUSR1; in *all, how many there are. */
static int takers(int *all) {
    int found = 0;
    char path[300], line[256];
    DIR *tasks = opendir("/proc/self/task");
    *all = 0;
    for (struct dirent *d; tasks && (d = readdir(tasks));) {
        unsigned long long blocked = 0;
        if (d->d_name[0] == '.' || atoi(d->d_name) == (int)getpid()) continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", d->d_name);
        FILE *f = fopen(path, "r");
        if (!f) continue;
        while (fgets(line, sizeof line, f)) sscanf(line, "SigBlk: %llx", &blocked);
        fclose(f);
        ++*all;
        found += !(blocked >> (SIGUSR1 - 1) & 1);
    }
    if (tasks) closedir(tasks);
    return found;
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    int x = 0, other = (check_rank + 1) % check_size;
    MPI_Request r;
    OK(MPI_Irecv(&x, 1, MPI_INT, other, 7, MPI_COMM_WORLD, &r));
#if STRICT
    /* Something goes on, and no thread is in MPI: the event thread is there sooner or later. */
    int all;
    do {
        CHECK_EQ(takers(&all), 0);
    } while (all == 0 && !check_failed);
#endif
    sigset_t held, pending;
    sigemptyset(&held);
    sigaddset(&held, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &held, NULL);
#if STRICT
    kill(getpid(), SIGUSR1);
    OK(MPI_Send(&check_rank, 1, MPI_INT, other, 7, MPI_COMM_WORLD));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGUSR1));
    int taken;
    sigwait(&held, &taken);
    CHECK_EQ(taken, SIGUSR1);
#else
    OK(MPI_Send(&check_rank, 1, MPI_INT, other, 7, MPI_COMM_WORLD));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
#endif
    CHECK_EQ(x, other);
    return check_end();
}
