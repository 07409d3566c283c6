/* Error handlers, and error classes, codes and strings that the user adds. */
// run: n=1,2 paths=one
#include "check.h"

static int called, last_code;
static MPI_Comm last_comm;

static void handler(MPI_Comm *c, int *code, ...) {
    called++;
    last_comm = *c;
    last_code = *code;
}

/* A call that fails. */
static int wrong(MPI_Comm c) {
    return MPI_Comm_set_attr(c, MPI_TAG_UB, NULL);
}

/* The code a call returns after the user's handler has run: the standard leaves it open, we keep it. */
#if STRICT
#define AFTER_HANDLER CHECK_CLASS
#else
#define AFTER_HANDLER(call, cls) (void)(call)
#endif

static void handlers(void) {
    MPI_Errhandler e, got;
    MPI_Comm a, b;
    OK(MPI_Comm_create_errhandler(handler, &e));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    OK(MPI_Comm_set_errhandler(a, e));
    OK(MPI_Comm_get_errhandler(a, &got));
    CHECK(got == e);
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Errhandler_free(&e));
    CHECK(e == MPI_ERRHANDLER_NULL);
    /* Freed, but in use; inherited by what is made from it. */
    called = 0;
    AFTER_HANDLER(wrong(a), MPI_ERR_KEYVAL);
    CHECK_EQ(called, 1);
    CHECK(last_comm == a);
    CHECK_EQ(check_class(last_code), MPI_ERR_KEYVAL);
    OK(MPI_Comm_split(a, 0, 0, &b));
    AFTER_HANDLER(wrong(b), MPI_ERR_KEYVAL);
    CHECK_EQ(called, 2);
    CHECK(last_comm == b);
    OK(MPI_Comm_call_errhandler(a, MPI_ERR_TOPOLOGY));
    CHECK_EQ(called, 3);
    CHECK_EQ(last_code, MPI_ERR_TOPOLOGY);
    OK(MPI_Comm_set_errhandler(a, MPI_ERRORS_RETURN));
    CHECK_CLASS(wrong(a), MPI_ERR_KEYVAL);
    CHECK_EQ(called, 3);
    OK(MPI_Comm_get_errhandler(a, &got));
    CHECK(got == MPI_ERRORS_RETURN);
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Comm_free(&a));
    AFTER_HANDLER(wrong(b), MPI_ERR_KEYVAL);
    CHECK_EQ(called, 4);
    OK(MPI_Comm_free(&b));
}

static void codes(void) {
    int class, code, c, len;
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Add_error_class(&class));
    CHECK(class > MPI_ERR_LASTCODE);
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Error_class(code, &c));
    CHECK_EQ(c, class);
    OK(MPI_Error_string(code, text, &len));
    CHECK_EQ(len, strlen(text));
    OK(MPI_Add_error_string(class, "feathers"));
    OK(MPI_Add_error_string(code, "wet feathers"));
    OK(MPI_Error_string(code, text, &len));
    CHECK(strcmp(text, "wet feathers") == 0 && len == 12);
    OK(MPI_Error_string(class, text, &len));
    CHECK(strcmp(text, "feathers") == 0);
    OK(MPI_Remove_error_string(code));
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_string(class));
    OK(MPI_Remove_error_class(class));
    for (c = 0; c <= MPI_ERR_ABI; c++) {
        if (MPI_ERR_RMA_RANGE == 55 && c == 54) continue; // MPICH has no such class
        if (MPI_ERR_RMA_RANGE == 68 && c >= 75 && c <= 77) continue; // Open MPI's own
        OK(MPI_Error_string(c, text, &len));
        CHECK(len > 0);
        OK(MPI_Error_class(c, &code));
        CHECK_EQ(code, c);
    }
}

static void faults(void) {
    int x, len;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Errhandler null = MPI_ERRHANDLER_NULL;
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL) != MPI_SUCCESS);
#if STRICT
    CHECK_CLASS(MPI_Errhandler_free(&null), MPI_ERR_ERRHANDLER);
    CHECK_CLASS(MPI_Add_error_code(MPI_ERR_LASTCODE + 100, &x), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Add_error_string(MPI_ERR_RANK, "mine"), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Error_class(-3, &x), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Error_string(1 << 29, text, &len), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_call_errhandler(MPI_COMM_NULL, MPI_ERR_ARG), MPI_ERR_COMM);
#endif
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    handlers();
    codes();
    faults();
    return check_end();
}
