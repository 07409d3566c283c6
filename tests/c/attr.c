/* Attributes: copying at dup, deleting at free, refusals, the order at MPI_Finalize, predefined ones, datatypes. */
// run: n=1,2 paths=one
#include "check.h"

static int copies, deletes, order[8], refuse;
static int extra = 77;

static int copy(MPI_Comm c, int key, void *state, void *in, void *out, int *flag) {
    (void)c; (void)key;
    CHECK(state == &extra);
    copies++;
    if (refuse) return refuse;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int del(MPI_Comm c, int key, void *value, void *state) {
    (void)c; (void)key;
    CHECK(state == &extra);
    if (refuse) return refuse;
    order[deletes++ % 8] = (int)(intptr_t)value;
    return MPI_SUCCESS;
}

static intptr_t get(MPI_Comm c, int key) {
    void *v = NULL;
    int flag;
    OK(MPI_Comm_get_attr(c, key, &v, &flag));
    return flag ? (intptr_t)v : -1;
}

static void copied_and_deleted(void) {
    int k, same, never;
    MPI_Comm a, b;
    OK(MPI_Comm_create_keyval(copy, del, &k, &extra));
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &same, NULL));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &never, NULL));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    CHECK_EQ(get(a, k), -1);
    OK(MPI_Comm_set_attr(a, k, (void *)10));
    OK(MPI_Comm_set_attr(a, same, (void *)20));
    OK(MPI_Comm_set_attr(a, never, (void *)30));
    copies = deletes = 0;
    OK(MPI_Comm_dup(a, &b));
    CHECK_EQ(copies, 1);
    CHECK_EQ(get(b, k), 11);
    CHECK_EQ(get(b, same), 20);
    CHECK_EQ(get(b, never), -1);
    OK(MPI_Comm_set_attr(b, k, (void *)12));
    CHECK_EQ(deletes, 1);
    CHECK_EQ(order[0], 11);
    OK(MPI_Comm_delete_attr(b, k));
    CHECK_EQ(deletes, 2);
    CHECK_EQ(get(b, k), -1);
    OK(MPI_Comm_free(&b));
    CHECK_EQ(deletes, 2);
    /* A keyval that was freed works on where it is set. */
    int freed = k;
    OK(MPI_Comm_free_keyval(&freed));
    CHECK_EQ(freed, MPI_KEYVAL_INVALID);
    OK(MPI_Comm_free(&a));
    CHECK_EQ(deletes, 3);
    CHECK_EQ(order[2], 10);
    OK(MPI_Comm_free_keyval(&same));
    OK(MPI_Comm_free_keyval(&never));
}

/* 7.7.2, MPI_COMM_FREE_KEYVAL: a key in use lives until the last attribute with it is gone; until then it names it. */
static void freed_in_use(void) {
    int k, freed, flag;
    void *v;
    MPI_Comm a, b;
    MPI_Datatype t;
    OK(MPI_Comm_create_keyval(copy, del, &k, &extra));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    OK(MPI_Comm_set_attr(a, k, (void *)10));
    freed = k;
    OK(MPI_Comm_free_keyval(&freed));
    CHECK_EQ(get(a, k), 10);
    OK(MPI_Comm_dup(a, &b));
    CHECK_EQ(get(b, k), 11);
    CHECK_EQ(get(MPI_COMM_WORLD, k), -1);
    deletes = 0;
    OK(MPI_Comm_delete_attr(a, k));
    CHECK_EQ(deletes, 1);
    CHECK_EQ(get(a, k), -1);
    OK(MPI_Comm_delete_attr(b, k));
    CHECK_EQ(deletes, 2);
#if STRICT
    MPI_Comm_set_errhandler(a, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Comm_get_attr(a, k, &v, &flag), MPI_ERR_KEYVAL);
#endif
    OK(MPI_Comm_free(&a));
    OK(MPI_Comm_free(&b));
    OK(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &k, NULL));
    OK(MPI_Type_contiguous(3, MPI_INT, &t));
    OK(MPI_Type_set_attr(t, k, (void *)5));
    freed = k;
    OK(MPI_Type_free_keyval(&freed));
    OK(MPI_Type_get_attr(t, k, &v, &flag));
    CHECK(flag && v == (void *)5);
    OK(MPI_Type_delete_attr(t, k));
    OK(MPI_Type_free(&t));
}

/* 7.7.1: at MPI_Comm_free the delete functions are called in the reverse order of setting; one that fails keeps the
 * communicator and what is left. 7.7.2: at MPI_Comm_dup the copy functions are called. */
static void order_and_failure(void) {
    int k[3], i;
    MPI_Comm a;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    for (i = 0; i < 3; i++) OK(MPI_Comm_create_keyval(copy, del, &k[i], &extra));
    OK(MPI_Comm_set_attr(a, k[1], (void *)1));
    OK(MPI_Comm_set_attr(a, k[0], (void *)2));
    OK(MPI_Comm_set_attr(a, k[2], (void *)3));
#if STRICT
    MPI_Comm_set_errhandler(a, MPI_ERRORS_RETURN);
    refuse = MPI_ERR_OTHER;
    CHECK_CLASS(MPI_Comm_free(&a), MPI_ERR_OTHER);
    CHECK(a != MPI_COMM_NULL);
    refuse = 0;
    CHECK_EQ(get(a, k[0]), 2);
#endif
    deletes = 0;
    OK(MPI_Comm_free(&a));
    CHECK_EQ(deletes, 3);
#if STRICT
    CHECK(order[0] == 3 && order[1] == 2 && order[2] == 1);
#endif
    for (i = 0; i < 3; i++) OK(MPI_Comm_free_keyval(&k[i]));
}

static void refused(void) {
    int k;
    MPI_Comm a, b = MPI_COMM_NULL;
    OK(MPI_Comm_create_keyval(copy, del, &k, &extra));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    MPI_Comm_set_errhandler(a, MPI_ERRORS_RETURN);
    OK(MPI_Comm_set_attr(a, k, (void *)1));
    refuse = MPI_ERR_OTHER;
    CHECK_CLASS(MPI_Comm_dup(a, &b), MPI_ERR_OTHER);
    CHECK(b == MPI_COMM_NULL);
    CHECK_CLASS(MPI_Comm_delete_attr(a, k), MPI_ERR_OTHER);
    refuse = 0;
    OK(MPI_Comm_free(&a));
    OK(MPI_Comm_free_keyval(&k));
}

static void predefined(void) {
    int flag, *v;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &v, &flag));
    CHECK(flag && *v >= 32767);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &v, &flag));
    CHECK(flag);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &v, &flag));
    CHECK(flag && (*v == 0 || *v == 1));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &v, &flag));
    CHECK(!flag || *v == 0);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &v, &flag));
    CHECK(!flag || *v >= check_size);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &v, &flag));
    CHECK(flag);
    int before = *v, class;
    OK(MPI_Add_error_class(&class));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &v, &flag));
    CHECK(class > before && *v == class);
    OK(MPI_Remove_error_class(class));
}

static int type_deletes;
static int type_del(MPI_Datatype t, int key, void *value, void *state) {
    (void)t; (void)key; (void)value; (void)state;
    type_deletes++;
    return MPI_SUCCESS;
}

static void datatypes(void) {
    int k, flag;
    MPI_Datatype a, b;
    void *v;
    OK(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, type_del, &k, NULL));
    OK(MPI_Type_contiguous(3, MPI_INT, &a));
    OK(MPI_Type_set_attr(a, k, (void *)5));
    OK(MPI_Type_dup(a, &b));
    OK(MPI_Type_get_attr(b, k, &v, &flag));
    CHECK(flag && v == (void *)5);
    OK(MPI_Type_free(&a));
#if STRICT
    CHECK_EQ(type_deletes, 1);
#endif
    OK(MPI_Type_delete_attr(b, k));
    OK(MPI_Type_free(&b));
    CHECK_EQ(type_deletes, 2);
    OK(MPI_Type_set_attr(MPI_INT, k, (void *)6));
    OK(MPI_Type_get_attr(MPI_INT, k, &v, &flag));
    CHECK(flag && v == (void *)6);
    OK(MPI_Type_delete_attr(MPI_INT, k));
    OK(MPI_Type_free_keyval(&k));
}

static void faults(void) {
    int k, bad = MPI_KEYVAL_INVALID, flag;
    void *v;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &k, NULL));
    CHECK_CLASS(MPI_Comm_get_attr(MPI_COMM_WORLD, bad, &v, &flag), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL), MPI_ERR_KEYVAL);
#if STRICT
    CHECK_CLASS(MPI_Comm_delete_attr(MPI_COMM_WORLD, k), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Type_set_attr(MPI_INT, k, NULL), MPI_ERR_KEYVAL);
#endif
    CHECK_CLASS(MPI_Comm_set_attr(MPI_COMM_NULL, k, NULL), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_free_keyval(&bad), MPI_ERR_KEYVAL);
    OK(MPI_Comm_free_keyval(&k));
}

static int last_seen = 3;
static int at_end(MPI_Comm c, int key, void *value, void *state) {
    int up;
    (void)key; (void)state;
    CHECK(c == (last_seen > 1 ? MPI_COMM_SELF : MPI_COMM_WORLD));
    /* MPI still works, and the last one set comes first; MPI_COMM_WORLD's after those of MPI_COMM_SELF. */
    OK(MPI_Finalized(&up));
    CHECK(!up);
    CHECK_EQ((intptr_t)value, last_seen--);
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    copied_and_deleted();
    freed_in_use();
    order_and_failure();
    refused();
    predefined();
    datatypes();
    faults();
    for (intptr_t i = 1; i <= 3; i++) {
        int k;
        OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &k, NULL));
        OK(MPI_Comm_set_attr(i > 1 ? MPI_COMM_SELF : MPI_COMM_WORLD, k, (void *)i));
    }
    int status = check_end();
    if (last_seen != 0) fprintf(stderr, "FAILED: MPI_Finalize left %d attributes\n", last_seen);
    return status || last_seen != 0;
}
