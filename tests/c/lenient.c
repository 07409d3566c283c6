/* What the standard does not allow, but MPICH or Open MPI accepts and programs use: accepted, and refused with KW_CHECK. */
// run: n=2 paths=one
#include "check.h"

/* strict.c includes this file with KW_CHECK set. */
#ifndef CHECKED
#define CHECKED 0
#endif

/* The call fails with this class if KW_CHECK is set. */
#define LENIENT(call, cls) CHECK_CLASS(call, CHECKED ? (cls) : MPI_SUCCESS)

static void characters(void) {
    static const struct { MPI_Op op; signed char want; } rows[] = {
        {MPI_SUM, 3}, {MPI_PROD, 2}, {MPI_MAX, 2}, {MPI_MIN, 1}, {MPI_BAND, 0}, {MPI_BOR, 3}, {MPI_BXOR, 3},
        {MPI_LAND, 1}, {MPI_LOR, 1}, {MPI_LXOR, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char mine = (char)(check_rank + 1), got = -1, both[2] = {mine, mine};
        LENIENT(MPI_Allreduce(&mine, &got, 1, MPI_CHAR, rows[i].op, check_comm), MPI_ERR_OP);
        CHECK_EQ(got, CHECKED ? (char)-1 : rows[i].want);
        got = -1;
        LENIENT(MPI_Reduce(&mine, &got, 1, MPI_CHAR, rows[i].op, 0, check_comm), MPI_ERR_OP);
        if (check_rank == 0) CHECK_EQ(got, CHECKED ? (char)-1 : rows[i].want);
        got = -1;
        LENIENT(MPI_Reduce_scatter_block(both, &got, 1, MPI_CHAR, rows[i].op, check_comm), MPI_ERR_OP);
        CHECK_EQ(got, CHECKED ? (char)-1 : rows[i].want);
        char in = 1, out = 2;
        LENIENT(MPI_Reduce_local(&in, &out, 1, MPI_CHAR, rows[i].op), MPI_ERR_OP);
        CHECK_EQ(out, CHECKED ? 2 : rows[i].want);
    }
    char low = (char)-1, high = 1, got = 0; // as C's char is, with a sign or without
    if (!CHECKED) {
        OK(MPI_Allreduce(check_rank ? &low : &high, &got, 1, MPI_CHAR, MPI_MAX, check_comm));
        CHECK_EQ(got, low > high ? low : high);
    }
    CHECK_CLASS(MPI_Reduce_local(&low, &got, 1, MPI_CHAR, MPI_MAXLOC), MPI_ERR_OP);
}

static void no_datatype(void) {
    int a[2] = {7, 7}, b[2] = {8, 8}, none[2] = {0}, other = 1 - check_rank, n = -1;
    MPI_Datatype nulls[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    MPI_Datatype null = MPI_DATATYPE_NULL;
    MPI_Status s;
    if (!CHECKED) {
        OK(MPI_Sendrecv(a, 0, null, other, 1, b, 0, null, other, 1, check_comm, &s));
        OK(MPI_Get_count(&s, MPI_INT, &n));
        CHECK_EQ(n, 0);
    }
    LENIENT(MPI_Bcast(a, 0, null, 0, check_comm), MPI_ERR_TYPE);
    LENIENT(MPI_Gather(a, 0, null, b, 0, null, 0, check_comm), MPI_ERR_TYPE);
    LENIENT(MPI_Allgather(a, 0, null, b, 0, null, check_comm), MPI_ERR_TYPE);
    LENIENT(MPI_Allgatherv(a, 0, null, b, none, none, null, check_comm), MPI_ERR_TYPE);
    LENIENT(MPI_Alltoallv(a, none, none, null, b, none, none, null, check_comm), MPI_ERR_TYPE);
    LENIENT(MPI_Alltoallw(a, none, none, nulls, b, none, none, nulls, check_comm), MPI_ERR_TYPE);
    CHECK(a[0] == 7 && b[0] == 8);
    int one[2] = {1, 1};
    CHECK_CLASS(MPI_Send(a, 1, null, other, 1, check_comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Bcast(a, 1, null, 0, check_comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Alltoallv(a, one, none, null, b, one, none, null, check_comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Alltoallw(a, one, none, nulls, b, one, none, nulls, check_comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Allreduce(a, b, 0, null, MPI_SUM, check_comm), MPI_ERR_TYPE);
}

static int frees_its_keyval(MPI_Comm c, int key, void *value, void *state) {
    (void)c; (void)value; (void)state;
    return MPI_Comm_free_keyval(&key);
}

static void keyvals(void) {
    int key, again, other;
    MPI_Comm c;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, frees_its_keyval, &key, NULL));
    again = key;
    OK(MPI_Comm_dup(check_comm, &c));
    OK(MPI_Comm_set_attr(c, key, NULL));
    OK(MPI_Comm_free(&c));
    LENIENT(MPI_Comm_free_keyval(&key), MPI_ERR_KEYVAL);
    if (!CHECKED) CHECK_EQ(key, MPI_KEYVAL_INVALID);
    /* Another one may have its place by now, and stays. */
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &other, NULL));
    LENIENT(MPI_Comm_free_keyval(&again), MPI_ERR_KEYVAL);
    OK(MPI_Comm_set_attr(check_comm, other, NULL));
    OK(MPI_Comm_delete_attr(check_comm, other));
    OK(MPI_Comm_free_keyval(&other));
    key = MPI_KEYVAL_INVALID;
    CHECK_CLASS(MPI_Comm_free_keyval(&key), MPI_ERR_KEYVAL);
}

static int heard;

static void hear(MPI_Comm *c, int *code, ...) {
    (void)c;
    heard = *code;
}

static void codes(void) {
    MPI_Errhandler h;
    OK(MPI_Comm_create_errhandler(hear, &h));
    OK(MPI_Comm_set_errhandler(check_comm, h));
    int code = MPI_Comm_call_errhandler(check_comm, 99999);
    if (CHECKED) CHECK_CLASS(code, MPI_ERR_ARG);
    else CHECK_EQ(code, MPI_SUCCESS);
    if (!CHECKED) CHECK_EQ(heard, 99999);
    OK(MPI_Comm_set_errhandler(check_comm, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&h));
}

static void no_dimensions(void) {
    MPI_Datatype t;
    int size = -1, none = 0;
    LENIENT(MPI_Type_create_subarray(0, &none, &none, &none, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
    if (CHECKED) return;
    OK(MPI_Type_commit(&t));
    OK(MPI_Type_size(t, &size));
    CHECK_EQ(size, 0);
    OK(MPI_Type_free(&t));
}

int main(int argc, char **argv) {
    setenv("KW_CHECK", CHECKED ? "yes" : "no", 1);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(check_comm, MPI_ERRORS_RETURN));
#if STRICT
    characters();
    no_datatype();
    keyvals();
    codes();
    no_dimensions();
#endif
    return check_end();
}
