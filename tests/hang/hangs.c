// hangs HOW: ranks that wait for each other for ever, each in its own way, and some that only seem to (test_hang.py). The line
// that a sentence should name ends with a comment that says so.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 8 << 20 };
#define WORLD MPI_COMM_WORLD
#define IGNORE MPI_STATUS_IGNORE

static int rank, size, word;
static char *room;

static void recv_word(int from, int tag, MPI_Comm comm) {
    MPI_Recv(&word, 1, MPI_INT, from, tag, comm, IGNORE); // recv_word
}

static void sends(void) {
    MPI_Send(room, LONG, MPI_CHAR, 1 - rank, 3, WORLD); // sends
    MPI_Recv(room, LONG, MPI_CHAR, 1 - rank, 3, WORLD, IGNORE);
}

static void receives(void) { recv_word(1 - rank, 5, WORLD); }

static void tag(void) {
    if (rank == 1) MPI_Send(&word, 1, MPI_INT, 0, 8, WORLD);
    recv_word(1 - rank, 7, WORLD);
}

static void comm(void) {
    MPI_Comm other;
    MPI_Comm_dup(WORLD, &other);
    MPI_Comm_set_name(other, "other");
    if (rank == 1) MPI_Send(&word, 1, MPI_INT, 0, 7, other);
    recv_word(1 - rank, 7, WORLD);
}

static void missing(void) {
    if (rank == 2) recv_word(0, 9, WORLD);
    MPI_Barrier(WORLD); // missing
}

static void file(void) {
    MPI_File open;
    MPI_File_open(WORLD, "/tmp/kw-hangs", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &open);
    if (rank == 2) recv_word(0, 9, WORLD);
    MPI_File_write_all(open, &word, 1, MPI_INT, MPI_STATUS_IGNORE); // file
}

// As before, when the ranks have a shm region.
static void again(void) {
    MPI_Barrier(WORLD);
    if (rank == 2) recv_word(0, 9, WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, WORLD); // again
}

static void differ(void) {
    int sum;
    if (rank == 1)
        MPI_Bcast(&word, 1, MPI_INT, 2, WORLD); // bcast
    else
        MPI_Reduce(&word, &sum, 1, MPI_INT, MPI_SUM, 0, WORLD); // differ
    MPI_Barrier(WORLD);
}

static void cycle(void) { recv_word((rank + 1) % size, 11, WORLD); }

static void finished(void) {
    if (rank == 0) recv_word(1, 1, WORLD);
}

static void any(void) {
    MPI_Request requests[2];
    int which;
    if (rank != 0) recv_word(0, 4, WORLD);
    for (int i = 0; i < 2; i++) MPI_Irecv(&word, 1, MPI_INT, i + 1, 4, WORLD, &requests[i]);
    MPI_Waitany(2, requests, &which, IGNORE); // any
}

static void probe(void) {
    if (rank != 0) recv_word(0, 4, WORLD);
    MPI_Probe(MPI_ANY_SOURCE, 6, WORLD, IGNORE); // probe
}

static void barrier(void) {
    if (rank == 0) MPI_Send(room, LONG, MPI_CHAR, 1, 2, WORLD); // barrier
    MPI_Barrier(WORLD); // in_barrier
    if (rank == 1) MPI_Recv(room, LONG, MPI_CHAR, 0, 2, WORLD, IGNORE);
}

static void inter(void) {
    MPI_Comm half, both;
    MPI_Comm_split(WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, WORLD, 1 - rank % 2, 1, &both);
    MPI_Comm_set_name(both, "both");
    recv_word(0, 12, both);
}

static void background(void) {
    MPI_Request request;
    if (rank == 2) recv_word(0, 9, WORLD);
    MPI_Ibarrier(WORLD, &request);
    MPI_Wait(&request, IGNORE); // background
}

static void making(void) {
    MPI_Comm other;
    if (rank == 2) recv_word(0, 9, WORLD);
    MPI_Comm_split(WORLD, 0, rank, &other); // making
}

static void part(void) {
    MPI_Comm part;
    MPI_Comm_split(WORLD, rank == 0, rank, &part);
    MPI_Comm_set_name(part, "part");
    if (rank == 2) recv_word(0, 9, WORLD);
    if (rank == 0) recv_word(1, 9, WORLD);
    MPI_Barrier(part); // part
}

static void partitioned(void) {
    MPI_Request request;
    if (rank == 0) {
        MPI_Psend_init(room, 2, 4, MPI_INT, 1, 1, WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Pready_range(0, 1, request);
    } else
        MPI_Irecv(room, 8, MPI_INT, 0, 1, WORLD, &request);
    MPI_Wait(&request, IGNORE);
    MPI_Barrier(WORLD);
}

static void partitioned_receive(void) {
    MPI_Request request;
    if (rank == 1) recv_word(0, 9, WORLD);
    MPI_Precv_init(room, 2, 4, MPI_INT, 1, 4, WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, IGNORE); // partitioned
}

static void not_ready(void) {
    MPI_Request request;
    if (rank == 1) recv_word(0, 9, WORLD);
    MPI_Psend_init(room, 2, 4, MPI_INT, 1, 4, WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Pready(1, request);
    MPI_Wait(&request, IGNORE); // not_ready
}

// Windows.

static MPI_Win grid;
static int *cells;

static void window(int allocated) {
    static int lent[4];
    if (allocated)
        MPI_Win_allocate(sizeof lent, sizeof(int), MPI_INFO_NULL, WORLD, &cells, &grid);
    else
        MPI_Win_create(lent, sizeof lent, sizeof(int), MPI_INFO_NULL, WORLD, &grid);
    MPI_Win_set_name(grid, "grid");
}

static MPI_Group only(int one) {
    MPI_Group all, group;
    MPI_Comm_group(WORLD, &all);
    MPI_Group_incl(all, 1, &one, &group);
    return group;
}

static void put(int target) { MPI_Put(&word, 1, MPI_INT, target, 0, 1, MPI_INT, grid); }

static void win_create(void) {
    static int lent[4];
    if (rank == 2) recv_word(0, 9, WORLD);
    MPI_Win_create(lent, sizeof lent, sizeof(int), MPI_INFO_NULL, WORLD, &grid); // win_create
}

static void win_fence(void) {
    window(0);
    MPI_Win_fence(0, grid);
    if (rank == 2) recv_word(0, 9, WORLD);
    put(2);
    MPI_Win_fence(0, grid); // win_fence
}

static void win_free(void) {
    window(1);
    if (rank == 2) recv_word(0, 9, WORLD);
    MPI_Win_free(&grid); // win_free
}

static void win_post(void) {
    window(0);
    if (rank == 1) recv_word(0, 9, WORLD);
    MPI_Win_start(only(1), 0, grid);
    put(1);
    MPI_Win_complete(grid); // win_post
}

static void win_complete(void) {
    window(0);
    if (rank == 0) recv_word(1, 9, WORLD);
    MPI_Win_post(only(0), 0, grid);
    MPI_Win_wait(grid); // win_complete
}

static void waits_for_lock(int lock_type) {
    MPI_Barrier(WORLD);
    MPI_Win_lock(lock_type, 1, 0, grid); put(1); MPI_Win_unlock(1, grid); // win_lock
}

// Rank 0 holds the lock of rank 1's memory; rank 2 wants it.
static void holds(int allocated) {
    window(allocated);
    if (rank == 2) waits_for_lock(MPI_LOCK_SHARED);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, grid);
        put(1);
        MPI_Win_flush(1, grid);
    }
    MPI_Barrier(WORLD);
}

static void win_lock(void) {
    holds(0);
    recv_word(2, 9, WORLD);
}

static void win_lock_allocated(void) {
    holds(1);
    recv_word(2, 9, WORLD);
}

// Ranks 0 and 1 share the lock.
static void win_lock_shared(void) {
    window(1);
    if (rank == 2) waits_for_lock(MPI_LOCK_EXCLUSIVE);
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, grid);
    put(1);
    MPI_Win_flush(1, grid);
    MPI_Barrier(WORLD);
    recv_word(2, 9, WORLD);
}

static void win_crossed(void) {
    window(1);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, grid);
    put(rank);
    MPI_Win_flush(rank, grid);
    MPI_Barrier(WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1 - rank, 0, grid); put(1 - rank); MPI_Win_unlock(1 - rank, grid); // win_crossed
}

// What follows only seems to hang.

static volatile int forever = 1;

static void computes(void) {
    if (rank == 2)
        while (forever) word++; // spin
    MPI_Barrier(WORLD); // computes
}

static void holder_computes(void) {
    holds(0);
    while (rank == 0 && forever) word++; // holder
    recv_word(2, 9, WORLD);
}

static void short_calls(void) {
    while (rank == 0 && forever) MPI_Sendrecv(&word, 1, MPI_INT, 0, 1, room, 1, MPI_INT, 0, 1, WORLD, IGNORE);
    MPI_Barrier(WORLD);
}

static void sleeps(void) {
    if (rank == 2) sleep(1000);
    recv_word((rank + 1) % size, 11, WORLD);
}

static void input(void) {
    char c;
    if (rank == 0 && read(0, &c, 1) < 0) exit(1);
    MPI_Bcast(&word, 1, MPI_INT, 0, WORLD);
}

static void looks(void) {
    MPI_Request request;
    int done = 0;
    MPI_Irecv(&word, 1, MPI_INT, 1 - rank, 1, WORLD, &request);
    while (!done) MPI_Test(&request, &done, IGNORE); // looks
}

static void *sends_later(void *unused) {
    usleep(1500000);
    MPI_Send(&word, 1, MPI_INT, 1 - rank, 5, WORLD);
    return unused;
}

static void thread(void) {
    pthread_t other;
    pthread_create(&other, NULL, sends_later, NULL);
    receives();
    pthread_join(other, NULL);
}

static void slow(void) {
    if (rank == 0) usleep(1000000);
    if (rank == 0) MPI_Send(&word, 1, MPI_INT, 1, 1, WORLD);
    if (rank == 1) recv_word(0, 1, WORLD);
    MPI_Barrier(WORLD);
}

static void transfer(void) {
    for (int i = 0; i < 40; i++)
        MPI_Sendrecv(room, LONG, MPI_CHAR, 1 - rank, 1, room + LONG, LONG, MPI_CHAR, 1 - rank, 1, WORLD, IGNORE);
}

static const struct {
    const char *name;
    void (*run)(void);
} HOW[] = {{"sends", sends}, {"receives", receives}, {"tag", tag}, {"comm", comm}, {"missing", missing}, {"file", file}, {"again", again},
           {"differ", differ}, {"cycle", cycle}, {"finished", finished}, {"any", any}, {"probe", probe}, {"barrier", barrier},
           {"inter", inter}, {"background", background}, {"making", making}, {"part", part}, {"partitioned", partitioned},
           {"partitioned_receive", partitioned_receive}, {"not_ready", not_ready}, {"win_create", win_create}, {"win_fence", win_fence},
           {"win_free", win_free}, {"win_post", win_post}, {"win_complete", win_complete}, {"win_lock", win_lock},
           {"win_lock_allocated", win_lock_allocated}, {"win_lock_shared", win_lock_shared}, {"win_crossed", win_crossed},
           {"holder_computes", holder_computes}, {"short_calls", short_calls}, {"computes", computes},
           {"sleeps", sleeps}, {"input", input}, {"looks", looks}, {"thread", thread}, {"slow", slow}, {"transfer", transfer}};

int main(int argc, char **argv) {
    int wanted = argc > 1 && !strcmp(argv[1], "thread") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, level;
    MPI_Init_thread(&argc, &argv, wanted, &level);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    room = calloc(2, LONG);
    puts("here");
    fflush(stdout);
    for (size_t i = 0; i < sizeof HOW / sizeof *HOW; i++)
        if (argc > 1 && !strcmp(argv[1], HOW[i].name)) HOW[i].run();
    MPI_Finalize();
    return 0;
}
