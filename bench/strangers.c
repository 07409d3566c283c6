/* strangers HELLOS RATE WINDOW PAIRS (NAMESPACE HOST:PORT) x 2: in the host lab, attacks what
 * listens in the network namespaces, and as long, in turns, a decoy of its own beside it: who
 * bears the cost of the attack's packets is then the same, and what differs is what the attacked
 * process does about them. RATE connections a second, WINDOW seconds each, PAIRS times both. In
 * turn: one that looks in and goes, one that stays silent, random bytes, and what true ranks
 * said once (HELLOS, pieces of 152 bytes): cut short, and whole. Prints a line for each window:
 * begin and end (CLOCK_MONOTONIC, s), target, connections.
 */
#define _GNU_SOURCE
#include "clock.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SAID = 152, HELLO = 96, HELD = 64, HOSTS = 2 };

struct stranger {
    int fd, kind;
};

static unsigned char said[16 * SAID];
static int sayings;

static void sleep_until(double at)
{
    struct timespec t = {(time_t)at, (long)((at - (time_t)at) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* A process that listens in a namespace, lets in and hangs up; where. */
static struct sockaddr_in decoy(const char *namespace)
{
    int report[2], space = open(namespace, O_RDONLY);
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    if (space < 0 || pipe(report))
        fail(namespace);
    pid_t parent = getpid();
    if (fork() == 0) {
        int s = -1;
        if (setns(space, CLONE_NEWNET) || (s = socket(AF_INET, SOCK_STREAM, 0)) < 0 || bind(s, (void *)&at, len) || listen(s, 4096))
            fail("decoy");
        getsockname(s, (void *)&at, &len);
        if (write(report[1], &at.sin_port, sizeof at.sin_port) < 0)
            exit(1);
        fcntl(s, F_SETFL, O_NONBLOCK);
        while (getppid() == parent) {
            int fd;
            sleep_until(now() + 0.02); /* so that it costs little */
            while ((fd = accept(s, NULL, NULL)) >= 0)
                close(fd);
        }
        exit(0);
    }
    if (read(report[0], &at.sin_port, sizeof at.sin_port) != sizeof at.sin_port)
        fail("decoy");
    close(space);
    return at;
}

/* HOST:PORT */
static struct sockaddr_in address(char *text)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    char *colon = strchr(text, ':');
    *colon = 0;
    inet_pton(AF_INET, text, &at.sin_addr);
    at.sin_port = htons(atoi(colon + 1));
    return at;
}

static void come(struct stranger *s, const struct sockaddr_in *to, int kind)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    s->kind = kind;
    connect(s->fd, (const void *)to, sizeof *to);
}

/* What it has to say `turns` turns after it came. */
static void talk(struct stranger *s, int turns)
{
    unsigned char bytes[300];
    const unsigned char *words = said + (rand() % sayings) * SAID;
    ssize_t done = 0;
    if (s->fd < 0)
        return;
    if (turns == 1 && s->kind == 2) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = rand();
        done = send(s->fd, bytes, 1 + rand() % sizeof bytes, MSG_NOSIGNAL);
    }
    if (turns == 1 && s->kind == 3)
        done = send(s->fd, words, 1 + rand() % (HELLO - 1), MSG_NOSIGNAL);
    if (turns == 1 && s->kind == 4)
        done = send(s->fd, words, HELLO, MSG_NOSIGNAL);
    if (turns == 30 && s->kind == 4) /* 0.1 s later: every look at a door has come by then */
        done = send(s->fd, words + HELLO, SAID - HELLO, MSG_NOSIGNAL);
    if ((turns == 2 && s->kind == 0) || (turns == 40 && s->kind != 1) || done < 0) {
        close(s->fd);
        s->fd = -1;
    }
}

/* One window; how many came. */
static int attack(const struct sockaddr_in at[HOSTS], double rate, double end)
{
    static struct stranger held[HELD];
    static int turn, begun;
    int came = 0;
    for (int i = 0; i < HELD && !begun; i++)
        held[i].fd = -1;
    begun = 1;
    for (double next = now(); next < end; turn++, came++) {
        sleep_until(next);
        next = next + 1 / rate > now() ? next + 1 / rate : now(); /* what it came too late for is not made up for */
        come(&held[turn % HELD], &at[turn / 5 % HOSTS], turn % 5);
        talk(&held[(turn + HELD - 1) % HELD], 1);
        talk(&held[(turn + HELD - 2) % HELD], 2);
        talk(&held[(turn + HELD - 30) % HELD], 30);
        talk(&held[(turn + HELD - 40) % HELD], 40);
    }
    return came;
}

int main(int argc, char **argv)
{
    struct sockaddr_in both[2][HOSTS];
    FILE *f = argc == 5 + 2 * HOSTS ? fopen(argv[1], "rb") : NULL;
    if (!f || (sayings = fread(said, SAID, 16, f)) == 0)
        fail("strangers HELLOS RATE WINDOW PAIRS (NAMESPACE HOST:PORT) x 2");
    double rate = atof(argv[2]), window = atof(argv[3]);
    for (int i = 0; i < HOSTS; i++) {
        both[0][i] = both[1][i] = address(argv[6 + 2 * i]);
        both[1][i].sin_port = decoy(argv[5 + 2 * i]).sin_port;
    }
    for (int i = 0; i < 2 * atoi(argv[4]); i++) {
        int who = (i + 1) / 2 % 2; /* ranks decoy decoy ranks ranks decoy ... */
        double begin = now();
        int came = attack(both[who], rate, begin + window);
        printf("%.6f %.6f %s %d\n", begin, now(), who ? "decoy" : "ranks", came);
        fflush(stdout);
    }
    return 0;
}
