/* Processes that are started at run time, one JSON line each:
 *
 *   spawn [--counts 1,2,4,8] [--rounds N] [--command FILE] [--memory]
 *
 * rank 0 starts that many copies of this program by MPI_Comm_spawn, N times in a row, at most 101;
 * they initialize, disconnect and finalize. "us" is how long MPI_Comm_spawn took, "whole_us" how long
 * until both sides had disconnected, "worst_us" the longest MPI_Comm_spawn. With --memory the children
 * say how large they are, in kilobytes: "resident_kb" the largest resident set, "anonymous_kb" what of
 * it is not part of any file. "left_files" and "left_kb" say what this process has more of than after
 * the first round: open files and resident kilobytes. */
#define PROGRAM "spawn"
#include "measure.h"
#include "options.h"
#include "proc.h"
#include <dirent.h>
#include <sys/resource.h>

enum { MOST_COUNTS = 16 };

static int say_memory;

/* A child: all that it does. */
static void child(MPI_Comm parent)
{
    if (say_memory) {
        long mine[2], largest[2];
        struct rusage u;
        getrusage(RUSAGE_SELF, &u);
        mine[0] = u.ru_maxrss;
        mine[1] = own_kilobytes("smaps_rollup", "Anonymous");
        MPI_Reduce(mine, largest, 2, MPI_LONG, MPI_MAX, 0, parent);
    }
    MPI_Comm_disconnect(&parent);
}

static int open_files(void)
{
    int count = 0;
    DIR *all = opendir("/proc/self/fd");
    while (all && readdir(all))
        count++;
    if (all)
        closedir(all);
    return count;
}

static double worst(const struct batches *b)
{
    double most = 0;
    for (int i = 0; i < b->count; i++)
        most = b->us[i] > most ? b->us[i] : most;
    return most;
}

static void measure(int count, int rounds, char *command)
{
    char memory[] = "--memory", *args[] = {say_memory ? memory : NULL, NULL};
    struct batches spawn = {rounds, {0}}, whole = {rounds, {0}};
    long largest[2] = {0, 0}, kb = 0;
    int files = 0;
    for (int i = 0; i < rounds; i++) {
        MPI_Comm children;
        double begun = MPI_Wtime();
        MPI_Comm_spawn(command, args, count, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
        spawn.us[i] = (MPI_Wtime() - begun) * 1e6;
        if (say_memory)
            MPI_Reduce(NULL, largest, 2, MPI_LONG, MPI_MAX, MPI_ROOT, children);
        MPI_Comm_disconnect(&children);
        whole.us[i] = (MPI_Wtime() - begun) * 1e6;
        if (i == 0) {
            files = open_files();
            kb = own_kilobytes("status", "VmRSS");
        }
    }
    printf("{\"bench\": \"spawn\", \"op\": \"spawn\", \"mode\": \"of %d\", ", count);
    print_times("us", &spawn);
    printf(", ");
    print_times("whole_us", &whole);
    printf(", \"worst_us\": %.1f", worst(&spawn));
    if (say_memory)
        printf(", \"resident_kb\": %ld, \"anonymous_kb\": %ld", largest[0], largest[1]);
    printf(", \"left_files\": %d, \"left_kb\": %ld}\n", open_files() - files, own_kilobytes("status", "VmRSS") - kb);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int counts[MOST_COUNTS] = {1, 2, 4, 8}, n = 4, rounds = 5, rank;
    char *command = argv[0];
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--memory") == 0) {
            say_memory = 1;
            continue;
        }
        if (!value)
            give_up("this option is not known, or its value is missing:", argv[i]);
        if (strcmp(argv[i], "--counts") == 0)
            n = parse_sizes(value, counts, MOST_COUNTS, 1, 1, 4096, "--counts wants numbers of processes from 1 to 4096, not");
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = whole_number(value, 1, MOST_BATCHES, "--rounds wants a number from 1 to 101, not");
        else if (strcmp(argv[i], "--command") == 0)
            command = value;
        else
            give_up("this option is not known:", argv[i]);
        i++;
    }
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (parent != MPI_COMM_NULL)
        child(parent);
    else if (rank == 0)
        for (int i = 0; i < n; i++)
            measure(counts[i], rounds, command);
    MPI_Finalize();
    return 0;
}
