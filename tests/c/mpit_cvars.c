// run: n=2 timeout=60
/* Control variables take effect: before MPI_Init all that can be set, afterwards those that may. */
#include "check.h"

static MPI_T_cvar_handle open_cvar(const char *name) {
    MPI_T_cvar_handle h = MPI_T_CVAR_HANDLE_NULL;
    int index = -1, count;
    CHECK_EQ(MPI_T_cvar_get_index(name, &index), MPI_SUCCESS);
    CHECK_EQ(MPI_T_cvar_handle_alloc(index, NULL, &h, &count), MPI_SUCCESS);
    return h;
}

static MPI_Count number(const char *name) {
    MPI_T_cvar_handle h = open_cvar(name);
    MPI_Count n = -99;
    CHECK_EQ(MPI_T_cvar_read(h, &n), MPI_SUCCESS);
    MPI_T_cvar_handle_free(&h);
    return n;
}

static int set_number(const char *name, MPI_Count n) {
    MPI_T_cvar_handle h = open_cvar(name);
    int code = MPI_T_cvar_write(h, &n);
    MPI_T_cvar_handle_free(&h);
    return code;
}

static int set_item(const char *name, int item) {
    MPI_T_cvar_handle h = open_cvar(name);
    int code = MPI_T_cvar_write(h, &item), now = -1;
    if (code == MPI_SUCCESS) {
        CHECK_EQ(MPI_T_cvar_read(h, &now), MPI_SUCCESS);
        CHECK_EQ(now, item);
    }
    MPI_T_cvar_handle_free(&h);
    return code;
}

static int set_text(const char *name, const char *text) {
    MPI_T_cvar_handle h = open_cvar(name);
    int code = MPI_T_cvar_write(h, text);
    char now[4096] = "";
    if (code == MPI_SUCCESS) {
        CHECK_EQ(MPI_T_cvar_read(h, now), MPI_SUCCESS);
        CHECK(strcmp(now, text) == 0);
    }
    MPI_T_cvar_handle_free(&h);
    return code;
}

/* What a counter counts while `bytes` go to and fro `times` times. */
static unsigned long long counted(const char *name, int times, int bytes) {
    MPI_T_pvar_session s;
    MPI_T_pvar_handle h;
    unsigned long long v = 0;
    int index = -1, count, i;
    char *buf = calloc(1, bytes);
    OK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_session_create(&s));
    OK(MPI_T_pvar_handle_alloc(s, index, NULL, &h, &count));
    meet();
    OK(MPI_T_pvar_start(s, h));
    for (i = 0; i < times; i++)
        if (check_rank == 0) {
            MPI_Send(buf, bytes, MPI_BYTE, 1, 1, check_comm);
            MPI_Recv(buf, bytes, MPI_BYTE, 1, 1, check_comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buf, bytes, MPI_BYTE, 0, 1, check_comm, MPI_STATUS_IGNORE);
            MPI_Send(buf, bytes, MPI_BYTE, 0, 1, check_comm);
        }
    OK(MPI_T_pvar_stop(s, h));
    OK(MPI_T_pvar_read(s, h, &v));
    OK(MPI_T_pvar_session_free(&s));
    meet();
    free(buf);
    return v;
}

static void before_init(void) {
    CHECK_EQ(set_number("KW_SPIN", 33), MPI_SUCCESS);
    CHECK_EQ(number("KW_SPIN"), 33);
    CHECK_EQ(set_number("KW_EAGER_SHM", 1000), MPI_SUCCESS);
    CHECK_EQ(set_number("KW_EAGER_TCP", 1000), MPI_SUCCESS);
    CHECK_EQ(set_number("KW_EAGER_UDP", 1000), MPI_SUCCESS);
    CHECK_EQ(set_number("KW_WATCH", -1), MPI_T_ERR_INVALID);
    CHECK_EQ(set_item("KW_LOG", 17), MPI_T_ERR_INVALID);
    CHECK_EQ(set_text("KW_PATHS", "self,pigeon"), MPI_T_ERR_INVALID);
    CHECK_EQ(set_text("KW_COLL", "this is not a row"), MPI_T_ERR_INVALID);
    CHECK_EQ(set_text("KW_COLL", "allreduce - - any any any doubling"), MPI_SUCCESS);
    CHECK_EQ(set_number("KW_CPUS", 2), MPI_T_ERR_CVAR_SET_NEVER);
    CHECK_EQ(set_text("KW_INTERFACES", "auto"), MPI_SUCCESS);
}

static void inside(void) {
    MPI_T_cvar_handle h = open_cvar("KW_SPIN"), copy = h;
    MPI_Count n;
    /* What was set before MPI_Init holds. */
    CHECK_EQ(number("KW_SPIN"), 33);
    CHECK_EQ(counted("eager_sent", 10, 1000), 10);
    CHECK_EQ(counted("eager_sent", 10, 1001), 0);
    /* What is set now holds from now on. */
    OK(set_number("KW_EAGER_SHM", 5000));
    OK(set_number("KW_EAGER_TCP", 5000));
    OK(set_number("KW_EAGER_UDP", 5000));
    CHECK_EQ(counted("eager_sent", 10, 5000), 10);
    CHECK_EQ(counted("eager_sent", 10, 5001), 0);
    OK(set_item("KW_WRITE", 0));
    CHECK_EQ(counted("write_announced", 10, 6000), 0);
    OK(set_item("KW_SINGLE_COPY", 0));
    CHECK_EQ(counted("get_sent", 10, 1 << 20), 0);
    CHECK_EQ(counted("rndv_sent", 10, 1 << 20), 10);
    OK(set_number("KW_EAGER_SHM", -1));
    CHECK_EQ(number("KW_EAGER_SHM"), -1);
    OK(set_number("KW_SPIN", 0));
    CHECK_EQ(number("KW_SPIN"), 0);
    CHECK_EQ(counted("expected", 50, 8) <= 50, 1);
    OK(set_number("KW_SPIN", 100));
    OK(set_number("KW_WATCH", 20));
    OK(set_item("KW_STATS", 1));
    OK(set_item("KW_STATS", 0));
    /* What is read when MPI starts, or told by mpiexec. */
    CHECK_CLASS(set_text("KW_PATHS", "self,tcp"), MPI_T_ERR_CVAR_SET_NOT_NOW);
    CHECK_CLASS(set_number("KW_CPUS", 2), MPI_T_ERR_CVAR_SET_NEVER);
    /* Ranks agreed on it when they met. */
    CHECK_CLASS(set_text("KW_COLL", ""), MPI_T_ERR_CVAR_SET_NOT_NOW);
    CHECK_CLASS(set_item("KW_WRITE", 2), MPI_T_ERR_INVALID);
    OK(MPI_T_cvar_handle_free(&h));
    CHECK(h == MPI_T_CVAR_HANDLE_NULL);
    CHECK_CLASS(MPI_T_cvar_read(copy, &n), MPI_T_ERR_INVALID_HANDLE);
    CHECK_CLASS(MPI_T_cvar_read(h, &n), MPI_T_ERR_INVALID_HANDLE);
    CHECK_CLASS(MPI_T_cvar_handle_alloc(-1, NULL, &h, NULL), MPI_T_ERR_INVALID_INDEX);
    CHECK_CLASS(MPI_T_cvar_handle_alloc(0, NULL, NULL, NULL), MPI_T_ERR_INVALID);
}

/* Another algorithm, chosen before MPI_Init, gives the same result. */
static void rows(void) {
    int mine = check_rank + 1, sum = 0;
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, check_comm));
    CHECK_EQ(sum, check_size * (check_size + 1) / 2);
}

/* The event thread is switched off and on again while something goes on. */
static void event_thread(void) {
    const int bytes = 1 << 20;
    char *buf = calloc(1, bytes);
    int on, i;
    for (i = 0; i < 20; i++) {
        MPI_Request r;
        int flag = 0;
        on = i % 2;
        if (check_rank == 0) {
            MPI_Isend(buf, bytes, MPI_BYTE, 1, 3, check_comm, &r);
            OK(set_item("KW_EVENT_THREAD", on));
        } else {
            OK(set_item("KW_EVENT_THREAD", !on));
            MPI_Irecv(buf, bytes, MPI_BYTE, 0, 3, check_comm, &r);
        }
        MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
        if (!flag) MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    free(buf);
}

int main(int argc, char **argv) {
    int level;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    if (!STRICT) return 0;
    before_init();
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    inside();
    rows();
    event_thread();
    meet();
    MPI_Comm_free(&check_comm);
    MPI_Finalize();
    CHECK_EQ(number("KW_SPIN"), 100);
    CHECK_EQ(set_number("KW_SPIN", 5), MPI_T_ERR_CVAR_SET_NOT_NOW);
    CHECK_EQ(MPI_T_finalize(), MPI_SUCCESS);
    return check_failed != 0;
}
