// run: n=1,2,3 timeout=60
/* Making windows, and what can be asked of them (MPI 5.0, 12.2): memory, attributes, group, name, hints. */
#include "rma.h"

/* The headers of other ABIs that apigen writes do not have them. */
MPI_Fint MPI_Win_c2f(MPI_Win win);
MPI_Win MPI_Win_f2c(MPI_Fint number);

static int *attribute(MPI_Win win, int key) {
    int *value = NULL, found = 0;
    OK(MPI_Win_get_attr(win, key, &value, &found));
    CHECK_EQ(found, 1);
    return value;
}

static void attributes(MPI_Win win, void *base, MPI_Aint size, int unit, int flavor) {
    CHECK((void *)attribute(win, MPI_WIN_BASE) == base);
    CHECK_EQ(*(MPI_Aint *)(void *)attribute(win, MPI_WIN_SIZE), size);
    CHECK_EQ(*attribute(win, MPI_WIN_DISP_UNIT), unit);
    CHECK_EQ(*attribute(win, MPI_WIN_CREATE_FLAVOR), flavor);
    CHECK_EQ(*attribute(win, MPI_WIN_MODEL), MPI_WIN_UNIFIED);
}

static void group(MPI_Win win, MPI_Comm comm) {
    MPI_Group own, all;
    int same;
    OK(MPI_Win_get_group(win, &own));
    OK(MPI_Comm_group(comm, &all));
    OK(MPI_Group_compare(own, all, &same));
    CHECK_EQ(same, MPI_IDENT);
    OK(MPI_Group_free(&own));
    OK(MPI_Group_free(&all));
}

static void created(void) {
    long memory[8];
    MPI_Win win = win_of(check_comm, memory, sizeof memory, sizeof *memory);
    attributes(win, memory, sizeof memory, sizeof *memory, MPI_WIN_FLAVOR_CREATE);
    group(win, check_comm);
    CHECK(MPI_Win_f2c(MPI_Win_c2f(win)) == win);
    CHECK(MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) == MPI_WIN_NULL);
    win_free(&win);
    /* Each rank has another size and unit; one has none. */
    MPI_Aint size = check_rank == 0 ? 0 : 16 * check_rank;
    OK(MPI_Win_create(check_rank == 0 ? NULL : memory, size, 1 + check_rank, MPI_INFO_NULL, check_comm, &win));
    attributes(win, check_rank == 0 ? NULL : memory, size, 1 + check_rank, MPI_WIN_FLAVOR_CREATE);
    win_free(&win);
#if MPI_VERSION >= 4
    OK(MPI_Win_create_c(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_SELF, &win));
    attributes(win, memory, sizeof memory, 4, MPI_WIN_FLAVOR_CREATE);
    group(win, MPI_COMM_SELF);
    win_free(&win);
#endif
}

static void allocated(void) {
    char *memory = NULL;
    MPI_Win win = win_allocated(check_comm, &memory, 1000, 1);
    attributes(win, memory, 1000, 1, MPI_WIN_FLAVOR_ALLOCATE);
    memset(memory, check_rank, 1000);
    win_free(&win);
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096"));
    OK(MPI_Win_allocate(check_rank == 0 ? 0 : 100, 2, info, check_comm, &memory, &win));
    if (STRICT) CHECK_EQ((uintptr_t)memory % 4096, 0);
    attributes(win, memory, check_rank == 0 ? 0 : 100, 2, MPI_WIN_FLAVOR_ALLOCATE);
    win_free(&win);
    OK(MPI_Info_free(&info));
#if MPI_VERSION >= 4
    OK(MPI_Win_allocate_c(64, 8, MPI_INFO_NULL, check_comm, &memory, &win));
    attributes(win, memory, 64, 8, MPI_WIN_FLAVOR_ALLOCATE);
    win_free(&win);
#endif
}

static void dynamic(void) {
    MPI_Win win;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, check_comm, &win));
    attributes(win, MPI_BOTTOM, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
    group(win, check_comm);
    win_free(&win);
}

/* The own memory of each kind of window can be asked for. */
static void queried(void) {
    char *memory = NULL, *found = NULL;
    MPI_Aint size;
    int unit;
    MPI_Win win;
    OK(MPI_Win_allocate_shared(24, 8, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &win));
    attributes(win, memory, 24, 8, MPI_WIN_FLAVOR_SHARED);
    OK(MPI_Win_shared_query(win, 0, &size, &unit, &found));
    CHECK(found == memory && size == 24 && unit == 8);
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &size, &unit, &found));
    CHECK(found == memory && size == 24 && unit == 8);
#if MPI_VERSION >= 4
    MPI_Aint wide;
    OK(MPI_Win_shared_query_c(win, 0, &size, &wide, &found));
    CHECK(found == memory && size == 24 && wide == 8);
#endif
    win_free(&win);
    if (!STRICT) return;
    win = win_allocated(check_comm, &memory, 24, 8);
    OK(MPI_Win_shared_query(win, check_rank, &size, &unit, &found));
    CHECK(found == memory && size == 24 && unit == 8);
    win_free(&win);
}

static void names(void) {
    char name[MPI_MAX_OBJECT_NAME], *memory;
    int length = -1;
    MPI_Win win = win_allocated(check_comm, &memory, 8, 1);
    OK(MPI_Win_get_name(win, name, &length));
    CHECK_EQ(length, 0);
    OK(MPI_Win_set_name(win, "temperatures"));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(strcmp(name, "temperatures") == 0 && length == 12);
    win_free(&win);
#if MPI_VERSION >= 4
    OK(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
    CHECK(strcmp(name, "MPI_WIN_NULL") == 0);
#endif
}

static int hint_is(MPI_Win win, const char *key, const char *value) {
    char got[MPI_MAX_INFO_VAL] = "";
    int found, length = sizeof got;
    MPI_Info info;
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get_string(info, key, &length, got, &found));
    OK(MPI_Info_free(&info));
    return found && strcmp(got, value) == 0;
}

static void hints(void) {
    char *memory;
    MPI_Info info;
    MPI_Win win;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "true"));
    OK(MPI_Info_set(info, "accumulate_ordering", "none"));
    OK(MPI_Info_set(info, "same_size", "true"));
    OK(MPI_Info_set(info, "no_such_hint", "true"));
    OK(MPI_Win_allocate(16, 4, info, check_comm, &memory, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Info_free(&info));
    CHECK(hint_is(win, "no_locks", "true"));
    if (STRICT) {
        CHECK(hint_is(win, "accumulate_ordering", "none"));
        CHECK(hint_is(win, "same_disp_unit", "false"));
        CHECK(hint_is(win, "accumulate_ops", "same_op_no_op"));
        CHECK(!hint_is(win, "no_such_hint", "true"));
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "accumulate_ordering", "rar,waw"));
        OK(MPI_Info_set(info, "accumulate_ops", "nonsense"));
        OK(MPI_Win_set_info(win, info));
        OK(MPI_Info_free(&info));
        CHECK(hint_is(win, "accumulate_ordering", "rar,waw"));
        CHECK(hint_is(win, "accumulate_ops", "same_op_no_op"));
        CHECK_CLASS(MPI_Win_set_info(win, MPI_INFO_NULL), MPI_ERR_INFO);
    }
    win_free(&win);
}

static int deleted;
static int on_delete(MPI_Win win, int key, void *value, void *extra) {
    (void)key, (void)extra;
    /* The window is there still. */
    MPI_Group group;
    OK(MPI_Win_get_group(win, &group));
    MPI_Group_free(&group);
    deleted += *(int *)value;
    return MPI_SUCCESS;
}

static void own_attributes(void) {
    int key, value = 5, found, *got;
    char *memory;
    MPI_Win win = win_allocated(check_comm, &memory, 8, 1);
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &key, NULL));
    OK(MPI_Win_get_attr(win, key, &got, &found));
    CHECK_EQ(found, 0);
    OK(MPI_Win_set_attr(win, key, &value));
    OK(MPI_Win_get_attr(win, key, &got, &found));
    CHECK(found && got == &value);
    OK(MPI_Win_delete_attr(win, key));
    CHECK_EQ(deleted, 5);
    OK(MPI_Win_set_attr(win, key, &value));
    win_free(&win);
    CHECK_EQ(deleted, 10);
    OK(MPI_Win_free_keyval(&key));
}

/* Many windows at once, and one after the other; of a part of the ranks, in another order. */
static void many(void) {
    enum { MANY = 50 };
    static int memory[MANY];
    MPI_Win wins[MANY];
    MPI_Comm turned;
    int i, round, rank, size;
    OK(MPI_Comm_split(check_comm, check_rank % 2, -check_rank, &turned));
    OK(MPI_Comm_rank(turned, &rank));
    OK(MPI_Comm_size(turned, &size));
    for (round = 0; round < 3; round++) {
        for (i = 0; i < MANY; i++) wins[i] = win_of(i % 2 ? turned : check_comm, &memory[i], sizeof(int), sizeof(int));
        for (i = 0; i < MANY; i++) {
            int me = i % 2 ? rank : check_rank, n = i % 2 ? size : check_size, value = 1000 * i + me;
            OK(MPI_Win_fence(0, wins[i]));
            OK(MPI_Put(&value, 1, MPI_INT, (me + 1) % n, 0, 1, MPI_INT, wins[i]));
            OK(MPI_Win_fence(0, wins[i]));
            CHECK_EQ(memory[i], 1000 * i + (me + n - 1) % n);
            OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, wins[i]));
        }
        for (i = MANY - 1; i >= 0; i--) win_free(&wins[i]);
    }
    OK(MPI_Comm_free(&turned));
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(check_comm, MPI_ERRORS_RETURN);
    created();
    allocated();
    dynamic();
    queried();
    names();
    hints();
    own_attributes();
    many();
    return check_end();
}
