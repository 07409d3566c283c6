/* native.c: messages below MPI, for ranks of one host: what the paper did with SHMEM on the T3D
 * (section 2.2). For each ordered pair of ranks there is a ring of bytes in shared memory, which
 * one writes and the other reads. There are no tags: messages of a pair arrive in the order in
 * which they were sent, which is all that pstswm needs.
 *
 * An operation is a send or a receive that has begun. Operations of one ring are done in order, a
 * part whenever the ring has room or bytes; whoever waits goes through all rings, so two ranks that
 * send each other more than a ring holds do not wait for ever.
 *
 * One thread. Head and tail of a ring count bytes; the writer releases head after the bytes, the
 * reader acquires it before them, and the same with tail the other way. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CAPACITY = 1 << 17, OPERATIONS = 256, PATIENCE = 200 };

struct ring {
    _Alignas(64) _Atomic uint64_t head; /* bytes ever written */
    _Alignas(64) _Atomic uint64_t tail; /* bytes ever read */
    _Alignas(64) char bytes[CAPACITY];
};

struct operation {
    struct ring *ring;
    char *at;
    size_t left;
    int sends;
};

static struct ring *rings;
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

/* Writes what the ring has room for. Returns the number of bytes. */
static size_t put(struct operation *o)
{
    struct ring *r = o->ring;
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
    struct ring *r = o->ring;
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    size_t there = atomic_load_explicit(&r->head, memory_order_acquire) - tail;
    size_t here = tail % CAPACITY, n = o->left < there ? o->left : there;
    if (n > CAPACITY - here)
        n = CAPACITY - here;
    memcpy(o->at, r->bytes + here, n);
    atomic_store_explicit(&r->tail, tail + n, memory_order_release);
    return n;
}

/* Has an operation that began earlier, on the same ring, still something to do? */
static int must_wait(int64_t ticket)
{
    for (int64_t t = first; t < ticket; t++)
        if (operations[t % OPERATIONS].left > 0 &&
            operations[t % OPERATIONS].ring == operations[ticket % OPERATIONS].ring)
            return 1;
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
        size_t n = o->sends ? put(o) : get(o);
        o->at += n;
        o->left -= n;
        moved |= n > 0;
    }
    while (first < next && operations[first % OPERATIONS].left == 0)
        first++;
    return moved;
}

static void wait_until(int64_t end)
{
    for (int idle = 0; first < end;) {
        if (go_on())
            idle = 0;
        else if (++idle > PATIENCE)
            sched_yield();
    }
}

static int64_t begin(int from, int to, char *at, size_t length, int sends)
{
    if (next - first == OPERATIONS)
        wait_until(first + 1);
    struct ring *ring = &rings[from * ranks + to];
    operations[next % OPERATIONS] = (struct operation){ring, at, length, sends};
    return next++;
}

/* Begins to send to, or to receive from, a rank; returns a ticket. */
int64_t native_send(int to, void *from, size_t length)
{
    int64_t ticket = begin(me, to, from, length, 1);
    go_on();
    return ticket;
}

int64_t native_receive(int from, void *into, size_t length)
{
    return begin(from, me, into, length, 0);
}

/* Returns when the operation is done. */
void native_wait(int64_t ticket)
{
    for (int idle = 0; ticket >= first && operations[ticket % OPERATIONS].left > 0;) {
        if (go_on())
            idle = 0;
        else if (++idle > PATIENCE)
            sched_yield();
    }
}
