/* native.c: messages below MPI: what the paper did with SHMEM on the T3D (section 2.2). Bytes go one
 * of two ways:
 *
 *   rings      for ranks of one host: for each ordered pair of ranks a ring of bytes in shared
 *              memory, which one writes and the other reads
 *   sockets    for ranks anywhere: one TCP connection for each pair of ranks
 *
 * There are no tags: messages of a pair arrive in the order in which they were sent, which is all
 * that pstswm needs.
 *
 * An operation is a send or a receive that has begun. Operations to one rank, or from one, are done
 * in order, a part whenever the way has room or bytes; a rank that waits goes through all of them, so
 * two ranks that send each other more than a way holds do not wait for ever.
 *
 * One thread. Head and tail of a ring count bytes; the writer releases head after the bytes, the
 * reader acquires it before them, and the same with tail the other way. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CAPACITY = 1 << 17, OPERATIONS = 256, PATIENCE = 200 };

struct ring {
    _Alignas(64) _Atomic uint64_t head; /* bytes ever written */
    _Alignas(64) _Atomic uint64_t tail; /* bytes ever read */
    _Alignas(64) char bytes[CAPACITY];
};

struct operation {
    int peer;
    char *at;
    size_t left;
    int sends;
};

static struct ring *rings;
static int *sockets; /* by rank; NULL where bytes go through rings */
static int listener = -1;
static int ranks, me;
/* Begun and not yet done, in the order of their beginning: a ticket counts them from 1. */
static struct operation operations[OPERATIONS];
static int64_t first = 1, next = 1;

/* Maps the rings of a job. The first rank makes them, under this name, and takes the name away once
 * all have come. Returns 0, or -1 when there is no such memory. */
int native_open(const char *name, int how_many, int rank, int makes)
{
    size_t size = (size_t)how_many * how_many * sizeof *rings;
    int file = shm_open(name, makes ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
    if (file < 0)
        return -1;
    if (makes && posix_fallocate(file, 0, size) != 0) {
        close(file);
        shm_unlink(name);
        return -1;
    }
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at == MAP_FAILED)
        return -1;
    rings = at;
    ranks = how_many;
    me = rank;
    return 0;
}

void native_unlink(const char *name)
{
    shm_unlink(name);
}

/* Where others reach this rank: the loopback interface where all ranks are on one host, else the
 * first interface that leads elsewhere. */
static int own_address(int one_host, struct in_addr *found)
{
    struct ifaddrs *all = NULL;
    int is_found = one_host;
    found->s_addr = htonl(INADDR_LOOPBACK);
    if (one_host || getifaddrs(&all) != 0)
        return is_found ? 0 : -1;
    for (struct ifaddrs *i = all; i && !is_found; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK)) {
            *found = ((struct sockaddr_in *)i->ifa_addr)->sin_addr;
            is_found = 1;
        }
    freeifaddrs(all);
    return is_found ? 0 : -1;
}

/* Begins to listen, and tells where. Returns 0, or -1 when there is no network. */
int sockets_listen(int one_host, struct sockaddr_in *here)
{
    socklen_t length = sizeof *here;
    memset(here, 0, sizeof *here);
    here->sin_family = AF_INET;
    if (own_address(one_host, &here->sin_addr) != 0)
        return -1;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)here, sizeof *here) != 0 || listen(listener, 128) != 0)
        return -1;
    return getsockname(listener, (struct sockaddr *)here, &length);
}

/* Who is at the other end of a connection that was accepted: a rank after this one, or -1. */
static int asks_who(int file)
{
    int32_t who = -1;
    if (recv(file, &who, sizeof who, MSG_WAITALL) != sizeof who || who <= me || who >= ranks || sockets[who] >= 0)
        return -1;
    return who;
}

static int connect_to(const struct sockaddr_in *there)
{
    int32_t mine = me;
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (file < 0 || connect(file, (const struct sockaddr *)there, sizeof *there) != 0 ||
        send(file, &mine, sizeof mine, MSG_NOSIGNAL) != sizeof mine)
        return -1;
    return file;
}

/* Connects all pairs, when all listen; `there` has their addresses by rank. Each rank connects to
 * those before it. Returns 0, or -1. */
int sockets_connect(const struct sockaddr_in *there, int how_many, int rank)
{
    int on = 1;
    ranks = how_many;
    me = rank;
    sockets = malloc(ranks * sizeof *sockets);
    if (!sockets)
        return -1;
    for (int i = 0; i < ranks; i++)
        sockets[i] = -1;
    for (int i = 0; i < me; i++)
        if ((sockets[i] = connect_to(&there[i])) < 0)
            return -1;
    for (int left = ranks - 1 - me; left > 0;) {
        int file = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        int who = file < 0 ? -1 : asks_who(file);
        if (file < 0 && errno != EINTR)
            return -1;
        if (file >= 0 && who < 0)
            close(file); /* somebody else's */
        if (who >= 0)
            sockets[who] = file, left--;
    }
    close(listener);
    for (int i = 0; i < ranks; i++)
        if (i != me)
            setsockopt(sockets[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return 0;
}

/* Moves what a connection takes or has. Returns the number of bytes. */
static size_t move(struct operation *o)
{
    int file = sockets[o->peer];
    ssize_t n = o->sends ? send(file, o->at, o->left, MSG_DONTWAIT | MSG_NOSIGNAL) : recv(file, o->at, o->left, MSG_DONTWAIT);
    if (n > 0)
        return n;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    fprintf(stderr, "pstswm: rank %d has closed its connection to rank %d\n", o->peer, me);
    exit(1);
}

/* Writes what the ring has room for. Returns the number of bytes. */
static size_t put(struct operation *o)
{
    struct ring *r = &rings[me * ranks + o->peer];
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    size_t room = CAPACITY - (head - atomic_load_explicit(&r->tail, memory_order_acquire));
    size_t here = head % CAPACITY, n = o->left < room ? o->left : room;
    if (n > CAPACITY - here)
        n = CAPACITY - here;
    memcpy(r->bytes + here, o->at, n);
    atomic_store_explicit(&r->head, head + n, memory_order_release);
    return n;
}

static size_t get(struct operation *o)
{
    struct ring *r = &rings[o->peer * ranks + me];
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    size_t there = atomic_load_explicit(&r->head, memory_order_acquire) - tail;
    size_t here = tail % CAPACITY, n = o->left < there ? o->left : there;
    if (n > CAPACITY - here)
        n = CAPACITY - here;
    memcpy(o->at, r->bytes + here, n);
    atomic_store_explicit(&r->tail, tail + n, memory_order_release);
    return n;
}

/* Has an operation that began earlier, to or from the same rank, still something to do? */
static int must_wait(int64_t ticket)
{
    const struct operation *o = &operations[ticket % OPERATIONS];
    for (int64_t t = first; t < ticket; t++) {
        const struct operation *before = &operations[t % OPERATIONS];
        if (before->left > 0 && before->peer == o->peer && before->sends == o->sends)
            return 1;
    }
    return 0;
}

/* Does what can be done now. Returns whether that was anything. */
static int go_on(void)
{
    int moved = 0;
    for (int64_t t = first; t < next; t++) {
        struct operation *o = &operations[t % OPERATIONS];
        if (o->left == 0 || must_wait(t))
            continue;
        size_t n = sockets ? move(o) : o->sends ? put(o) : get(o);
        o->at += n;
        o->left -= n;
        moved |= n > 0;
    }
    return moved;
}

static int is_done(int64_t ticket)
{
    while (first < next && operations[first % OPERATIONS].left == 0)
        first++;
    return ticket < first || operations[ticket % OPERATIONS].left == 0;
}

/* Returns when the operation is done. */
void native_wait(int64_t ticket)
{
    for (int idle = 0; !is_done(ticket);) {
        if (go_on())
            idle = 0;
        else if (++idle > PATIENCE)
            sched_yield();
    }
}

static int64_t begin(int peer, char *at, size_t length, int sends)
{
    if (next - first == OPERATIONS)
        native_wait(first);
    operations[next % OPERATIONS] = (struct operation){peer, at, length, sends};
    return next++;
}

/* Begins to send to, or to receive from, a rank; returns a ticket. */
int64_t native_send(int to, void *from, size_t length)
{
    int64_t ticket = begin(to, from, length, 1);
    go_on();
    return ticket;
}

int64_t native_receive(int from, void *into, size_t length)
{
    return begin(from, into, length, 0);
}
