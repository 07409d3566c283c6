// run: n=2 timeout=60
/* Performance variables of windows: operations and bytes, in reach and by messages, epochs, locks that were waited for.
 * The names are Kittiwake's own, so other libraries have nothing to do here. */
#include "rma.h"

typedef unsigned long long Value;

enum { BYTES = 8 << 10 };

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

static Value value(MPI_T_pvar_handle h) {
    Value v = 0xdead;
    OK(MPI_T_pvar_read(session, h, &v));
    return v;
}

/* Puts and a fetch under fences and locks; `direct`: whether the memory of rank 1 is in reach. */
static void count(MPI_Win win, int direct) {
    MPI_T_pvar_handle near = counter("window_direct"), far = counter("window_sent"), served = counter("window_served");
    MPI_T_pvar_handle near_bytes = aggregate("window_direct_bytes"), far_bytes = aggregate("window_sent_bytes");
    MPI_T_pvar_handle epochs = counter("window_epochs");
    long data[8] = {1, 2, 3, 4, 5, 6, 7, 8}, got, found;
    OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_Win_fence(0, win));
    if (check_rank == 0) OK(MPI_Put(data, 8, MPI_LONG, 1, 0, 8, MPI_LONG, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    if (check_rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
        OK(MPI_Fetch_and_op(data, &got, MPI_LONG, 1, 0, MPI_SUM, win));
        OK(MPI_Compare_and_swap(data, data + 1, &found, MPI_LONG, 1, 1, win));
        OK(MPI_Win_unlock(1, win));
    }
    OK(MPI_Barrier(check_comm));
    Value operations = check_rank == 0 ? 3 : 0, bytes = check_rank == 0 ? 80 : 0;
    CHECK_EQ(value(near), direct ? operations : 0);
    CHECK_EQ(value(near_bytes), direct ? bytes : 0);
    CHECK_EQ(value(far), direct ? 0 : operations);
    CHECK_EQ(value(far_bytes), direct ? 0 : bytes);
    CHECK_EQ(value(served), direct || check_rank == 0 ? 0 : 3);
    CHECK_EQ(value(epochs), check_rank == 0 ? 2 : 1);
    OK(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_T_pvar_handle_free(session, &near));
    OK(MPI_T_pvar_handle_free(session, &far));
    OK(MPI_T_pvar_handle_free(session, &served));
    OK(MPI_T_pvar_handle_free(session, &near_bytes));
    OK(MPI_T_pvar_handle_free(session, &far_bytes));
    OK(MPI_T_pvar_handle_free(session, &epochs));
}

/* A put of some KB and its flush: the data, and one message with what is to be done about it. */
static void messages(MPI_Win win) {
    static char data[BYTES];
    MPI_T_pvar_handle sent = counter("eager_sent");
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_T_pvar_start(session, sent));
    if (check_rank == 0) {
        OK(MPI_Put(data, BYTES, MPI_CHAR, 1, 0, BYTES, MPI_CHAR, win));
        OK(MPI_Win_flush(1, win));
        CHECK_EQ(value(sent), 2);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_T_pvar_handle_free(session, &sent));
}

/* Rank 0 holds the lock of its memory until rank 1 has asked for it: one lock is waited for. */
static void lock_waits(MPI_Win win) {
    MPI_T_pvar_handle waits = counter("window_lock_waits");
    long one = 1;
    OK(MPI_T_pvar_start(session, waits));
    if (check_rank == 0) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Barrier(check_comm));
    if (check_rank == 0) {
        while (value(waits) == 0) {
            int flag;
            OK(MPI_Iprobe(1, 9, check_comm, &flag, MPI_STATUS_IGNORE));
        }
        OK(MPI_Win_unlock(0, win));
    } else {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Put(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Barrier(check_comm));
    CHECK_EQ(value(waits), check_rank == 0);
    OK(MPI_T_pvar_handle_free(session, &waits));
}

int main(int argc, char **argv) {
    long lent[8], *memory;
    int provided, in_reach;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    MPI_Win win = win_of(check_comm, lent, sizeof lent, sizeof *lent);
    count(win, 0);
    lock_waits(win);
    win_free(&win);
    const char *paths = getenv("KW_PATHS");
    if (paths && !strstr(paths, "shm")) {
        static char kept[BYTES];
        win = win_of(check_comm, kept, BYTES, 1);
        messages(win);
        win_free(&win);
    }
    win = win_allocated(check_comm, &memory, sizeof lent, sizeof *lent);
    MPI_Aint bytes = 0;
    int unit;
    void *there = NULL;
    OK(MPI_Win_shared_query(win, 1 - check_rank, &bytes, &unit, &there));
    in_reach = bytes != 0 && !getenv("KW_CHECK"); /* a checked window uses messages */
    count(win, in_reach);
    lock_waits(win);
    win_free(&win);
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    return check_end();
}
