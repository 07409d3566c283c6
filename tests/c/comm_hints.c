/* Hints of communicators (MPI 5.0, 7.4.4) through every kind of duplicate, and buffers attached to communicators that go. */
// run: n=1,2
#include "check.h"
#include <malloc.h>

static const char *const asserts[] = {"mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length",
                                      "mpi_assert_allow_overtaking"};

/* The value of a hint; NULL when there is none. */
static const char *hint(MPI_Comm c, const char *key) {
    static char value[MPI_MAX_INFO_VAL + 1];
    int flag, len = sizeof value;
    MPI_Info used = MPI_INFO_NULL;
    OK(MPI_Comm_get_info(c, &used));
    CHECK(used != MPI_INFO_NULL);
    OK(MPI_Info_get_string(used, key, &len, value, &flag));
    OK(MPI_Info_free(&used));
    return flag ? value : NULL;
}

static int is(MPI_Comm c, const char *key, const char *want) {
    const char *got = hint(c, key);
    return got && strcmp(got, want) == 0;
}

/* A library may leave hints out that it does not use: of others only wrong values are faults. */
static int is_not(MPI_Comm c, const char *key, const char *value) { return !is(c, key, value); }

/* 7.4.2: a duplicate has the hints of the old one; one made with an info object has those instead. */
static void duplicates(MPI_Info info, MPI_Info other) {
    MPI_Comm a, d[5];
    MPI_Request r[3];
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &a));
    OK(MPI_Comm_dup(a, &d[0]));
    OK(MPI_Comm_idup(a, &d[1], &r[0]));
    OK(MPI_Comm_dup_with_info(a, other, &d[2]));
    OK(MPI_Comm_idup_with_info(a, other, &d[3], &r[1]));
    OK(MPI_Comm_idup_with_info(a, MPI_INFO_NULL, &d[4], &r[2]));
    OK(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
    for (int k = 0; k < 4; k++) {
#if STRICT
        CHECK(is(a, asserts[k], "true"));
        CHECK(is(d[0], asserts[k], "true") && is(d[1], asserts[k], "true"));
        CHECK(is(d[2], asserts[k], "false") == (k == 0) && is(d[3], asserts[k], "false") == (k == 0));
#endif
        for (int i = 2; i < 5; i++) CHECK(is_not(d[i], asserts[k], "true"));
        CHECK(is_not(MPI_COMM_WORLD, asserts[k], "true"));
    }
    /* No hint that the library does not understand. */
    CHECK(!STRICT || hint(a, "color of the wings") == NULL);
    for (int i = 0; i < 5; i++) OK(MPI_Comm_free(&d[i]));
    OK(MPI_Comm_free(&a));
}

/* 7.4.4: set replaces what it names and leaves the rest; the caller's info object stays his own, as does what he gets. */
static void set(MPI_Info info, MPI_Info other) {
    MPI_Comm a, b;
    MPI_Info used;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    OK(MPI_Comm_set_info(a, info));
    OK(MPI_Comm_dup(a, &b));
    OK(MPI_Comm_set_info(a, other));
#if STRICT
    CHECK(is(a, asserts[0], "false") && is(a, asserts[1], "true"));
    CHECK(is(b, asserts[0], "true"));
#endif
    OK(MPI_Comm_get_info(a, &used));
    OK(MPI_Info_set(used, asserts[0], "true"));
    OK(MPI_Info_free(&used));
    CHECK(is_not(a, asserts[0], "true"));
    OK(MPI_Comm_get_info(MPI_COMM_SELF, &used));
    OK(MPI_Info_free(&used));
#if STRICT
    MPI_Comm_set_errhandler(a, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Comm_set_info(a, MPI_INFO_NULL), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Comm_get_info(MPI_COMM_NULL, &used), MPI_ERR_COMM);
#endif
    OK(MPI_Comm_free(&a));
    OK(MPI_Comm_free(&b));
}

enum { MANY = 2000, SIZE = 1000 };
static char room[SIZE + MPI_BSEND_OVERHEAD];

/* 3.6: a communicator that goes takes its buffer along: messages in it arrive, and the memory can be attached again. */
static void buffers(void) {
    size_t before = 0;
    char data[SIZE], got[SIZE];
    int to = (check_rank + 1) % check_size, from = (check_rank + check_size - 1) % check_size, n;
    void *addr;
    for (int i = 0; i < 2 * MANY; i++) {
        MPI_Comm c;
        if (i == MANY) before = mallinfo2().uordblks;
        MPI_Request r;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
        OK(MPI_Comm_attach_buffer(c, room, sizeof room));
        OK(MPI_Irecv(got, SIZE, MPI_BYTE, from, 1, c, &r));
        fill(data, SIZE, i);
        OK(MPI_Bsend(data, SIZE, MPI_BYTE, to, 1, c));
        if (i % 2) OK(MPI_Comm_free(&c));
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        CHECK_EQ(differs(got, SIZE, i), -1);
        if (i % 2 == 0) OK(MPI_Comm_disconnect(&c));
        CHECK(c == MPI_COMM_NULL);
        /* Nothing of it is left for a new communicator. */
        if (i % 50 == 0) {
            OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
            MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
            CHECK(MPI_Comm_detach_buffer(c, &addr, &n) != MPI_SUCCESS);
            OK(MPI_Comm_free(&c));
        }
    }
    /* Each attached buffer has a row of its own as long as it is attached. */
    long long more = (long long)mallinfo2().uordblks - (long long)before;
    if (more > 24 * MANY) FAILED("%d communicators that went left %lld bytes", MANY, more);
}

int main(int argc, char **argv) {
    MPI_Info info, other;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_create(&other));
    for (int k = 0; k < 4; k++) OK(MPI_Info_set(info, asserts[k], "true"));
    OK(MPI_Info_set(info, "color of the wings", "grey"));
    OK(MPI_Info_set(other, asserts[0], "false"));
    duplicates(info, other);
    set(info, other);
#if STRICT
    buffers();
#endif
    OK(MPI_Info_free(&info));
    OK(MPI_Info_free(&other));
    return check_end();
}
