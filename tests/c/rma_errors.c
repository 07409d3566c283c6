// run: n=2,3 timeout=60
/* Errors of windows (MPI 5.0, 12.6): the class, and whose error handler is asked. What is wrong on one rank when a window is
 * made, all ranks hear of. */
#include "rma.h"

static int called, last_code;
static MPI_Win last_win;
static int comm_called;

static void on_error(MPI_Win *win, int *code, ...) { called++, last_code = *code, last_win = *win; }
static void on_comm_error(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code, comm_called++; }

static void handlers(void) {
    char *memory;
    MPI_Errhandler own, found;
    MPI_Win win, none = MPI_WIN_NULL;
    OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, check_comm, &memory, &win));
    OK(MPI_Win_get_errhandler(win, &found));
    CHECK(found == MPI_ERRORS_ARE_FATAL);
    OK(MPI_Errhandler_free(&found));
    OK(MPI_Win_create_errhandler(on_error, &own));
    OK(MPI_Win_set_errhandler(win, own));
    OK(MPI_Win_get_errhandler(win, &found));
    CHECK(found == own);
    OK(MPI_Errhandler_free(&found));
    OK(MPI_Errhandler_free(&own));
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, check_size, 0, win), MPI_ERR_RANK);
    CHECK(called == 1 && last_win == win);
    CHECK_EQ(check_class(last_code), MPI_ERR_RANK);
    OK(MPI_Win_call_errhandler(win, MPI_ERR_OTHER));
    CHECK(called == 2 && last_code == MPI_ERR_OTHER);
    CHECK_EQ(comm_called, 0);
    /* The sentence names the call, the rank and the window. */
    if (STRICT) {
        char text[MPI_MAX_ERROR_STRING], rank[32];
        int length, code;
        OK(MPI_Win_set_name(win, "grid"));
        code = MPI_Win_unlock(0, win);
        OK(MPI_Error_string(code, text, &length));
        snprintf(rank, sizeof rank, "rank %d", check_rank);
        if (!strstr(text, "MPI_Win_unlock") || !strstr(text, "'grid'") || !strstr(text, rank)) FAILED("the error says: %s", text);
        called = 2;
    }
    win_free(&win);
    CHECK_EQ(called, 2);
    /* No handler but that of all. */
    if (STRICT) {
        CHECK_CLASS(MPI_Win_free(&none), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_WIN);
    }
}

/* An argument of one rank is wrong: no rank has a window, and all have the error. */
static void making(void) {
    char memory[64];
    int bad = check_size - 1, me = check_rank == bad;
    void *base;
    MPI_Win win = MPI_WIN_NULL;
    CHECK_CLASS(MPI_Win_create(memory, me ? -1 : 8, 1, MPI_INFO_NULL, check_comm, &win), MPI_ERR_SIZE);
    CHECK(win == MPI_WIN_NULL);
    CHECK_CLASS(MPI_Win_create(memory, 8, me ? 0 : 1, MPI_INFO_NULL, check_comm, &win), MPI_ERR_DISP);
    CHECK_CLASS(MPI_Win_create(memory, 8, me ? -4 : 1, MPI_INFO_NULL, check_comm, &win), MPI_ERR_DISP);
    CHECK_CLASS(MPI_Win_create(me ? NULL : memory, 8, 1, MPI_INFO_NULL, check_comm, &win), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Win_allocate(me ? -1 : 8, 1, MPI_INFO_NULL, check_comm, &base, &win), MPI_ERR_SIZE);
    CHECK_CLASS(MPI_Win_allocate(me ? (MPI_Aint)1 << 60 : 8, 1, MPI_INFO_NULL, check_comm, &base, &win), MPI_ERR_NO_MEM);
    CHECK_CLASS(MPI_Win_allocate_shared(8, 0, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win), MPI_ERR_DISP);
    CHECK(win == MPI_WIN_NULL);
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "same_size", "true"));
    CHECK_CLASS(MPI_Win_create(memory, me ? 4 : 8, 1, info, check_comm, &win), MPI_ERR_INFO_VALUE);
    OK(MPI_Info_set(info, "same_size", "false"));
    OK(MPI_Info_set(info, "same_disp_unit", "true"));
    CHECK_CLASS(MPI_Win_create(memory, me ? 4 : 8, me ? 2 : 1, info, check_comm, &win), MPI_ERR_INFO_VALUE);
    MPI_Info freed = info;
    OK(MPI_Info_free(&info));
    CHECK_CLASS(MPI_Win_create_dynamic(me ? freed : MPI_INFO_NULL, check_comm, &win), MPI_ERR_INFO);
    /* And the communicator is as it was. */
    win = win_of(check_comm, memory, 8, 1);
    win_free(&win);
    CHECK_CLASS(MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win), MPI_ERR_COMM);
    MPI_Comm half, between;
    OK(MPI_Comm_split(check_comm, check_rank > 0, 0, &half));
    OK(MPI_Intercomm_create(half, 0, check_comm, check_rank > 0 ? 0 : 1, 0, &between));
    MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, between, &win), MPI_ERR_COMM);
    OK(MPI_Comm_free(&between));
    OK(MPI_Comm_free(&half));
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type) { (void)in, (void)inout, (void)n, (void)type; }

/* Arguments of accesses, in an epoch that allows them. Nothing is written by what is refused. */
static void arguments(void) {
    int memory[4] = {1, 2, 3, 4}, mine[8] = {0}, got[8];
    MPI_Datatype uncommitted, mixed;
    MPI_Op own;
    MPI_Win win = win_of(check_comm, memory, sizeof memory, sizeof(int));
    OK(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &mixed));
    OK(MPI_Type_commit(&mixed));
    OK(MPI_Op_create(add, 1, &own));
    OK(MPI_Win_fence(0, win));
    CHECK_CLASS(MPI_Put(mine, -1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Put(mine, 1, MPI_INT, 0, 0, -1, MPI_INT, win), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Put(mine, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Put(mine, 1, MPI_INT, 0, 0, 1, MPI_DATATYPE_NULL, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Put(mine, 1, uncommitted, 0, 0, 2, MPI_INT, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Get(got, 2, MPI_INT, 0, 0, 1, uncommitted, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Put(NULL, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Put(mine, 1, MPI_INT, check_size, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Put(mine, 1, MPI_INT, -5, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Put(mine, 1, MPI_INT, MPI_ANY_SOURCE, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Put(mine, 1, MPI_INT, 0, -1, 1, MPI_INT, win), MPI_ERR_DISP);
    CHECK_CLASS(MPI_Put(mine, 3, MPI_INT, 0, 0, 2, MPI_INT, win), MPI_ERR_TRUNCATE);
    CHECK_CLASS(MPI_Get(got, 1, MPI_INT, 0, 0, 2, MPI_INT, win), MPI_ERR_TRUNCATE);
    for (int target = 0; target < check_size; target++) {
        CHECK_CLASS(MPI_Put(mine, 1, MPI_INT, target, 4, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
        CHECK_CLASS(MPI_Put(mine, 5, MPI_INT, target, 0, 5, MPI_INT, win), MPI_ERR_RMA_RANGE);
        CHECK_CLASS(MPI_Get(got, 2, MPI_INT, target, 3, 2, MPI_INT, win), MPI_ERR_RMA_RANGE);
        CHECK_CLASS(MPI_Get(got, 1, MPI_INT, target, (MPI_Aint)1 << 62, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
        CHECK_CLASS(MPI_Accumulate(mine, 2, MPI_INT, target, 3, 2, MPI_INT, MPI_SUM, win), MPI_ERR_RMA_RANGE);
        CHECK_CLASS(MPI_Fetch_and_op(mine, got, MPI_LONG, target, 3, MPI_SUM, win), MPI_ERR_RMA_RANGE);
        CHECK_CLASS(MPI_Compare_and_swap(mine, mine + 2, got, MPI_LONG, target, 3, win), MPI_ERR_RMA_RANGE);
    }
    CHECK_CLASS(MPI_Accumulate(mine, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_OP_NULL, win), MPI_ERR_OP);
    CHECK_CLASS(MPI_Accumulate(mine, 1, MPI_INT, 0, 0, 1, MPI_INT, own, win), MPI_ERR_OP);
    CHECK_CLASS(MPI_Accumulate(mine, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win), MPI_ERR_OP);
    CHECK_CLASS(MPI_Accumulate(mine, 1, MPI_FLOAT, 0, 0, 1, MPI_FLOAT, MPI_BAND, win), MPI_ERR_OP);
    CHECK_CLASS(MPI_Accumulate(mine, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_MAXLOC, win), MPI_ERR_OP);
    CHECK_CLASS(MPI_Accumulate(mine, 1, MPI_FLOAT, 0, 0, 1, MPI_INT, MPI_SUM, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Accumulate(mine, 1, mixed, 0, 0, 1, mixed, MPI_REPLACE, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Accumulate(mine, 1, MPI_INT, 0, 0, 2, MPI_INT, MPI_SUM, win), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Get_accumulate(mine, 1, MPI_INT, got, 2, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win), MPI_ERR_TRUNCATE);
    CHECK_CLASS(MPI_Get_accumulate(mine, 1, MPI_INT, mine, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Fetch_and_op(mine, got, mixed, 0, 0, MPI_REPLACE, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Fetch_and_op(mine, got, MPI_INT, 0, 0, own, win), MPI_ERR_OP);
    CHECK_CLASS(MPI_Compare_and_swap(mine, mine + 2, got, MPI_FLOAT, 0, 0, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Compare_and_swap(mine, mine + 2, got, mixed, 0, 0, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Compare_and_swap(mine, mine + 2, mine, MPI_INT, 0, 0, win), MPI_ERR_BUFFER);
    OK(MPI_Win_fence(0, win));
    CHECK(memory[0] == 1 && memory[1] == 2 && memory[2] == 3 && memory[3] == 4);
    CHECK_CLASS(MPI_Win_fence(MPI_MODE_NOCHECK, win), MPI_ERR_ASSERT);
    CHECK_CLASS(MPI_Win_fence(1 << 30, win), MPI_ERR_ASSERT);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_CLASS(MPI_Win_lock(0, 0, 0, win), MPI_ERR_LOCKTYPE);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPRECEDE, win), MPI_ERR_ASSERT);
    CHECK_CLASS(MPI_Win_lock_all(MPI_MODE_NOPUT, win), MPI_ERR_ASSERT);
    CHECK_CLASS(MPI_Win_post(MPI_GROUP_EMPTY, MPI_MODE_NOSUCCEED, win), MPI_ERR_ASSERT);
    CHECK_CLASS(MPI_Win_start(MPI_GROUP_EMPTY, MPI_MODE_NOPUT, win), MPI_ERR_ASSERT);
    CHECK_CLASS(MPI_Win_post(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    CHECK_CLASS(MPI_Win_start(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    win_free(&win);
    OK(MPI_Type_free(&uncommitted));
    OK(MPI_Type_free(&mixed));
    OK(MPI_Op_free(&own));
}

/* Calls that are not allowed now. */
static void epochs(void) {
    int memory[2] = {0, 0}, mine = 1, got, flag, next = (check_rank + 1) % check_size;
    MPI_Group self, others = group_of(check_comm, next, next), wide;
    MPI_Comm part;
    MPI_Win win = win_of(check_comm, memory, sizeof memory, sizeof(int)), small;
    CHECK_CLASS(MPI_Put(&mine, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Get(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Accumulate(&mine, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Fetch_and_op(&mine, &got, MPI_INT, 0, 0, MPI_SUM, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Compare_and_swap(&mine, memory, &got, MPI_INT, 0, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush_local(0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush_local_all(win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC);
    /* Under the lock of one rank, another one's memory is closed. */
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Put(&mine, 1, MPI_INT, check_rank, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush(check_rank, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock(check_rank, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_start(others, 0, win), MPI_ERR_RMA_SYNC);
    /* A lock that is held keeps the window alive. */
    MPI_Win handle = win;
    CHECK_CLASS(MPI_Win_free(&handle), MPI_ERR_RMA_SYNC);
    CHECK(handle == win);
    OK(MPI_Put(&mine, 1, MPI_INT, next, 0, 1, MPI_INT, win));
    OK(MPI_Win_unlock(next, win));
    OK(MPI_Win_lock_all(0, win));
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock(next, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_free(&handle), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_unlock_all(win));
    /* Started for one rank. */
    int before = (check_rank + check_size - 1) % check_size;
    MPI_Group from = group_of(check_comm, before, before);
    OK(MPI_Win_post(from, 0, win));
    CHECK_CLASS(MPI_Win_post(from, 0, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_start(others, 0, win));
    CHECK_CLASS(MPI_Win_start(others, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Put(&mine, 1, MPI_INT, check_rank, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_free(&handle), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    OK(MPI_Group_free(&from));
    /* A group with a rank that is not in the window. */
    OK(MPI_Comm_split(check_comm, check_rank, 0, &part));
    small = win_of(part, memory, sizeof memory, sizeof(int));
    OK(MPI_Comm_group(part, &self));
    OK(MPI_Comm_group(check_comm, &wide));
    CHECK_CLASS(MPI_Win_post(wide, 0, small), MPI_ERR_GROUP);
    CHECK_CLASS(MPI_Win_start(others, 0, small), MPI_ERR_GROUP);
    win_free(&small);
    OK(MPI_Comm_free(&part));
    OK(MPI_Group_free(&self));
    OK(MPI_Group_free(&wide));
    OK(MPI_Group_free(&others));
    win_free(&win);
    CHECK_CLASS(MPI_Win_fence(0, handle), MPI_ERR_WIN);
    CHECK_CLASS(MPI_Win_free(&handle), MPI_ERR_WIN);
    CHECK_CLASS(MPI_Put(&mine, 1, MPI_INT, 0, 0, 1, MPI_INT, handle), MPI_ERR_WIN);
    /* A promise that is not kept. */
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "true"));
    OK(MPI_Win_create(memory, sizeof memory, 1, info, check_comm, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    win_free(&win);
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv) {
    MPI_Errhandler handler;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    OK(MPI_Comm_create_errhandler(on_comm_error, &handler));
    MPI_Comm_set_errhandler(check_comm, handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    handlers();
    if (STRICT) {
        making();
        CHECK(comm_called > 8);
        arguments();
        epochs();
    }
    OK(MPI_Errhandler_free(&handler));
    return check_end();
}
