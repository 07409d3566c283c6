// run: n=1,2,4 timeout=60
/* Memory that ranks share (MPI 5.0, 12.2.3): loads, stores and operations of MPI on the same memory; contiguous or not; the
 * memory of windows of MPI_Win_allocate. */
#include "rma.h"

static MPI_Comm near;
static int me, size;

/* The addresses and sizes of all parts, as everybody asks for them. */
static void query(MPI_Win win, int rank, MPI_Aint bytes, int unit, char **base) {
    MPI_Aint got = -1;
    int found = -1;
    OK(MPI_Win_shared_query(win, rank, &got, &found, base));
    CHECK_EQ(got, bytes);
    CHECK_EQ(found, unit);
}

static MPI_Aint bytes_of(int rank) { return rank == 1 ? 0 : 24 + 8 * rank; }

static void parts(int contiguous) {
    char *mine, *base, *last = NULL;
    MPI_Info info;
    MPI_Win win;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "alloc_shared_noncontig", contiguous ? "false" : "true"));
    OK(MPI_Win_allocate_shared(bytes_of(me), 1 + me, info, near, &mine, &win));
    OK(MPI_Info_free(&info));
    for (int r = 0; r < size; r++) {
        query(win, r, bytes_of(r), 1 + r, &base);
        if (r == me) CHECK(base == mine);
        if (contiguous && last) CHECK(base == last);
        last = base + bytes_of(r);
    }
    query(win, MPI_PROC_NULL, bytes_of(0), 1, &base);
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    memset(mine, 10 + me, (size_t)bytes_of(me));
    OK(MPI_Win_sync(win));
    MPI_Barrier(near);
    OK(MPI_Win_sync(win));
    for (int r = 0; r < size; r++) {
        query(win, r, bytes_of(r), 1 + r, &base);
        for (int i = 0; i < bytes_of(r); i++) CHECK_EQ(base[i], 10 + r);
    }
    OK(MPI_Win_unlock_all(win));
    win_free(&win);
}

/* Stores here are seen by MPI_Get there, MPI_Put there by loads here. */
static void both_ways(void) {
    int *mine, *theirs, got = 0, next = (me + 1) % size, round;
    MPI_Aint bytes;
    int unit;
    MPI_Win win;
    OK(MPI_Win_allocate_shared(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, near, &mine, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_shared_query(win, next, &bytes, &unit, &theirs));
    OK(MPI_Win_fence(0, win));
    for (round = 0; round < 20; round++) {
        theirs[0] = 100 * round + me;
        OK(MPI_Win_fence(0, win));
        CHECK_EQ(mine[0], 100 * round + (me + size - 1) % size);
        OK(MPI_Get(&got, 1, MPI_INT, next, 0, 1, MPI_INT, win));
        int value = 7 * round + me;
        OK(MPI_Put(&value, 1, MPI_INT, next, 1, 1, MPI_INT, win));
        OK(MPI_Win_fence(0, win));
        CHECK_EQ(got, 100 * round + me);
        CHECK_EQ(mine[1], 7 * round + (me + size - 1) % size);
        OK(MPI_Win_fence(0, win));
        /* Only now: the target has left the fence that ended the put, and the put may have been a message (KW_CHECK). */
        CHECK_EQ(theirs[1], 7 * round + me);
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    win_free(&win);
}

/* MPI_Win_allocate gives such memory, too, where it can: then it can be asked for. */
static void allocated(void) {
    long *mine, *theirs;
    MPI_Aint bytes;
    int unit, next = (me + 1) % size;
    MPI_Win win = win_allocated(near, &mine, sizeof *mine, sizeof *mine);
    OK(MPI_Win_lock_all(0, win));
    *mine = 5 + me;
    OK(MPI_Win_sync(win));
    MPI_Barrier(near);
    OK(MPI_Win_shared_query(win, next, &bytes, &unit, &theirs));
    if (theirs) {
        CHECK(bytes == sizeof *mine && unit == sizeof *mine);
        CHECK_EQ(*theirs, 5 + next);
    } else {
        CHECK_EQ(bytes, 0);
    }
    OK(MPI_Win_unlock_all(win));
    win_free(&win);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    OK(MPI_Comm_split_type(check_comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near));
    OK(MPI_Comm_rank(near, &me));
    OK(MPI_Comm_size(near, &size));
    MPI_Comm_set_errhandler(near, MPI_ERRORS_RETURN);
    allocated();
    /* Where processes cannot share memory, the error says so. */
    char *base;
    MPI_Win win;
    int code = MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, near, &base, &win);
    if (STRICT && size > 1 && code != MPI_SUCCESS) {
        const char *paths = getenv("KW_PATHS");
        CHECK(paths && !strstr(paths, "shm"));
        CHECK_CLASS(code, MPI_ERR_RMA_SHARED);
    } else {
        OK(code);
        win_free(&win);
        parts(1);
        parts(0);
        both_ways();
    }
    OK(MPI_Comm_free(&near));
    return check_end();
}
