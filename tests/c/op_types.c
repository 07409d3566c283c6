// run: n=1,2 timeout=60 paths=one
/* Every predefined operation on every predefined datatype (MPI 5.0, 6.9.2 and 6.9.4): what is allowed gives what plain C
 * gives, by MPI_Reduce_local and by MPI_Allreduce; what is not allowed is refused with MPI_ERR_OP. */
#include "op_kinds.h"

static int total, refused, skipped;

static void local(const Kind *k, MPI_Datatype type, enum Op op, int may) {
    /* One element in front: nothing is aligned better than its type asks for. */
    static char a[(N + 2) * 64] __attribute__((aligned(64))), b[sizeof a] __attribute__((aligned(64))), c[sizeof a] __attribute__((aligned(64)));
    uint64_t s = op * 1000 + (uintptr_t)k->size;
    int i, bad = 0;
    for (i = 0; i < N + 2; i++) k->make(a, i, &s), k->make(b, i, &s);
    memcpy(c, b, sizeof c);
    int code = MPI_Reduce_local(a + k->size, b + k->size, N, type, ops[op]);
    if (code != MPI_SUCCESS) {
        if (!may || check_class(code) != MPI_ERR_OP) FAILED("%s of %s: class %d", op_names[op], k->name, check_class(code));
        return;
    }
    for (i = 1; i <= N; i++) k->combine(op, a, c, i);
    for (i = 0; i < N + 2; i++) bad += !k->equal(b, c, i);
    if (bad) FAILED("%s of %s: %d elements differ", op_names[op], k->name, bad);
    /* All ranks give the same, so that order does not matter; the sum of n is n times. */
    memcpy(c, a, sizeof c);
    for (int r = 1; r < check_size; r++)
        for (i = 0; i < N; i++) k->combine(op, a, c, i);
    memset(b, 0, sizeof b);
    OK(MPI_Allreduce(a, b, N, type, ops[op], MPI_COMM_WORLD));
    for (bad = i = 0; i < N; i++) bad += !k->equal(b, c, i);
    if (bad) FAILED("%s of %s over all: %d elements differ", op_names[op], k->name, bad);
    total++;
}

static void forbidden(const char *name, MPI_Datatype type, enum Op op) {
    static char a[64] __attribute__((aligned(64))), b[64] __attribute__((aligned(64)));
    int code = MPI_Reduce_local(a, b, 1, type, ops[op]);
    if (check_class(code) != MPI_ERR_OP) FAILED("%s of %s: class %d, not MPI_ERR_OP", op_names[op], name, check_class(code));
    code = MPI_Allreduce(a, b, 1, type, ops[op], MPI_COMM_WORLD);
    if (check_class(code) != MPI_ERR_OP) FAILED("%s of %s over all: class %d", op_names[op], name, check_class(code));
    refused++;
}

static void all_ops(const Kind *k, MPI_Datatype type) {
    int size;
    MPI_Aint lb, extent;
    if (type == MPI_DATATYPE_NULL) {
        skipped++;
        return;
    }
    OK(MPI_Type_get_extent(type, &lb, &extent));
    CHECK_EQ(extent, k->size);
    for (int op = 0; op < REPLACE; op++) {
        int bit = BIT(k->group);
        if ((allowed[op] | extra[op]) & bit) local(k, type, op, !(allowed[op] & bit));
        else if (STRICT) forbidden(k->name, type, op);
    }
    /* These two are for one-sided communication. */
    if (STRICT) {
        char a[64] = {0}, b[64] = {0};
        CHECK_CLASS(MPI_Allreduce(a, b, 1, type, MPI_REPLACE, MPI_COMM_WORLD), MPI_ERR_OP);
        CHECK_CLASS(MPI_Allreduce(a, b, 1, type, MPI_NO_OP, MPI_COMM_WORLD), MPI_ERR_OP);
    }
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type) {
    for (int i = 0; i < *n; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void operations(void) {
    int commutes, a = 2, b = 3;
    for (int op = 0; op < REPLACE; op++) {
        OK(MPI_Op_commutative(ops[op], &commutes));
        CHECK_EQ(commutes, 1);
        MPI_Op copy = ops[op];
        if (STRICT) CHECK_CLASS(MPI_Op_free(&copy), MPI_ERR_OP);
    }
    for (int c = 0; c < 2; c++) {
        MPI_Op own;
        OK(MPI_Op_create(add, c, &own));
        OK(MPI_Op_commutative(own, &commutes));
        CHECK_EQ(commutes, c);
        b = 3;
        OK(MPI_Reduce_local(&a, &b, 1, MPI_INT, own));
        CHECK_EQ(b, 5);
        OK(MPI_Op_free(&own));
        CHECK(own == MPI_OP_NULL);
    }
#if STRICT
    CHECK_CLASS(MPI_Op_commutative(MPI_OP_NULL, &commutes), MPI_ERR_OP);
    CHECK_CLASS(MPI_Op_create(NULL, 0, &ops[NO_OP]), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Reduce_local(&a, &b, -1, MPI_INT, MPI_SUM), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Reduce_local(&a, &b, 1, MPI_DATATYPE_NULL, MPI_SUM), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Reduce_local(&a, &b, 1, MPI_INT, MPI_OP_NULL), MPI_ERR_OP);
    CHECK_CLASS(MPI_Reduce_local(MPI_IN_PLACE, &b, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Reduce_local(NULL, &b, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
#endif
    /* One element 0 times: nothing happens. */
    b = 3;
    OK(MPI_Reduce_local(&a, &b, 0, MPI_INT, MPI_SUM));
    CHECK_EQ(b, 3);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    ops_begin();
    types();
    operations();
    CHECK(total > 250);
    if (STRICT) CHECK(refused > 300);
    return check_end();
}
