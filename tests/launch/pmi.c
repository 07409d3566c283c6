/* A rank that speaks PMI-1 by itself, so that mpiexec is tested without the library.

   pmi WORD...   each word is a step: init, fence, finalize, put, get, garbage, half, abort=STATUS, exit=STATUS, kill=SIGNAL,
   sleep, say=TEXT, only=RANK (the next step is for this rank only), not=RANK (for all but this one). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fd, rank, size;

static void tell(const char *line)
{
    if (write(fd, line, strlen(line)) != (ssize_t)strlen(line))
        exit(99);
}

static char *hear(void)
{
    static char line[5000];
    size_t n = 0;
    while (n < sizeof line - 1 && read(fd, line + n, 1) == 1)
        if (line[n++] == '\n') {
            line[n - 1] = 0;
            return line;
        }
    exit(98); /* the launcher is gone */
}

static void ask(const char *line, const char *answer)
{
    tell(line);
    char *got = hear();
    if (strncmp(got, answer, strlen(answer)) != 0) {
        fprintf(stderr, "rank %d: asked %s got %s\n", rank, line, got);
        exit(97);
    }
}

static void put(void)
{
    char line[300];
    ask("cmd=get_my_kvsname\n", "cmd=my_kvsname kvsname=");
    snprintf(line, sizeof line, "cmd=put kvsname=%s key=k%d value=v%d\n", getenv("MPIEXEC_JOB"), rank, rank);
    ask(line, "cmd=put_result rc=0");
}

static void get(void)
{
    char line[300], want[100];
    int other = (rank + 1) % size;
    snprintf(line, sizeof line, "cmd=get kvsname=%s key=k%d\n", getenv("MPIEXEC_JOB"), other);
    snprintf(want, sizeof want, "cmd=get_result rc=0 msg=success value=v%d", other);
    ask(line, want);
}

static void step(const char *word)
{
    const char *value = strchr(word, '=') ? strchr(word, '=') + 1 : "";
    if (!strcmp(word, "init"))
        ask("cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    else if (!strcmp(word, "fence"))
        ask("cmd=barrier_in\n", "cmd=barrier_out");
    else if (!strcmp(word, "finalize"))
        ask("cmd=finalize\n", "cmd=finalize_ack");
    else if (!strcmp(word, "put"))
        put();
    else if (!strcmp(word, "get"))
        get();
    else if (!strcmp(word, "garbage"))
        tell("\001\002 no such thing\n");
    else if (!strcmp(word, "half"))
        tell("cmd=barri");
    else if (!strncmp(word, "abort=", 6)) {
        char line[100];
        snprintf(line, sizeof line, "cmd=abort exitcode=%s msg=no%%20input\n", value);
        tell(line);
        sleep(1000);
    } else if (!strncmp(word, "exit=", 5))
        exit(atoi(value));
    else if (!strncmp(word, "kill=", 5))
        kill(getpid(), atoi(value));
    else if (!strncmp(word, "say=", 4)) {
        printf("%s\n", value);
        fflush(stdout);
    } else if (!strcmp(word, "sleep"))
        sleep(1000);
    else
        exit(96);
}

int main(int argc, char **argv)
{
    fd = atoi(getenv("PMI_FD"));
    rank = atoi(getenv("PMI_RANK"));
    size = atoi(getenv("PMI_SIZE"));
    for (int i = 1; i < argc; i++) {
        int only = !strncmp(argv[i], "only=", 5), except = !strncmp(argv[i], "not=", 4);
        if (only || except) {
            int named = atoi(strchr(argv[i], '=') + 1);
            i++;
            if ((only && rank != named) || (except && rank == named))
                continue;
        }
        step(argv[i]);
    }
    return 0;
}
