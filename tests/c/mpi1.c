/* What MPI 3.0 removed and codes of MPI-1 use: every function under its old name, MPI_LB and MPI_UB (MPI-1.1, 3.12.3), the
 * deprecated attribute functions, and the PMPI twins. Made for our own library: other standard ABI libraries have none of it. */
// run: n=1,2 paths=one
#ifdef STRICT
#define MPI1_COMPAT
#endif
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "check.h"

#ifdef MPI1_COMPAT
struct particle {
    int kind;
    double at[3];
    char mark;
};

static MPI_Aint extent(MPI_Datatype t) {
    MPI_Aint e = -1;
    OK(MPI_Type_extent(t, &e));
    return e;
}

/* MPI-1.1, 3.12.1 and 3.12.2: the struct as a program of that time describes it. */
static void structs(void) {
    struct particle mine[3] = {{0}}, got[3] = {{0}};
    int lens[4] = {1, 3, 1, 1}, i;
    MPI_Aint at[4], base;
    MPI_Datatype types[4] = {MPI_INT, MPI_DOUBLE, MPI_CHAR, MPI_UB}, t;
    OK(MPI_Address(&mine[0], &base));
    OK(MPI_Address(&mine[0].kind, &at[0]));
    OK(MPI_Address(mine[0].at, &at[1]));
    OK(MPI_Address(&mine[0].mark, &at[2]));
    OK(PMPI_Address(&mine[1], &at[3]));
    for (i = 0; i < 4; i++) at[i] -= base;
    OK(MPI_Type_struct(4, lens, at, types, &t));
    OK(MPI_Type_commit(&t));
    CHECK_EQ(extent(t), sizeof(struct particle));
    for (i = 0; i < 3; i++) mine[i] = (struct particle){i, {1.5 * i, check_rank, -i}, 'a' + i};
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    OK(MPI_Sendrecv(mine, 3, t, right, 1, got, 3, t, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (i = 0; i < 3; i++) {
        CHECK(got[i].kind == i && got[i].mark == 'a' + i);
        CHECK(got[i].at[0] == 1.5 * i && got[i].at[1] == left && got[i].at[2] == -i);
    }
    OK(MPI_Type_free(&t));
}

/* 3.12.3, its example: type1 = {(MPI_LB, -3), (int, 0), (MPI_UB, 6)}; two of them: {(lb, -3), (int, 0), (int, 9), (ub, 15)}. */
static void markers(void) {
    int lens[3] = {1, 1, 1}, size;
    MPI_Aint at[3] = {-3, 0, 6}, lb, ub;
    MPI_Datatype types[3] = {MPI_LB, MPI_INT, MPI_UB}, one, two, inner;
    OK(MPI_Type_struct(3, lens, at, types, &one));
    OK(MPI_Type_lb(one, &lb));
    OK(MPI_Type_ub(one, &ub));
    CHECK(lb == -3 && ub == 6 && extent(one) == 9);
    OK(MPI_Type_contiguous(2, one, &two));
    OK(MPI_Type_lb(two, &lb));
    OK(MPI_Type_ub(two, &ub));
    OK(MPI_Type_size(two, &size));
    CHECK(lb == -3 && ub == 15 && size == 2 * (int)sizeof(int));
    // A marker deep inside hides the data around it; an upper bound alone leaves the lower one to the data.
    MPI_Aint apart[2] = {0, 100};
    MPI_Datatype pair[2] = {one, MPI_DOUBLE};
    OK(MPI_Type_struct(2, lens, apart, pair, &inner));
    OK(MPI_Type_ub(inner, &ub));
    CHECK_EQ(ub, 6);
    OK(MPI_Type_free(&inner));
    MPI_Aint far[2] = {8, 64};
    MPI_Datatype up[2] = {MPI_INT, MPI_UB};
    OK(MPI_Type_struct(2, lens, far, up, &inner));
    OK(MPI_Type_lb(inner, &lb));
    CHECK_EQ(lb, 8);
    CHECK_EQ(extent(inner), 56);
    OK(MPI_Type_free(&inner));
    // MPI-2's constructor takes them as well.
    OK(MPI_Type_create_struct(2, lens, far, up, &inner));
    CHECK_EQ(extent(inner), 56);
    OK(MPI_Type_free(&inner));
    OK(MPI_Type_free(&one));
    OK(MPI_Type_free(&two));
    CHECK(extent(MPI_UB) == 0 && extent(MPI_LB) == 0);
    OK(MPI_Type_size(MPI_UB, &size));
    CHECK_EQ(size, 0);
    MPI_Datatype gone = MPI_UB;
    CHECK_CLASS(MPI_Type_free(&gone), MPI_ERR_TYPE);
}

static void rows(void) {
    int lens[2] = {2, 1}, ni, na, nd, combiner;
    MPI_Aint at[2] = {0, 12};
    MPI_Datatype t;
    OK(MPI_Type_hvector(3, 2, 16, MPI_INT, &t));
    CHECK_EQ(extent(t), 40);
    OK(MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner));
    CHECK_EQ(combiner, MPI_COMBINER_HVECTOR);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_hindexed(2, lens, at, MPI_INT, &t));
    CHECK_EQ(extent(t), 16);
    OK(MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner));
    CHECK_EQ(combiner, MPI_COMBINER_HINDEXED);
    CHECK(combiner != MPI_COMBINER_HINDEXED_INTEGER && combiner != MPI_COMBINER_HVECTOR_INTEGER &&
          combiner != MPI_COMBINER_STRUCT_INTEGER);
    OK(MPI_Type_free(&t));
    CHECK_CLASS(MPI_Type_struct(-1, lens, at, &t, &t), MPI_ERR_COUNT);
}

static int heard;
static void on_error(MPI_Comm *comm, int *code, ...) {
    CHECK(*comm == check_comm);
    CHECK_EQ(check_class(*code), MPI_ERR_RANK);
    heard++;
}

/* MPI-1.1, 7.2. */
static void handlers(void) {
    MPI_Errhandler mine, now, before;
    MPI_Handler_function *function = on_error;
    OK(MPI_Errhandler_get(check_comm, &before));
    OK(MPI_Errhandler_create(function, &mine));
    OK(MPI_Errhandler_set(check_comm, mine));
    OK(MPI_Errhandler_get(check_comm, &now));
    CHECK(now == mine);
    CHECK_CLASS(MPI_Send(NULL, 0, MPI_INT, check_size, 0, check_comm), MPI_ERR_RANK);
    CHECK_EQ(heard, 1);
    OK(MPI_Errhandler_set(check_comm, before));
    OK(MPI_Errhandler_free(&mine));
    OK(MPI_Errhandler_free(&now));
}

/* MPI-1.1, 5.7.1: deprecated, not removed. */
static void attributes(void) {
    int key, flag;
    void *value = NULL;
    OK(MPI_Keyval_create(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Attr_put(check_comm, key, &heard));
    OK(MPI_Attr_get(check_comm, key, &value, &flag));
    CHECK(flag && value == &heard);
    OK(MPI_Attr_delete(check_comm, key));
    OK(MPI_Attr_get(check_comm, key, &value, &flag));
    CHECK(!flag);
    OK(MPI_Keyval_free(&key));
    CHECK_EQ(key, MPI_KEYVAL_INVALID);
}
#endif

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
#ifdef MPI1_COMPAT
    structs();
    markers();
    rows();
    handlers();
    attributes();
#endif
    return check_end();
}
