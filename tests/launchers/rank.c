/* One rank of the matrix of launchers: `rank WHAT [...]` does what is asked and says one line, which the test reads. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static volatile sig_atomic_t got;

static void note(int number)
{
    got = number;
}

static int is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* Who we are, what the sum of all ranks is, how many share our memory, which program of the start we are. */
static void who(void)
{
    int sum = 0, local, *appnum, *universe, has_appnum, has_universe;
    MPI_Comm host;

    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &local);
    MPI_Comm_free(&host);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &has_appnum);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &has_universe);
    printf("rank %d of %d sum %d local %d app %d universe %d\n", rank, size, sum, local, has_appnum ? *appnum : -1,
           has_universe ? *universe : -1);
}

static void arguments(int argc, char **argv)
{
    char line[1000] = "";

    for (int i = 2; i < argc; i++) {
        strcat(line, "[");
        strcat(line, argv[i]);
        strcat(line, "]");
    }
    printf("rank %d words %s\n", rank, line);
}

/* Rank 0 reads N bytes, or to the end. (Not every launcher passes the end on.) */
static void input(long most)
{
    long bytes = 0, sum = 0;

    if (rank == 0)
        for (int c; bytes < most && (c = getchar()) != EOF; bytes++)
            sum += c;
    printf("rank %d read %ld sum %ld\n", rank, bytes, sum);
}

static void processors(void)
{
    cpu_set_t set;

    sched_getaffinity(0, sizeof set, &set);
    printf("rank %d on %d:", rank, CPU_COUNT(&set));
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            printf(" %d", i);
    printf("\n");
}

/* Says that it is up, and sleeps until it is ended; a signal that is caught is told. */
static void wait_for_end(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d is up, process %d\n", rank, (int)getpid());
    fflush(stdout);
    for (int i = 0; i < 10000 && !got; i++)
        usleep(100000);
    printf("rank %d got %s\n", rank, got == SIGUSR1 ? "USR1" : "nothing");
}

/* All ranks run; the last one leaves a file that shows it, since what it prints may be lost with it. */
static void last_words(const char *file)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1)
        fclose(fopen(file, "w"));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "who";
    int status = 0;

    if (is(what, "signal"))
        signal(SIGUSR1, note);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (is(what, "who"))
        who();
    else if (is(what, "words"))
        arguments(argc, argv);
    else if (is(what, "variable"))
        printf("rank %d has '%s'\n", rank, getenv(argv[2]) ? getenv(argv[2]) : "(nothing)");
    else if (is(what, "input"))
        input(argc > 2 ? atol(argv[2]) : 0);
    else if (is(what, "processors"))
        processors();
    else if (is(what, "wait") || is(what, "signal"))
        wait_for_end();
    else if (is(what, "exit"))
        status = rank == size - 1 ? atoi(argv[2]) : 0;
    else if (is(what, "abort") || is(what, "die")) {
        last_words(argv[2]);
        if (rank == size - 1 && is(what, "abort"))
            MPI_Abort(MPI_COMM_WORLD, atoi(argv[3]));
        if (rank == size - 1)
            raise(SIGKILL);
        sleep(1000);
    }
    MPI_Finalize();
    return status;
}
