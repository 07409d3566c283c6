// run: n=2 timeout=120 flags=-pthread abi=one
/* Threads use the tool interface while others communicate: sessions, handles, settings and events come and go; what one thread's
 * session shows is not touched by another's. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { TOOLS = 4 };

static atomic_int done, heard, rounds[TOOLS];

static void on_event(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety, void *data) {
    int peer = -1;
    CHECK_EQ(MPI_T_event_read(e, 0, &peer), MPI_SUCCESS);
    CHECK(peer >= 0 && peer < check_size);
    heard++;
}

static void *tool(void *arg) {
    atomic_int *mine = arg;
    while (!done || *mine < 3) {
        MPI_T_pvar_session s;
        MPI_T_pvar_handle h;
        MPI_T_cvar_handle c;
        MPI_T_event_registration r;
        MPI_Count spin = *mine % 2 ? 0 : 60;
        unsigned long long a = 0, b = 0;
        int index, count, provided;
        CHECK_EQ(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
        CHECK_EQ(MPI_T_pvar_get_index("eager_sent", MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
        CHECK_EQ(MPI_T_pvar_session_create(&s), MPI_SUCCESS);
        CHECK_EQ(MPI_T_pvar_handle_alloc(s, index, NULL, &h, &count), MPI_SUCCESS);
        CHECK_EQ(MPI_T_pvar_start(s, h), MPI_SUCCESS);
        CHECK_EQ(MPI_T_event_get_index("unexpected_message", &index), MPI_SUCCESS);
        CHECK_EQ(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &r), MPI_SUCCESS);
        CHECK_EQ(MPI_T_event_register_callback(r, *mine % 2 ? MPI_T_CB_REQUIRE_NONE : MPI_T_CB_REQUIRE_THREAD_SAFE,
                                               MPI_INFO_NULL, NULL, on_event), MPI_SUCCESS);
        CHECK_EQ(MPI_T_cvar_get_index("KW_SPIN", &index), MPI_SUCCESS);
        CHECK_EQ(MPI_T_cvar_handle_alloc(index, NULL, &c, &count), MPI_SUCCESS);
        CHECK_EQ(MPI_T_cvar_write(c, &spin), MPI_SUCCESS);
        CHECK_EQ(MPI_T_pvar_read(s, h, &a), MPI_SUCCESS);
        CHECK_EQ(MPI_T_pvar_read(s, h, &b), MPI_SUCCESS);
        CHECK(b >= a);
        CHECK_EQ(MPI_T_pvar_stop(s, h), MPI_SUCCESS);
        CHECK_EQ(MPI_T_pvar_read(s, h, &a), MPI_SUCCESS);
        CHECK_EQ(MPI_T_pvar_read(s, h, &b), MPI_SUCCESS);
        CHECK_EQ(b, a);
        CHECK_EQ(MPI_T_event_handle_free(r, NULL, NULL), MPI_SUCCESS);
        CHECK_EQ(MPI_T_cvar_handle_free(&c), MPI_SUCCESS);
        CHECK_EQ(MPI_T_pvar_session_free(&s), MPI_SUCCESS);
        CHECK_EQ(MPI_T_finalize(), MPI_SUCCESS);
        (*mine)++;
        usleep(1000); /* the lock is for those who communicate */
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[TOOLS];
    int i, k, buf[64], provided;
    if (!STRICT) return 0;
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    for (i = 0; i < TOOLS; i++) pthread_create(&threads[i], NULL, tool, &rounds[i]);
    for (k = 0; k < 100; k++) {
        MPI_Request req[64];
        for (i = 0; i < 64; i++) MPI_Isend(&k, 1, MPI_INT, 1 - check_rank, i, check_comm, &req[i]);
        for (i = 63; i >= 0; i--) {
            MPI_Recv(&buf[i], 1, MPI_INT, 1 - check_rank, i, check_comm, MPI_STATUS_IGNORE);
            CHECK_EQ(buf[i], k);
        }
        MPI_Waitall(64, req, MPI_STATUSES_IGNORE);
    }
    meet();
    done = 1;
    for (i = 0; i < TOOLS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(rounds[i] >= 3);
    }
    meet();
    CHECK_EQ(MPI_T_finalize(), MPI_SUCCESS);
    CHECK_EQ(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
    return check_end();
}
