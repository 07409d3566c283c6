// run: n=2 timeout=60
/* Performance variables around a ping-pong: exact counts by protocol and path, levels, highwatermarks; what each class
 * allows. The names are Kittiwake's own, so other libraries have nothing to do here. */
#include "check.h"

typedef unsigned long long Value;

static MPI_T_pvar_session session;

static MPI_T_pvar_handle open_pvar(const char *name, int class) {
    MPI_T_pvar_handle h = MPI_T_PVAR_HANDLE_NULL;
    int index = -1, count = 0;
    OK(MPI_T_pvar_get_index(name, class, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &h, &count));
    CHECK_EQ(count, 1);
    return h;
}

static MPI_T_pvar_handle counter(const char *name) { return open_pvar(name, MPI_T_PVAR_CLASS_COUNTER); }
static MPI_T_pvar_handle aggregate(const char *name) { return open_pvar(name, MPI_T_PVAR_CLASS_AGGREGATE); }
static MPI_T_pvar_handle level(const char *name) { return open_pvar(name, MPI_T_PVAR_CLASS_LEVEL); }
static MPI_T_pvar_handle peak(const char *name) { return open_pvar(name, MPI_T_PVAR_CLASS_HIGHWATERMARK); }

static Value value(MPI_T_pvar_handle h) {
    Value v = 0xdead;
    OK(MPI_T_pvar_read(session, h, &v));
    return v;
}

static void ping_pong(int times, int bytes) {
    char *buf = calloc(1, bytes);
    int i;
    for (i = 0; i < times; i++)
        if (check_rank == 0) {
            MPI_Send(buf, bytes, MPI_BYTE, 1, 1, check_comm);
            MPI_Recv(buf, bytes, MPI_BYTE, 1, 1, check_comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buf, bytes, MPI_BYTE, 0, 1, check_comm, MPI_STATUS_IGNORE);
            MPI_Send(buf, bytes, MPI_BYTE, 0, 1, check_comm);
        }
    free(buf);
}

static void exact_counts(void) {
    MPI_T_pvar_handle sent = counter("eager_sent"), bytes = aggregate("eager_bytes");
    MPI_T_pvar_handle shm = counter("shm_sent"), tcp = counter("tcp_sent"), udp = counter("udp_sent"), own = counter("self_sent");
    MPI_T_pvar_handle shm_bytes = aggregate("shm_bytes"), tcp_bytes = aggregate("tcp_bytes"), udp_bytes = aggregate("udp_bytes");
    MPI_T_pvar_handle expected = counter("expected"), unexpected = counter("unexpected");
    MPI_T_pvar_handle other = counter("eager_sent");
    Value v, came;

    OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_T_pvar_stop(session, other));
    ping_pong(100, 16);
    CHECK_EQ(value(sent), 100);
    CHECK_EQ(value(bytes), 1600);
    CHECK_EQ(value(shm) + value(tcp) + value(udp), 100);
    CHECK_EQ(value(shm_bytes) + value(tcp_bytes) + value(udp_bytes), 1600);
    CHECK((value(shm) != 0) + (value(tcp) != 0) + (value(udp) != 0) == 1);
    CHECK_EQ(value(own), 0);
    /* No rank sends to rank 0 before it does. At rank 1 its first message may come before the counters start, and that after the last
     * before they are read. */
    came = value(expected) + value(unexpected);
    if (check_rank == 0) CHECK_EQ(came, 100);
    CHECK(came >= 99 && came <= 101);
    CHECK_EQ(value(other), 0);

    OK(MPI_T_pvar_stop(session, sent));
    ping_pong(7, 16);
    CHECK_EQ(value(sent), 100);
    CHECK_EQ(value(bytes), 1712);
    OK(MPI_T_pvar_start(session, sent));
    ping_pong(1, 16);
    CHECK_EQ(value(sent), 101);
    OK(MPI_T_pvar_readreset(session, sent, &v));
    CHECK_EQ(v, 101);
    CHECK_EQ(value(sent), 0);
    ping_pong(2, 16);
    CHECK_EQ(value(sent), 2);
    v = 1000;
    OK(MPI_T_pvar_write(session, sent, &v));
    ping_pong(3, 16);
    CHECK_EQ(value(sent), 1003);
    OK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    CHECK_EQ(value(sent), 0);
    CHECK_EQ(value(bytes), 0);

    /* A message to oneself. */
    MPI_Sendrecv(&v, 8, MPI_BYTE, check_rank, 2, &v, 8, MPI_BYTE, check_rank, 2, check_comm, MPI_STATUS_IGNORE);
    CHECK_EQ(value(own), 1);
    OK(MPI_T_pvar_handle_free(session, &other));
}

/* Collectives through shared memory: each is counted once, in all three forms; a first one finds the memory. */
static void shm_regions(void) {
    MPI_T_pvar_handle number = counter("shm_collectives"), bytes = aggregate("shm_collective_bytes");
    MPI_T_pvar_handle shm = counter("shm_sent"), tcp = counter("tcp_sent"), udp = counter("udp_sent");
    const char *paths = getenv("KW_PATHS");
    /* ranks that compare their calls do so by messages, and such a call has no place in shared memory */
    int shared = (!paths || strstr(paths, "shm")) && !is_checked(), in[16] = {0}, out[16];
    MPI_Request q;
    OK(MPI_Barrier(check_comm));
    OK(MPI_Allreduce_init(in, out, 16, MPI_INT, MPI_SUM, check_comm, MPI_INFO_NULL, &q));
    meet();
    OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    for (int i = 0; i < 5; i++) OK(MPI_Allreduce(in, out, 16, MPI_INT, MPI_SUM, check_comm));
    OK(MPI_Start(&q));
    OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&q));
    OK(MPI_Iallreduce(in, out, 16, MPI_INT, MPI_SUM, check_comm, &q));
    OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(check_comm));
    CHECK_EQ(value(number), shared ? 8 : 0);
    CHECK_EQ(value(bytes), shared ? 7 * 64 : 0);
    if (shared) CHECK_EQ(value(shm), 0);
    if (!shared) CHECK(value(shm) + value(tcp) + value(udp) > 0);
    meet();
}

/* Long messages go by one of the other protocols; each is counted once. */
static void long_messages(void) {
    MPI_T_pvar_handle rndv = counter("rndv_sent"), get = counter("get_sent"), write = counter("write_sent");
    MPI_T_pvar_handle offered = counter("rndv_offered");
    MPI_T_pvar_handle shm = aggregate("shm_bytes"), tcp = aggregate("tcp_bytes"), udp = aggregate("udp_bytes");
    const int bytes = 4 << 20;
    OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    ping_pong(5, bytes);
    meet();
    CHECK_EQ(value(rndv) + value(get) + value(write), 5);
    /* An offer that crosses with the announcement of its receive is written. */
    CHECK(value(offered) >= value(rndv) + value(get) && value(offered) <= 5);
    CHECK_EQ(value(shm) + value(tcp) + value(udp), 5ll * bytes);
}

/* Messages that come before their receives: how many wait, how many bytes, and the most there ever were. */
static void unexpected(void) {
    enum { N = 10, BYTES = 24 };
    MPI_T_pvar_handle waiting = level("unexpected_waiting"), held = level("unexpected_held");
    MPI_T_pvar_handle most = peak("unexpected_waiting_peak"), most_held = peak("unexpected_held_peak");
    MPI_T_pvar_handle came = counter("unexpected"), bytes = aggregate("unexpected_bytes");
    char buf[BYTES] = "";
    int i, flag;
    CHECK_CLASS(MPI_T_pvar_start(session, waiting), MPI_T_ERR_PVAR_NO_STARTSTOP);
    CHECK_CLASS(MPI_T_pvar_stop(session, waiting), MPI_T_ERR_PVAR_NO_STARTSTOP);
    CHECK_CLASS(MPI_T_pvar_reset(session, waiting), MPI_T_ERR_PVAR_NO_WRITE);
    CHECK_CLASS(MPI_T_pvar_write(session, waiting, &i), MPI_T_ERR_PVAR_NO_WRITE);
    CHECK_CLASS(MPI_T_pvar_readreset(session, waiting, buf), MPI_T_ERR_PVAR_NO_ATOMIC);
    OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    meet();
    if (check_rank == 0) {
        for (i = 0; i < N; i++) MPI_Send(buf, BYTES, MPI_BYTE, 1, 10 + i, check_comm);
        meet();
    } else {
        /* The messages of one sender come in order: when the last is there, all are. */
        MPI_Probe(0, 10 + N - 1, check_comm, MPI_STATUS_IGNORE);
        CHECK(value(waiting) >= N);
        CHECK(value(held) >= N * BYTES);
        CHECK(value(most) >= N && value(most_held) >= N * BYTES);
        CHECK(value(came) >= N && value(bytes) >= N * BYTES);
        for (i = 0; i < N; i++) MPI_Recv(buf, BYTES, MPI_BYTE, 0, 10 + i, check_comm, MPI_STATUS_IGNORE);
        CHECK(value(waiting) < N);
        CHECK(value(most) >= N);
        OK(MPI_T_pvar_reset(session, most));
        CHECK(value(most) < N);
        OK(MPI_T_pvar_stop(session, most_held));
        CHECK(value(most_held) >= N * BYTES);
        meet();
    }
}

static void queues(void) {
    MPI_T_pvar_handle posted = level("receives_posted"), active = level("requests_active");
    MPI_T_pvar_handle event;
    MPI_Request req[4];
    Value before = value(posted);
    int i, buf[4], state = -1, index, count;
    for (i = 0; i < 4; i++) MPI_Irecv(buf + i, 1, MPI_INT, 1 - check_rank, 50 + i, check_comm, &req[i]);
    CHECK_EQ(value(posted), before + 4);
    CHECK(value(active) >= 4);
    for (i = 0; i < 4; i++) MPI_Cancel(&req[i]);
    MPI_Waitall(4, req, MPI_STATUSES_IGNORE);
    CHECK_EQ(value(posted), before);
    OK(MPI_T_pvar_get_index("event_state", MPI_T_PVAR_CLASS_STATE, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &event, &count));
    OK(MPI_T_pvar_read(session, event, &state));
    CHECK(state >= 0 && state < 5);
}

static void wrong(void) {
    MPI_T_pvar_handle h = counter("eager_sent"), gone = counter("eager_sent");
    MPI_T_pvar_handle copy = gone;
    MPI_T_pvar_session other, none = MPI_T_PVAR_SESSION_NULL, stale;
    Value v;
    int index, count;
    OK(MPI_T_pvar_handle_free(session, &gone));
    CHECK(gone == MPI_T_PVAR_HANDLE_NULL);
    CHECK_CLASS(MPI_T_pvar_read(session, copy, &v), MPI_T_ERR_INVALID_HANDLE);
    CHECK_CLASS(MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &v), MPI_T_ERR_INVALID_HANDLE);
    CHECK_CLASS(MPI_T_pvar_read(none, h, &v), MPI_T_ERR_INVALID_SESSION);
    CHECK_CLASS(MPI_T_pvar_read(session, h, NULL), MPI_T_ERR_INVALID);
    CHECK_CLASS(MPI_T_pvar_start(none, MPI_T_PVAR_ALL_HANDLES), MPI_T_ERR_INVALID_SESSION);
    OK(MPI_T_pvar_session_create(&other));
    stale = other;
    CHECK_CLASS(MPI_T_pvar_read(other, h, &v), MPI_T_ERR_INVALID_HANDLE);
    CHECK_CLASS(MPI_T_pvar_handle_alloc(other, 100000, NULL, &copy, &count), MPI_T_ERR_INVALID_INDEX);
    OK(MPI_T_pvar_get_index("eager_sent", MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_handle_alloc(other, index, NULL, &copy, &count));
    OK(MPI_T_pvar_session_free(&other));
    CHECK(other == MPI_T_PVAR_SESSION_NULL);
    CHECK_CLASS(MPI_T_pvar_read(stale, copy, &v), MPI_T_ERR_INVALID_SESSION);
    CHECK_CLASS(MPI_T_pvar_read(session, copy, &v), MPI_T_ERR_INVALID_HANDLE);
    CHECK_CLASS(MPI_T_pvar_session_free(&stale), MPI_T_ERR_INVALID_SESSION);
}

int main(int argc, char **argv) {
    MPI_T_pvar_handle kept;
    Value last;
    int provided;
    /* Where lines of the cache are slow messages may cost less. */
    setenv("KW_COLL", "barrier - - one shm any shm; allreduce - - one shm any shm", 1);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!STRICT) {
        MPI_T_finalize();
        return check_end();
    }
    OK(MPI_T_pvar_session_create(&session));
    kept = counter("eager_sent");
    OK(MPI_T_pvar_start(session, kept));
    meet();
    exact_counts();
    shm_regions();
    meet();
    long_messages();
    meet();
    unexpected();
    meet();
    queues();
    wrong();
    meet();
    last = value(kept);
    MPI_Comm_free(&check_comm);
    MPI_Finalize();
    /* What was counted stays readable; nothing counts any more. */
    CHECK(value(kept) >= last && last > 0);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return check_failed != 0;
}
