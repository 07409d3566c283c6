/* Jobs that spawn others, for tests: spawns MODE [ARGUMENT...]; the program spawns itself.
 *
 *   class COMMAND [HOST]     spawns COMMAND, and prints the class of the error, and how many error codes say it
 *   keys N [KEY VALUE]...    spawns at most N with these info keys; prints the error codes. A child says what it was given
 *   port                     connects to a port that was closed, and to one without MPI_Comm_accept
 *   shut                     a thread closes the port on which another one accepts
 *   roots                    the ranks disagree on the root
 *   loop FIRST ROUNDS        spawns and disconnects so often; prints what rank and mpiexec have more than after the FIRST rounds
 *   child-fails              a child ends while its parent does not look
 *   child-fails-apart        the same after they have disconnected
 *   parent-fails connected   a parent ends while its child does not look; also: apart
 *   waits                    accepts, and no process connects
 *   child-waits              its child waits for a message of it, while it waits for another one
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <malloc.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank;
static char port[MPI_MAX_PORT_NAME];

static void say_class(int code)
{
    int class, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_class(code, &class);
    MPI_Error_string(class, text, &length);
    printf("%d: %s\n", rank, class == MPI_ERR_SPAWN ? "spawn" : class == MPI_ERR_PORT ? "port" : class == MPI_ERR_ROOT ? "root" : text);
    fflush(stdout);
}

static void say_text(int code)
{
    int class, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    printf("%d: %s%s\n", rank, class == MPI_ERR_INFO_VALUE ? "info value, " : "", text);
}

static int entries(const char *directory)
{
    int count = 0;
    DIR *all = opendir(directory);
    while (all && readdir(all))
        count++;
    if (all)
        closedir(all);
    return count;
}

/* What a process has. */
struct held {
    int files, segments;
    long kb;
};

/* A file in /proc of a process. */
static const char *of_process(pid_t pid, const char *name)
{
    static char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return path;
}

/* Segments of shared memory that it has mapped (/dev/shm is what other programs of this machine share), and what it
 * has resident that belongs to no file. */
static struct held held(pid_t pid)
{
    struct held h = {entries(of_process(pid, "fd")), 0, 0};
    char line[4400];
    FILE *f = fopen(of_process(pid, "maps"), "r");
    while (f && fgets(line, sizeof line, f))
        h.segments += strstr(line, "/memfd:") != NULL || strstr(line, " /dev/shm/") != NULL;
    if (f)
        fclose(f);
    f = fopen(of_process(pid, "smaps_rollup"), "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "Anonymous: %ld", &h.kb);
    if (f)
        fclose(f);
    return h;
}

/* Bytes that malloc has given out. */
static long allocated(void)
{
    return (long)mallinfo2().uordblks;
}

static MPI_Comm spawn(char *program, char *mode, char *how)
{
    char *args[] = {mode, how, NULL};
    MPI_Comm child;
    MPI_Comm_spawn(program, args, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child, MPI_ERRCODES_IGNORE);
    return child;
}

/* Until there are at most that many threads: one that looks after a job ends with it. */
static void await_threads(int most)
{
    while (entries("/proc/self/task") > most)
        usleep(1000);
}

static void say_held(const char *who, struct held before, struct held now)
{
    printf("%s: files %d, shared memory %d, kilobytes %ld\n", who, now.files - before.files, now.segments - before.segments, now.kb - before.kb);
}

/* What there is more than after the first rounds. */
static void loop(char *program, int first, int rounds)
{
    struct held own = {0}, launcher = {0};
    int tasks = 0;
    long bytes = 0;
    siginfo_t ended;
    for (int i = 1; i <= rounds; i++) {
        MPI_Comm child = spawn(program, "child", "disconnects");
        MPI_Comm_disconnect(&child);
        if (i == 1)
            tasks = entries("/proc/self/task");
        if (i == first) {
            await_threads(tasks);
            own = held(getpid()), launcher = held(getppid());
            bytes = allocated();
        }
    }
    /* Until the mpiexecs of all children have ended, too, and were waited for. */
    while (waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT) == 0)
        usleep(1000);
    await_threads(tasks);
    say_held("rank", own, held(getpid()));
    say_held("mpiexec", launcher, held(getppid()));
    printf("bytes %ld\n", allocated() - bytes);
}

static void *close_soon(void *unused)
{
    (void)unused;
    usleep(200000); /* whichever comes first, the port is closed */
    MPI_Close_port(port);
    return NULL;
}

static void child(MPI_Comm parent, const char *how)
{
    int word = 0;
    if (strcmp(how, "apart") == 0 || strcmp(how, "disconnects") == 0)
        MPI_Comm_disconnect(&parent);
    if (strcmp(how, "ends-apart") == 0) {
        MPI_Comm_disconnect(&parent);
        _exit(7);
    }
    if (strcmp(how, "fails") == 0) {
        MPI_Recv(&word, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
        _exit(7);
    }
    if (strcmp(how, "says") == 0) {
        int size, self;
        char dir[4096];
        cpu_set_t cpus;
        MPI_Comm_rank(MPI_COMM_WORLD, &self);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        sched_getaffinity(0, sizeof cpus, &cpus);
        if (self == 0)
            printf("%d processes, %d CPUs, in %s, A=%s, B=%s\n", size, CPU_COUNT(&cpus), getcwd(dir, sizeof dir), getenv("A"), getenv("B"));
        fflush(stdout);
        MPI_Barrier(parent);
        MPI_Comm_disconnect(&parent);
    }
    if (strcmp(how, "receives") == 0)
        MPI_Recv(&word, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
    if (strcmp(how, "stays") == 0 || strcmp(how, "apart") == 0) {
        printf("child %d\n", (int)getpid());
        fflush(stdout);
        if (strcmp(how, "stays") == 0)
            MPI_Send(&word, 1, MPI_INT, 0, 0, parent);
        pause();
    }
}

static void keys(char **argv)
{
    char *args[] = {"child", "says", NULL};
    int codes[64], most = atoi(argv[2]), class = 0;
    MPI_Comm other;
    MPI_Info info;
    MPI_Info_create(&info);
    for (char **pair = argv + 3; pair[0]; pair += 2)
        MPI_Info_set(info, pair[0], pair[1]);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Comm_spawn(argv[0], args, most, info, 0, MPI_COMM_WORLD, &other, codes);
    if (code == MPI_SUCCESS) {
        siginfo_t ended;
        MPI_Barrier(other);
        MPI_Comm_disconnect(&other);
        /* Until the child's mpiexec has ended, too, and was waited for. */
        while (waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT) == 0)
            usleep(1000);
    } else {
        say_text(code);
    }
    printf("%d:", rank);
    for (int i = 0; code == MPI_SUCCESS && i < most; i++)
        MPI_Error_class(codes[i], &class), printf(" %s", class == MPI_SUCCESS ? "ok" : class == MPI_ERR_SPAWN ? "spawn" : "?");
    printf("\n");
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "", *how = argc > 2 ? argv[2] : "";
    MPI_Comm other, parent;
    int level, word = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        child(parent, how);
    } else if (strcmp(mode, "class") == 0) {
        int codes[2] = {0, 0}, class;
        MPI_Info info;
        MPI_Info_create(&info);
        if (argc > 3)
            MPI_Info_set(info, "host", argv[3]);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        say_class(MPI_Comm_spawn(argv[2], MPI_ARGV_NULL, 2, info, 0, MPI_COMM_WORLD, &other, codes));
        for (int i = 0; i < 2; i++)
            MPI_Error_class(codes[i], &class), word += class == MPI_ERR_SPAWN;
        printf("%d codes\n", word);
    } else if (strcmp(mode, "keys") == 0) {
        keys(argv);
    } else if (strcmp(mode, "port") == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Open_port(MPI_INFO_NULL, port);
        say_class(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
        MPI_Close_port(port);
        say_class(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
    } else if (strcmp(mode, "shut") == 0) {
        pthread_t thread;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Open_port(MPI_INFO_NULL, port);
        pthread_create(&thread, NULL, close_soon, NULL);
        say_class(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
        pthread_join(thread, NULL);
    } else if (strcmp(mode, "roots") == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        say_class(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, rank, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE));
    } else if (strcmp(mode, "loop") == 0) {
        loop(argv[0], atoi(how), atoi(argv[3]));
    } else if (strcmp(mode, "child-fails") == 0) {
        other = spawn(argv[0], "child", "fails");
        MPI_Send(&word, 1, MPI_INT, 0, 0, other);
        pause();
    } else if (strcmp(mode, "child-fails-apart") == 0) {
        int threads = entries("/proc/self/task");
        other = spawn(argv[0], "child", "ends-apart");
        MPI_Comm_disconnect(&other);
        await_threads(threads + 1);
        printf("the parent goes on\n");
    } else if (strcmp(mode, "parent-fails") == 0) {
        other = spawn(argv[0], "child", strcmp(how, "apart") == 0 ? "apart" : "stays");
        if (strcmp(how, "apart") == 0)
            MPI_Comm_disconnect(&other);
        else
            MPI_Recv(&word, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
        _exit(5);
    } else if (strcmp(mode, "waits") == 0) {
        if (rank == 0)
            MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    } else if (strcmp(mode, "child-waits") == 0) {
        other = spawn(argv[0], "child", "receives");
        MPI_Recv(&word, 1, MPI_INT, 0, 3, other, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
