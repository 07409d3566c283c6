// run: n=2 timeout=60 flags=-pthread
/* Events reach the functions that a tool registered: each once, in order, with its elements, time stamp and source; what is
 * required of the function is never more than it promised; nothing comes after it was taken away. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

enum { N = 20 };

typedef struct { int peer, context, tag; MPI_Count bytes; } Message;

static pthread_t main_thread;
static atomic_int calls, wrong_order, too_unsafe, elsewhere, freed, word = 77;
static int first_tag;
static Message seen[N];
static MPI_Count last_time;
static MPI_T_event_instance kept;

static int find(const char *name) {
    int index = -1;
    OK(MPI_T_event_get_index(name, &index));
    return index;
}

static MPI_T_event_registration listen_to(const char *name) {
    MPI_T_event_registration r = 0;
    OK(MPI_T_event_handle_alloc(find(name), NULL, MPI_INFO_NULL, &r));
    return r;
}

/* Promises nothing, so it is called only where it may call MPI. */
static void on_unexpected(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety, void *data) {
    Message m;
    MPI_Count stamp = 0, now = 0, bytes = 0;
    int source = -1, tag = -1, flag, inited;
    if (safety != MPI_T_CB_REQUIRE_NONE || !pthread_equal(pthread_self(), main_thread)) too_unsafe++;
    CHECK(data == &word);
    memset(&m, 0, sizeof m);
    OK(MPI_T_event_copy(e, &m));
    OK(MPI_T_event_read(e, 2, &tag));
    OK(MPI_T_event_read(e, 3, &bytes));
    CHECK(tag == m.tag && bytes == m.bytes);
    CHECK_CLASS(MPI_T_event_read(e, 4, &tag), MPI_T_ERR_INVALID_INDEX);
    OK(MPI_T_event_get_source(e, &source));
    CHECK_EQ(source, 0);
    OK(MPI_T_event_get_timestamp(e, &stamp));
    OK(MPI_T_source_get_timestamp(source, &now));
    CHECK(last_time <= stamp && stamp <= now);
    last_time = stamp;
    kept = e;
    if (m.tag < first_tag || m.tag >= first_tag + N) return; /* meet's own */
    /* MPI may be called: the message waits still, or was received meanwhile. */
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
    if (m.tag != first_tag + calls) wrong_order++;
    if (calls < N) seen[calls] = m;
    calls++;
}

static void on_anything(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety, void *data) {
    int element = -1, source;
    MPI_Count stamp;
    CHECK_EQ(MPI_T_event_read(e, 0, &element), MPI_SUCCESS);
    CHECK_EQ(MPI_T_event_get_source(e, &source), MPI_SUCCESS);
    CHECK_EQ(MPI_T_event_get_timestamp(e, &stamp), MPI_SUCCESS);
    if (!pthread_equal(pthread_self(), main_thread)) {
        elsewhere++;
        if (safety < MPI_T_CB_REQUIRE_THREAD_SAFE) too_unsafe++;
    }
    atomic_fetch_add((atomic_int *)data, 1);
}

static void on_free(MPI_T_event_registration r, MPI_T_cb_safety safety, void *data) {
    CHECK(data == &freed);
    freed++;
}

/* Messages come before their receives. */
static void storm(int tag) {
    char buf[8] = "";
    int i;
    meet(); /* the other one listens */
    if (check_rank == 0) {
        for (i = 0; i < N; i++) MPI_Send(buf, i % 8, MPI_BYTE, 1, tag + i, check_comm);
        meet();
        meet();
    } else {
        MPI_Probe(0, tag + N - 1, check_comm, MPI_STATUS_IGNORE);
        for (i = 0; i < N; i++) MPI_Recv(buf, 8, MPI_BYTE, 0, tag + i, check_comm, MPI_STATUS_IGNORE);
        meet();
        meet();
    }
}

static void unexpected(void) {
    MPI_T_event_registration r = listen_to("unexpected_message"), other = listen_to("unexpected_message");
    atomic_int others = 0;
    int i;
    OK(MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &word, on_unexpected));
    OK(MPI_T_event_register_callback(other, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, &others, on_anything));
    first_tag = 100;
    storm(100);
    if (check_rank == 1) {
        CHECK_EQ(calls, N);
        CHECK(others >= N);
        for (i = 0; i < N && i < calls; i++)
            CHECK(seen[i].peer == 0 && seen[i].tag == 100 + i && seen[i].bytes == i % 8);
        /* An instance is good only while the function runs. */
        CHECK_CLASS(MPI_T_event_get_source(kept, &i), MPI_T_ERR_INVALID_HANDLE);
    } else
        CHECK_EQ(calls, 0);
    CHECK_EQ(wrong_order, 0);
    /* Without its function a registration hears nothing. */
    OK(MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, NULL));
    OK(MPI_T_event_handle_free(other, &freed, on_free));
    CHECK_EQ(freed, 1);
    i = others;
    first_tag = 200;
    storm(200);
    CHECK_EQ(calls, check_rank == 1 ? N : 0);
    CHECK_EQ(others, i);
    OK(MPI_T_event_handle_free(r, NULL, NULL));
    CHECK_CLASS(MPI_T_event_handle_free(r, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
}

/* A long message is offered before it goes. */
static void rendezvous(void) {
    MPI_T_event_registration r = listen_to("rendezvous_begun");
    atomic_int begun = 0;
    const int bytes = 4 << 20;
    char *buf = calloc(1, bytes);
    int i;
    OK(MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, &begun, on_anything));
    meet();
    for (i = 0; i < 3; i++)
        if (check_rank == 0)
            MPI_Ssend(buf, bytes, MPI_BYTE, 1, 5, check_comm);
        else
            MPI_Recv(buf, bytes, MPI_BYTE, 0, 5, check_comm, MPI_STATUS_IGNORE);
    meet();
    CHECK_EQ(begun, check_rank == 0 ? 3 : 0);
    OK(MPI_T_event_handle_free(r, NULL, NULL));
    free(buf);
}

/* While the program computes, the event thread takes over. */
static void takeover(void) {
    MPI_T_event_registration r = listen_to("event_takeover");
    atomic_int times = 0;
    MPI_Request req;
    int buf = 0, i;
    OK(MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, &times, on_anything));
    meet();
    MPI_Irecv(&buf, 1, MPI_INT, check_rank, 6, check_comm, &req);
    for (i = 0; i < 20000 && times == 0; i++) usleep(1000);
    CHECK(times > 0);
    MPI_Send(&i, 1, MPI_INT, check_rank, 6, check_comm);
    MPI_Wait(&req, MPI_STATUS_IGNORE);
    OK(MPI_T_event_handle_free(r, NULL, NULL));
}

enum { WORD = 9, HEARD, LAST };

/* Sends until the other side has heard one while it was outside MPI. */
static void keep_sending(void) {
    int i, heard = 0, none = 0;
    for (i = 0; i < 20000 && !heard; i++) {
        MPI_Send(&none, 1, MPI_INT, 1, WORD, check_comm);
        MPI_Iprobe(1, HEARD, check_comm, &heard, MPI_STATUS_IGNORE);
        usleep(1000);
    }
    MPI_Recv(&none, 1, MPI_INT, 1, HEARD, check_comm, MPI_STATUS_IGNORE);
    MPI_Send(&none, 1, MPI_INT, 1, LAST, check_comm);
}

/* What comes while no thread calls MPI the event thread tells, from its own thread, to a function that promises enough. */
static void from_its_own_thread(void) {
    MPI_T_event_registration r = listen_to("unexpected_message");
    atomic_int times = 0;
    MPI_Status status;
    MPI_Request req;
    int i, none = 0, posted;
    elsewhere = 0;
    OK(MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, &times, on_anything));
    meet();
    if (check_rank == 0)
        keep_sending();
    if (check_rank == 1) {
        MPI_Irecv(&posted, 1, MPI_INT, 1, LAST, check_comm, &req);
        for (i = 0; i < 20000 && elsewhere == 0; i++) usleep(1000);
        CHECK(elsewhere > 0);
        MPI_Send(&none, 1, MPI_INT, 1, LAST, check_comm);
        MPI_Wait(&req, MPI_STATUS_IGNORE);
        MPI_Send(&none, 1, MPI_INT, 0, HEARD, check_comm);
        do
            MPI_Recv(&none, 1, MPI_INT, 0, MPI_ANY_TAG, check_comm, &status);
        while (status.MPI_TAG != LAST);
    }
    meet();
    OK(MPI_T_event_handle_free(r, NULL, NULL));
}

static void on_dropped(MPI_Count count, MPI_T_event_registration r, int source, MPI_T_cb_safety safety, void *data) {
    CHECK(count > 0 && source == 0);
    atomic_fetch_add((atomic_int *)data, (int)count);
}

/* More events than are kept: what comes and what is dropped make up all. They pile up because the function promises nothing,
 * and the receiving rank stays in one call. */
static void dropped(void) {
    enum { MANY = 6000 };
    MPI_T_event_registration r = listen_to("unexpected_message");
    static atomic_int heard;
    int i, buf = 0;
    OK(MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &heard, on_anything));
    OK(MPI_T_event_set_dropped_handler(r, on_dropped));
    heard = 0;
    meet();
    if (check_rank == 0) {
        for (i = 0; i <= MANY; i++) MPI_Send(&i, 1, MPI_INT, 1, i < MANY ? 7 : 8, check_comm);
    } else {
        MPI_Recv(&buf, 1, MPI_INT, 0, 8, check_comm, MPI_STATUS_IGNORE);
        for (i = 0; i < MANY; i++) MPI_Recv(&buf, 1, MPI_INT, 0, 7, check_comm, MPI_STATUS_IGNORE);
        /* Both functions add to the same word. */
        CHECK(heard >= MANY);
    }
    OK(MPI_T_event_set_dropped_handler(r, NULL));
    OK(MPI_T_event_handle_free(r, NULL, NULL));
    meet();
}

static void wrong(void) {
    MPI_T_event_registration r = listen_to("peer_lost"), none = 0;
    MPI_Info info;
    int i;
    CHECK_CLASS(MPI_T_event_handle_alloc(1000, NULL, MPI_INFO_NULL, &none), MPI_T_ERR_INVALID_INDEX);
    CHECK_CLASS(MPI_T_event_get_index("nothing", &i), MPI_T_ERR_INVALID_NAME);
    CHECK_CLASS(MPI_T_event_register_callback(none, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_anything),
                MPI_T_ERR_INVALID_HANDLE);
    CHECK_CLASS(MPI_T_event_register_callback(r, (MPI_T_cb_safety)5, MPI_INFO_NULL, NULL, on_anything), MPI_T_ERR_INVALID);
    CHECK_CLASS(MPI_T_event_callback_get_info(r, MPI_T_CB_REQUIRE_NONE, &info), MPI_T_ERR_INVALID);
    OK(MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_anything));
    OK(MPI_T_event_callback_get_info(r, MPI_T_CB_REQUIRE_NONE, &info));
    OK(MPI_Info_free(&info));
    OK(MPI_T_event_handle_get_info(r, &info));
    OK(MPI_T_event_handle_set_info(r, info));
    OK(MPI_Info_free(&info));
    CHECK_CLASS(MPI_T_event_handle_set_info(none, MPI_INFO_NULL), MPI_T_ERR_INVALID_HANDLE);
    OK(MPI_T_event_handle_free(r, NULL, NULL));
}

/* A function frees its own registration: it is never called again, and the farewell comes after it has returned. */
static MPI_T_event_registration once;
static atomic_int once_calls, inside_once, farewells;

static void on_farewell(MPI_T_event_registration r, MPI_T_cb_safety safety, void *data) {
    CHECK(!inside_once);
    farewells++;
}

static void on_once(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety, void *data) {
    inside_once = 1;
    once_calls++;
    OK(MPI_T_event_handle_free(r, NULL, on_farewell));
    CHECK_EQ(farewells, 0);
    inside_once = 0;
}

static void frees_itself(void) {
    once = listen_to("unexpected_message");
    OK(MPI_T_event_register_callback(once, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_once));
    storm(300);
    if (check_rank == 1) CHECK_EQ(once_calls, 1);
    CHECK_EQ(farewells, once_calls);
}

int main(int argc, char **argv) {
    int level;
    if (!STRICT) return 0;
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &level);
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    main_thread = pthread_self();
    meet();
    unexpected();
    rendezvous();
    takeover();
    from_its_own_thread();
    dropped();
    frees_itself();
    wrong();
    CHECK_EQ(too_unsafe, 0);
    meet();
    MPI_T_finalize();
    return check_end();
}
