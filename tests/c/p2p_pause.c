// run: n=2,4 timeout=120 abi=one
/* Senders that are told to pause, because their receiver keeps too much already (KW_UNEXPECTED): whatever the program needs comes
 * through all the same. The message that is wanted always stands behind thousands that are not, many more than are kept. */
#include "check.h"
#include <unistd.h>

#define MOST 20000
#define LARGE (1 << 20)
#define WORLD MPI_COMM_WORLD

static int N, out[MOST]; /* messages of a flood */
static MPI_Request sends[MOST + 1];
static char large[LARGE], sent[LARGE];

// Starts to send N messages of tag 1 and one of tag 2.
static void begin_flood(int to) {
    int i;
    for (i = 0; i < N; i++) MPI_Isend(&out[i], 1, MPI_INT, to, 1, WORLD, &sends[i]);
    MPI_Isend(&out[7], 1, MPI_INT, to, 2, WORLD, &sends[N]);
}

static void end_flood(void) { OK(MPI_Waitall(N + 1, sends, MPI_STATUSES_IGNORE)); }

// What rank 1 sends meanwhile comes through.
static void flood_and_receive(void) {
    begin_flood(1);
    OK(MPI_Recv(large, LARGE, MPI_BYTE, 1, 3, WORLD, MPI_STATUS_IGNORE));
    end_flood();
}

static void receive(int from, int tag, int want) {
    int v = -1;
    OK(MPI_Recv(&v, 1, MPI_INT, from, tag, WORLD, MPI_STATUS_IGNORE));
    if (v != want) CHECK_EQ(v, want);
}

static void receive_flood(int from) {
    int i;
    for (i = 0; i < N && check_failed < 20; i++) receive(from, 1, i);
}

static void wanted_by_recv(void) { receive(0, 2, 7); }

static void wanted_by_test(void) {
    int v = -1, done = 0;
    MPI_Request r;
    MPI_Irecv(&v, 1, MPI_INT, 0, 2, WORLD, &r);
    while (!done) MPI_Test(&r, &done, MPI_STATUS_IGNORE);
    CHECK_EQ(v, 7);
}

static void wanted_by_probe(void) {
    MPI_Status s;
    MPI_Probe(0, 2, WORLD, &s);
    receive(s.MPI_SOURCE, 2, 7);
}

static void wanted_by_iprobe(void) {
    int flag = 0;
    while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, 2, WORLD, &flag, MPI_STATUS_IGNORE);
    receive(0, 2, 7);
}

static void wanted_by_mprobe(void) {
    MPI_Message m;
    int v = -1;
    MPI_Mprobe(MPI_ANY_SOURCE, 2, WORLD, &m, MPI_STATUS_IGNORE);
    MPI_Mrecv(&v, 1, MPI_INT, &m, MPI_STATUS_IGNORE);
    CHECK_EQ(v, 7);
}

static void wanted_by_improbe(void) {
    MPI_Message m;
    int v = -1, flag = 0;
    while (!flag) MPI_Improbe(0, 2, WORLD, &flag, &m, MPI_STATUS_IGNORE);
    MPI_Mrecv(&v, 1, MPI_INT, &m, MPI_STATUS_IGNORE);
    CHECK_EQ(v, 7);
}

// The receiver is busy, and takes messages in meanwhile; then it wants the last one first.
static void one_way(void (*want)(void)) {
    MPI_Request r;
    meet();
    if (check_rank == 0) {
        flood_and_receive();
    } else if (check_rank == 1) {
        MPI_Isend(large, LARGE, MPI_BYTE, 0, 3, WORLD, &r);
        usleep(20000);
        want();
        receive_flood(0);
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    }
}

static void both_ways(void) {
    int peer = check_rank ^ 1;
    meet();
    begin_flood(peer);
    receive(peer, 2, 7);
    receive_flood(peer);
    end_flood();
}

// What is wanted of the flooded rank is not what it is flooded with.
static void large_the_other_way(void) {
    meet();
    if (check_rank == 0) {
        flood_and_receive();
    } else if (check_rank == 1) {
        OK(MPI_Send(large, LARGE, MPI_BYTE, 0, 3, WORLD));
        receive(0, 2, 7);
        receive_flood(0);
    }
}

static void several_senders(void) {
    static int next[64];
    int i, v;
    MPI_Status s;
    meet();
    memset(next, 0, sizeof next);
    if (check_rank != 0) {
        for (i = 0; i < N; i++) MPI_Send(&out[i], 1, MPI_INT, 0, 1, WORLD);
        MPI_Send(&out[7], 1, MPI_INT, 0, 2, WORLD);
    } else {
        for (i = 1; i < check_size; i++) receive(MPI_ANY_SOURCE, 2, 7);
        for (i = 0; i < N * (check_size - 1); i++) {
            MPI_Recv(&v, 1, MPI_INT, MPI_ANY_SOURCE, 1, WORLD, &s);
            if (v != next[s.MPI_SOURCE]++) { CHECK_EQ(v, next[s.MPI_SOURCE] - 1); break; }
        }
    }
}

// Every kind of send, behind a flood.
static void all_modes(void) {
    int i, k, v[4] = {1, 2, 3, 4}, got[4] = {0};
    static char space[1000 * (sizeof(int) + MPI_BSEND_OVERHEAD)];
    MPI_Request r[4];
    MPI_Status s;
    meet();
    if (check_rank == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 4, WORLD, MPI_STATUS_IGNORE); // the receive of the ready send is posted
        begin_flood(1);
        MPI_Issend(&v[0], 1, MPI_INT, 1, 5, WORLD, &r[0]);
        MPI_Irsend(&v[1], 1, MPI_INT, 1, 6, WORLD, &r[1]);
        MPI_Buffer_attach(space, sizeof space);
        for (i = 0; i < 1000; i++) MPI_Bsend(&i, 1, MPI_INT, 1, 7, WORLD);
        MPI_Psend_init(v, 4, 1, MPI_INT, 1, 8, WORLD, MPI_INFO_NULL, &r[2]);
        MPI_Start(&r[2]);
        for (k = 3; k >= 0; k--) MPI_Pready(k, r[2]);
        MPI_Isend(large, LARGE, MPI_BYTE, 1, 9, WORLD, &r[3]);
        OK(MPI_Waitall(4, r, MPI_STATUSES_IGNORE));
        end_flood();
        void *p;
        OK(MPI_Buffer_detach(&p, &i));
        MPI_Request_free(&r[2]);
    } else if (check_rank == 1) {
        int ready = -1;
        MPI_Irecv(&ready, 1, MPI_INT, 0, 6, WORLD, &r[1]);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 4, WORLD);
        MPI_Precv_init(got, 4, 1, MPI_INT, 0, 8, WORLD, MPI_INFO_NULL, &r[2]);
        usleep(20000);
        OK(MPI_Recv(large, LARGE, MPI_BYTE, 0, 9, WORLD, MPI_STATUS_IGNORE));
        for (i = 0; i < 1000; i++) receive(0, 7, i);
        receive(0, 5, 1);
        OK(MPI_Wait(&r[1], MPI_STATUS_IGNORE));
        CHECK_EQ(ready, 2);
        MPI_Start(&r[2]);
        OK(MPI_Wait(&r[2], &s));
        for (k = 0; k < 4; k++) CHECK_EQ(got[k], k + 1);
        MPI_Request_free(&r[2]);
        receive(0, 2, 7);
        receive_flood(0);
    }
}

// Every tenth message is taken back; the receiver gets all the others and no other, in order.
static void cancelled(void) {
    static char gone[MOST];
    int i, flag;
    MPI_Status s;
    MPI_Request r;
    meet();
    if (check_rank == 0) {
        begin_flood(1);
        for (i = 0; i < N; i += 10) OK(MPI_Cancel(&sends[i]));
        for (i = 0; i <= N; i++) {
            OK(MPI_Wait(&sends[i], &s));
            MPI_Test_cancelled(&s, &flag);
            if (i < N) gone[i] = flag;
        }
        MPI_Send(gone, N, MPI_BYTE, 1, 3, WORLD);
    } else if (check_rank == 1) {
        MPI_Isend(large, LARGE, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &r);
        usleep(20000);
        MPI_Recv(large, LARGE, MPI_BYTE, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        MPI_Recv(gone, N, MPI_BYTE, 0, 3, WORLD, MPI_STATUS_IGNORE);
        for (i = 0; i < N; i++)
            if (!gone[i]) receive(0, 1, i);
        receive(0, 2, 7);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK_EQ(flag, 0);
    }
}

// Collectives pass what is kept back.
static void collectives_pass(void) {
    int sum = 0, one = 1;
    meet();
    if (check_rank == 0) begin_flood(1);
    if (check_rank == 1) usleep(20000);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, WORLD));
    CHECK_EQ(sum, check_size);
    OK(MPI_Bcast(large, LARGE, MPI_BYTE, 0, WORLD));
    if (check_rank == 1) {
        receive(0, 2, 7);
        receive_flood(0);
    }
    if (check_rank == 0) end_flood();
}

// Not correct, but usual: programs that rely on the buffering of messages. They go on, if slower.
static void unsafe_programs(void) {
    int i, peer = check_rank ^ 1;
    meet();
    if (check_rank == 0)
        for (i = 0; i < N; i++) MPI_Send(&out[i], 1, MPI_INT, 1, 1, WORLD);
    MPI_Barrier(WORLD);
    if (check_rank == 1) receive_flood(0);
    MPI_Barrier(WORLD);
    for (i = 0; i < N; i++) MPI_Send(&out[i], 1, MPI_INT, peer, 1, WORLD);
    receive_flood(peer);
    for (i = 0; i < N; i++) MPI_Send(&out[i], 1, MPI_INT, check_rank, 1, WORLD);
    receive_flood(check_rank);
}

// No rank waits for these sends: they arrive although their sender goes on to MPI_Finalize.
static void freed(void) {
    int i;
    MPI_Request r;
    meet();
    if (check_rank == 0) {
        begin_flood(1);
        for (i = 0; i <= N; i++) MPI_Request_free(&sends[i]);
    } else if (check_rank == 1) {
        MPI_Irecv(large, LARGE, MPI_BYTE, 1, 4, WORLD, &r);
        usleep(20000);
        MPI_Send(sent, LARGE, MPI_BYTE, 1, 4, WORLD);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        receive(0, 2, 7);
        receive_flood(0);
    }
}

int main(int argc, char **argv) {
    int i;
    N = check_times(MOST, 10000);
    setenv("KW_UNEXPECTED", "200K", 1);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    for (i = 0; i < N; i++) out[i] = i;
    one_way(wanted_by_recv);
    one_way(wanted_by_test);
    one_way(wanted_by_probe);
    one_way(wanted_by_iprobe);
    one_way(wanted_by_mprobe);
    one_way(wanted_by_improbe);
    both_ways();
    large_the_other_way();
    several_senders();
    all_modes();
    cancelled();
    collectives_pass();
    if (STRICT) unsafe_programs();
    freed();
    MPI_Comm_free(&check_comm);
    MPI_Finalize();
    return check_failed != 0;
}
