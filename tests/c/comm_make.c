/* Intracommunicators: dup, split, create, create_group, split_type, idup; messages in one never meet those of another. */
// run: n=1,2,4,16
#include "check.h"

/* Everybody's number arrives in order at everybody: the communicator works and its ranks are right. */
static void works(MPI_Comm c) {
    int rank, size;
    OK(MPI_Comm_rank(c, &rank));
    OK(MPI_Comm_size(c, &size));
    int right = (rank + 1) % size, left = (rank + size - 1) % size, got = -1;
    MPI_Status st;
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, right, 5, &got, 1, MPI_INT, left, 5, c, &st));
    CHECK_EQ(got, left);
    CHECK_EQ(st.MPI_SOURCE, left);
}

static void compare(MPI_Comm a, MPI_Comm b, int want) {
    int r = -1;
    OK(MPI_Comm_compare(a, b, &r));
    CHECK_EQ(r, want);
}

static void duplicates(void) {
    MPI_Comm a, b;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    OK(MPI_Comm_dup(a, &b));
    compare(a, b, MPI_CONGRUENT);
    compare(a, a, MPI_IDENT);
    compare(a, MPI_COMM_SELF, check_size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL);
    works(a);
    works(b);
    /* A message in b is not received in a. */
    int x = 1, y = 2, got = 0, right = (check_rank + 1) % check_size;
    MPI_Request r[2];
    OK(MPI_Isend(&x, 1, MPI_INT, right, 3, b, &r[0]));
    OK(MPI_Isend(&y, 1, MPI_INT, right, 3, a, &r[1]));
    OK(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, a, MPI_STATUS_IGNORE));
    CHECK_EQ(got, 2);
    OK(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, b, MPI_STATUS_IGNORE));
    CHECK_EQ(got, 1);
    OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    OK(MPI_Comm_free(&a));
    CHECK(a == MPI_COMM_NULL);
    works(b);
    OK(MPI_Comm_disconnect(&b));
    CHECK(b == MPI_COMM_NULL);
}

/* A communicator may be freed while a receive in it is pending. */
static void freed_while_pending(void) {
    MPI_Comm c;
    MPI_Request r;
    int got = -1, mine = 100 + check_rank, right = (check_rank + 1) % check_size;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    OK(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 1, c, &r));
    OK(MPI_Send(&mine, 1, MPI_INT, right, 1, c));
    OK(MPI_Comm_free(&c));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK_EQ(got, 100 + (check_rank + check_size - 1) % check_size);
}

static void splits(void) {
    MPI_Comm c;
    int rank, size;
    OK(MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, -check_rank, &c));
    OK(MPI_Comm_size(c, &size));
    OK(MPI_Comm_rank(c, &rank));
    int mine = check_size / 2 + (check_rank % 2 ? 0 : check_size % 2);
    CHECK_EQ(size, mine);
    CHECK_EQ(rank, mine - 1 - check_rank / 2);
    works(c);
    OK(MPI_Comm_free(&c));
    OK(MPI_Comm_split(MPI_COMM_WORLD, check_rank ? 7 : MPI_UNDEFINED, 0, &c));
    CHECK((c == MPI_COMM_NULL) == (check_rank == 0));
    if (c != MPI_COMM_NULL) {
        OK(MPI_Comm_rank(c, &rank));
        CHECK_EQ(rank, check_rank - 1);
        works(c);
        OK(MPI_Comm_free(&c));
    }
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -check_rank, MPI_INFO_NULL, &c));
    OK(MPI_Comm_rank(c, &rank));
    OK(MPI_Comm_size(c, &size));
    CHECK_EQ(rank, size - 1 - check_rank);
    works(c);
    OK(MPI_Comm_free(&c));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &c));
    CHECK(c == MPI_COMM_NULL);
}

static void creates(void) {
    MPI_Group world, low, rev;
    MPI_Comm c;
    int half = (check_size + 1) / 2, rank;
    int first[1][3] = {{0, half - 1, 1}}, back[1][3] = {{check_size - 1, 0, -1}};
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_range_incl(world, 1, first, &low));
    OK(MPI_Group_range_incl(world, 1, back, &rev));
    OK(MPI_Comm_create(MPI_COMM_WORLD, low, &c));
    CHECK((c != MPI_COMM_NULL) == (check_rank < half));
    if (c != MPI_COMM_NULL) {
        works(c);
        OK(MPI_Comm_free(&c));
    }
    OK(MPI_Comm_create(MPI_COMM_WORLD, rev, &c));
    OK(MPI_Comm_rank(c, &rank));
    CHECK_EQ(rank, check_size - 1 - check_rank);
    compare(c, MPI_COMM_WORLD, check_size == 1 ? MPI_CONGRUENT : MPI_SIMILAR);
    works(c);
    OK(MPI_Comm_free(&c));
    OK(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &c));
    CHECK(c == MPI_COMM_NULL);
    if (check_rank < half) {
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, low, 42, &c));
        works(c);
        OK(MPI_Comm_free(&c));
    }
    OK(MPI_Comm_create_from_group(rev, "org.kittiwake.test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    works(c);
    OK(MPI_Comm_rank(c, &rank));
    CHECK_EQ(rank, check_size - 1 - check_rank);
    OK(MPI_Comm_free(&c));
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&low));
    OK(MPI_Group_free(&rev));
}

/* MPI_Comm_idup returns before anybody else has called it. */
static void duplicates_later(void) {
    MPI_Comm a, b;
    MPI_Request r[2];
    int token = 1;
    if (check_rank == 0) {
        OK(MPI_Comm_idup(MPI_COMM_WORLD, &a, &r[0]));
        for (int i = 1; i < check_size; i++) OK(MPI_Send(&token, 1, MPI_INT, i, 9, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(&token, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Comm_idup(MPI_COMM_WORLD, &a, &r[0]));
    }
    OK(MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &b, &r[1]));
    OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    works(a);
    works(b);
    compare(a, b, MPI_CONGRUENT);
    OK(MPI_Comm_free(&a));
    OK(MPI_Comm_free(&b));
}

static void many(void) {
    enum { LIVE = 100 };
    MPI_Comm c[LIVE];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < LIVE; i++) OK(MPI_Comm_dup(i ? c[i - 1] : MPI_COMM_WORLD, &c[i]));
        for (int i = 0; i < LIVE; i += 9) works(c[i]);
        for (int i = 0; i < LIVE; i++) OK(MPI_Comm_free(&c[(i * 37 + round) % LIVE]));
    }
    for (int i = 0; i < 1000; i++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &c[0]));
        OK(MPI_Comm_free(&c[0]));
    }
}

static void names(void) {
    MPI_Comm c;
    char name[MPI_MAX_OBJECT_NAME];
    int len;
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &len));
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0);
    CHECK_EQ(len, strlen(name));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &c));
    OK(MPI_Comm_get_name(c, name, &len));
    CHECK_EQ(len, 0);
    OK(MPI_Comm_set_name(c, "gull"));
    OK(MPI_Comm_get_name(c, name, &len));
    CHECK(strcmp(name, "gull") == 0 && len == 4);
    OK(MPI_Comm_free(&c));
    len = -1;
    OK(MPI_Win_get_name(MPI_WIN_NULL, name, &len));
    CHECK(strcmp(name, "MPI_WIN_NULL") == 0 && len == 12);
}

static void hints(void) {
    MPI_Info info, used;
    MPI_Comm a, b;
    char value[16];
    int flag;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &a));
    OK(MPI_Comm_dup(a, &b));
    OK(MPI_Comm_get_info(b, &used));
    OK(MPI_Info_get(used, "mpi_assert_no_any_tag", 15, value, &flag));
#if STRICT
    CHECK(flag && strcmp(value, "true") == 0);
#endif
    OK(MPI_Comm_set_info(b, info));
    OK(MPI_Info_free(&used));
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_free(&a));
    OK(MPI_Comm_free(&b));
}

static void faults(void) {
    MPI_Comm c = MPI_COMM_NULL, w = MPI_COMM_WORLD;
    int x;
    CHECK_CLASS(MPI_Comm_size(MPI_COMM_NULL, &x), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_dup(MPI_COMM_NULL, &c), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_free(&c), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_free(&w), MPI_ERR_COMM);
#if STRICT
    CHECK_CLASS(MPI_Comm_remote_size(MPI_COMM_WORLD, &x), MPI_ERR_COMM);
#endif
    CHECK_CLASS(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &c), MPI_ERR_GROUP);
#if STRICT
    CHECK(MPI_Comm_split(MPI_COMM_WORLD, -5, 0, &c) != MPI_SUCCESS);
#endif
    if (check_size > 1) {
        MPI_Group world;
        OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
        CHECK_CLASS(MPI_Comm_create(MPI_COMM_SELF, world, &c), MPI_ERR_GROUP);
        OK(MPI_Group_free(&world));
    }
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    works(MPI_COMM_WORLD);
    works(MPI_COMM_SELF);
    duplicates();
    freed_while_pending();
    splits();
    creates();
    duplicates_later();
    many();
    names();
    hints();
    faults();
    return check_end();
}
