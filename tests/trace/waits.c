/* Waits whose causes are known, for tests/trace/test_trace.py; three ranks of a host. Nothing depends on how fast they are: who is to
   be waited for goes on when it knows that the other one is inside its call. It knows that because a synchronous message of its is
   matched there; so the other one must not be served by an event thread (KW_EVENT_THREAD=no), and calls nothing of MPI between the
   word that lets the message be sent and the call that waits. */
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, BYTES = 4 << 20, WAITS = 100 };

static int rank, word, sum;
static char *big;
static MPI_Request pending;
/* In memory that the ranks share: how often each was about to wait for each. */
static atomic_int (*announced)[RANKS];

/* The next call of this rank waits for another one, ... */
static void about_to_wait(int for_whom) {
    MPI_Irecv(&word, 1, MPI_INT, for_whom, WAITS, MPI_COMM_WORLD, &pending);
    announced[rank][for_whom]++;
}

/* ... which goes on from here when it does. */
static void until_waits(int who) {
    static int seen[RANKS];
    while (announced[who][rank] == seen[who]) sched_yield();
    seen[who]++;
    MPI_Ssend(&rank, 1, MPI_INT, who, WAITS, MPI_COMM_WORLD);
}

/* Memory of rank 0. */
static MPI_Win share_memory(void) {
    MPI_Win win;
    MPI_Aint bytes;
    int unit;
    MPI_Win_allocate_shared(rank == 0 ? RANKS * sizeof *announced : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &announced, &win);
    MPI_Win_shared_query(win, 0, &bytes, &unit, &announced);
    if (rank == 0) memset(announced, 0, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    return win;
}

static void has_waited(void) { MPI_Wait(&pending, MPI_STATUS_IGNORE); }

/* Rank 1 posts the receive of a long message late. */
static void late_receiver(void) {
    MPI_Request r;
    if (rank == 0) {
        MPI_Isend(big, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &r);
        about_to_wait(1);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        has_waited();
    } else if (rank == 1) {
        until_waits(0);
        MPI_Recv(big, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Rank 0 sends late what rank 1 looks for. */
static void probes(void) {
    MPI_Message m;
    MPI_Status s;
    for (int i = 0; i < 2; i++) {
        if (rank == 0) {
            until_waits(1);
            MPI_Send(&rank, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
        } else if (rank == 1) {
            about_to_wait(0);
            if (i == 0) {
                MPI_Probe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Recv(&word, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Mprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &m, &s);
                MPI_Mrecv(&word, 1, MPI_INT, &m, MPI_STATUS_IGNORE);
            }
            has_waited();
        }
    }
}

/* What rank 2 has sent lies there while rank 1 waits for rank 0. */
static void wrong_order(void) {
    if (rank == 2) {
        MPI_Send(&rank, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
        MPI_Send(&rank, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
    } else if (rank == 0) {
        MPI_Recv(&word, 1, MPI_INT, 2, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        until_waits(1);
        MPI_Send(&rank, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    } else {
        about_to_wait(0);
        MPI_Recv(&word, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&word, 1, MPI_INT, 2, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        has_waited();
    }
}

/* Rank 1 comes late to a reduction of ranks 1 and 2. */
static void reductions(MPI_Comm comm) {
    int root, zero = 0, two = 2;
    MPI_Group all, own;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_group(comm, &own);
    MPI_Group_translate_ranks(all, 1, &two, own, &root);
    MPI_Group_free(&all);
    MPI_Group_free(&own);
    for (int i = 0; i < 2; i++) {
        if (rank == 2) about_to_wait(1);
        else until_waits(2);
        if (i == 0) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        else MPI_Reduce(&zero, &sum, 1, MPI_INT, MPI_SUM, root, comm);
        if (rank == 2) has_waited();
    }
}

/* Rank 2 comes late to a scan in which it stands before rank 1. */
static void scan(MPI_Comm comm) {
    if (rank == 1) about_to_wait(2);
    else until_waits(1);
    MPI_Scan(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (rank == 1) has_waited();
}

/* Rank 2 comes late to a neighbourhood collective in which rank 1 receives from it. Rank 0 comes when it likes. */
static void neighbours(MPI_Comm comm) {
    int all[4], n[4] = {0};
    if (rank == 1) about_to_wait(2);
    if (rank == 2) until_waits(1);
    MPI_Neighbor_allgather(n, 1, MPI_INT, all, 1, MPI_INT, comm);
    if (rank == 1) has_waited();
}

/* Each topology, and copies of one. In the first rank 0 receives from rank 1, that from rank 2, and that from no rank; in the others each
   receives from those beside it. */
static void topologies(void) {
    MPI_Comm comms[5];
    MPI_Request r;
    int from = rank + 1, to = rank - 1, three = 3, no = 0, ends[] = {1, 3, 4}, edges[] = {1, 0, 2, 1};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank < 2, &from, &three, rank > 0, &to, &three, MPI_INFO_NULL, 0, &comms[0]);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &three, &no, 0, &comms[1]);
    MPI_Graph_create(MPI_COMM_WORLD, 3, ends, edges, 0, &comms[2]);
    MPI_Comm_dup(comms[1], &comms[3]);
    MPI_Comm_idup(comms[0], &comms[4], &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    for (int i = 0; i < 5; i++) {
        neighbours(comms[i]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; i < 5; i++) MPI_Comm_free(&comms[i]);
}

static void communicators(void) {
    MPI_Comm split, dup, idup, made, grouped;
    MPI_Request r;
    MPI_Group all, some;
    int both[2] = {2, 1};
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, -rank, &split); /* rank 2 stands before rank 1 */
    MPI_Comm_dup(split, &dup);
    MPI_Comm_idup(dup, &idup, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 2, both, &some);
    MPI_Comm_create(MPI_COMM_WORLD, some, &made);
    if (rank > 0) {
        MPI_Comm_create_group(MPI_COMM_WORLD, some, 9, &grouped);
        MPI_Comm comms[] = {split, dup, idup, made, grouped};
        for (int i = 0; i < 5; i++) reductions(comms[i]);
        scan(split);
        MPI_Comm_free(&made);
        MPI_Comm_free(&grouped);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&some);
    MPI_Comm_free(&split);
    MPI_Comm_free(&dup);
    MPI_Comm_free(&idup);
}

/* Rank 0 holds the lock of rank 2's memory when rank 1 asks for it. Rank 2 is in MPI_Win_free by then. */
static void windows(void) {
    MPI_Win win;
    int memory = 0;
    MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
        MPI_Put(&rank, 1, MPI_INT, 2, 0, 1, MPI_INT, win);
        MPI_Win_flush(2, win);
        MPI_Send(&rank, 1, MPI_INT, 1, 5, MPI_COMM_WORLD); /* it has the lock */
        until_waits(1);
        MPI_Win_unlock(2, win);
    } else if (rank == 1) {
        MPI_Recv(&word, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
        MPI_Put(&rank, 1, MPI_INT, 2, 0, 1, MPI_INT, win);
        about_to_wait(0);
        MPI_Win_unlock(2, win);
        has_waited();
    }
    MPI_Win_free(&win);
}

static MPI_Group group_of(int who) {
    MPI_Group all, one;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &who, &one);
    MPI_Group_free(&all);
    return one;
}

/* To which ranks come as they like. */
static void first_fence(MPI_Win win) { MPI_Win_fence(0, win); }

/* Rank 0 comes late to a fence. */
static void fences(void) {
    MPI_Win win;
    int *memory;
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    first_fence(win);
    if (rank == 1) about_to_wait(0);
    else if (rank == 0) until_waits(1);
    MPI_Win_fence(0, win);
    if (rank == 1) has_waited();
    MPI_Win_free(&win);
}

/* Rank 1 accesses memory of rank 0, which lets it in late. Where memory is reached directly, as in the first window, MPI_Win_start waits
   for that, else the call that sends the operations. */
static void posts(void) {
    MPI_Win wins[2];
    MPI_Group other = group_of(rank == 0);
    int *memory, own = 0;
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &wins[0]);
    MPI_Win_create(&own, sizeof own, sizeof own, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[1]);
    for (int i = 0; i < 2; i++) {
        if (rank == 1) {
            if (i == 0) about_to_wait(0);
            MPI_Win_start(other, 0, wins[i]);
            MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, wins[i]);
            if (i == 1) about_to_wait(0);
            MPI_Win_complete(wins[i]);
            has_waited();
        } else if (rank == 0) {
            until_waits(1);
            MPI_Win_post(other, 0, wins[i]);
            MPI_Win_wait(wins[i]);
        }
    }
    MPI_Group_free(&other);
    for (int i = 0; i < 2; i++) MPI_Win_free(&wins[i]);
}

/* Rank 2 waits until rank 1 has ended its accesses. */
static void completes(void) {
    MPI_Win win;
    MPI_Group other = group_of(rank == 2 ? 1 : 2);
    int memory = 0;
    MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (rank == 2) {
        MPI_Win_post(other, 0, win);
        about_to_wait(1);
        MPI_Win_wait(win);
        has_waited();
    } else if (rank == 1) {
        MPI_Win_start(other, 0, win);
        MPI_Put(&rank, 1, MPI_INT, 2, 0, 1, MPI_INT, win);
        until_waits(2);
        MPI_Win_complete(win);
    }
    MPI_Group_free(&other);
    MPI_Win_free(&win);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    big = calloc(1, BYTES);
    MPI_Win shared = share_memory();
    late_receiver();
    probes();
    wrong_order();
    communicators();
    topologies();
    windows();
    fences();
    posts();
    completes();
    MPI_Win_free(&shared);
    MPI_Finalize();
    free(big);
    return 0;
}
