/* What may be called before MPI is initialised, while it is, and after it was finalised (MPI 5.0, 11.4.1): versions, info, error
 * classes and strings, error handlers of sessions, statuses, the ABI's questions. */
// run: n=1 abi=one
#include "check.h"

static void versions(void) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int major = 0, minor = -1, len = -1;
    OK(MPI_Get_version(&major, &minor));
    CHECK(major == MPI_VERSION && minor == MPI_SUBVERSION);
    OK(MPI_Get_library_version(text, &len));
    CHECK(len > 0 && len < MPI_MAX_LIBRARY_VERSION_STRING);
    CHECK_EQ(len, strlen(text));
    CHECK(strchr(text, '\n') == NULL || !STRICT);
    // 20.2: the version of the ABI, and what it says of integer sizes.
    OK(MPI_Abi_get_version(&major, &minor));
#ifdef MPI_ABI_VERSION
    CHECK(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
#else
    CHECK(major == -1 && minor == -1);
#endif
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL + 1];
    int flag;
    OK(MPI_Abi_get_info(&info));
    OK(MPI_Info_get(info, "mpi_aint_size", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && atoi(value) == (int)sizeof(MPI_Aint));
    OK(MPI_Info_get(info, "mpi_count_size", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && atoi(value) == (int)sizeof(MPI_Count));
    OK(MPI_Info_get(info, "mpi_offset_size", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && atoi(value) == (int)sizeof(MPI_Offset));
    OK(MPI_Info_free(&info));
}

/* 9.5: user's classes, codes and strings, and their removal in the reverse order. */
static void errors(void) {
    char text[MPI_MAX_ERROR_STRING];
    int len = 0, class = 0;
    OK(MPI_Error_string(MPI_ERR_ARG, text, &len));
    CHECK(len > 0 && len == (int)strlen(text));
    OK(MPI_Error_class(MPI_ERR_TRUNCATE, &class));
    CHECK_EQ(class, MPI_ERR_TRUNCATE);
#if STRICT
    int code = 0, of = 0;
    OK(MPI_Add_error_class(&class));
    CHECK(class > MPI_ERR_LASTCODE);
    OK(MPI_Add_error_code(class, &code));
    CHECK(code > class);
    OK(MPI_Error_class(code, &of));
    CHECK_EQ(of, class);
    OK(MPI_Error_string(code, text, &len));
    CHECK(len == 0 && text[0] == 0);
    OK(MPI_Add_error_string(code, "the lamp is broken"));
    OK(MPI_Error_string(code, text, &len));
    CHECK(strcmp(text, "the lamp is broken") == 0 && len == (int)strlen(text));
    OK(MPI_Remove_error_string(code));
    OK(MPI_Error_string(code, text, &len));
    CHECK_EQ(len, 0);
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_class(class));
#endif
}

/* 3.2.5 and 3.8.5. */
static void statuses(void) {
    MPI_Status s;
    int x = 0, flag = 0;
    memset(&s, 0, sizeof s);
    OK(MPI_Status_set_source(&s, 3));
    OK(MPI_Status_set_tag(&s, 4));
    OK(MPI_Status_set_error(&s, MPI_ERR_TAG));
    CHECK(s.MPI_SOURCE == 3 && s.MPI_TAG == 4 && s.MPI_ERROR == MPI_ERR_TAG);
    OK(MPI_Status_get_source(&s, &x));
    CHECK_EQ(x, 3);
    OK(MPI_Status_get_tag(&s, &x));
    CHECK_EQ(x, 4);
    OK(MPI_Status_get_error(&s, &x));
    CHECK_EQ(x, MPI_ERR_TAG);
    OK(MPI_Status_set_cancelled(&s, 1));
    OK(MPI_Test_cancelled(&s, &flag));
    CHECK(flag);
    OK(MPI_Status_set_cancelled(&s, 0));
    OK(MPI_Test_cancelled(&s, &flag));
    CHECK(!flag);
}

static void on_session_error(MPI_Session *session, int *code, ...) {
    (void)session; (void)code;
}

static void all(int running) {
    MPI_Errhandler handler;
    versions();
    errors();
    if (!running && !STRICT) return;
    statuses();
    OK(MPI_Session_create_errhandler(on_session_error, &handler));
    CHECK(handler != MPI_ERRHANDLER_NULL);
    OK(MPI_Errhandler_free(&handler));
    CHECK(handler == MPI_ERRHANDLER_NULL);
}

int main(int argc, char **argv) {
    char name[MPI_MAX_OBJECT_NAME];
    int len;
    MPI_Comm parent = MPI_COMM_WORLD;
    all(0);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    all(1);
    // 7.8: null handles have names; 11.8.2: a process that was not spawned has no parent.
    OK(MPI_Comm_get_name(MPI_COMM_NULL, name, &len));
    CHECK(strcmp(name, "MPI_COMM_NULL") == 0 && len == (int)strlen(name));
    OK(MPI_Type_get_name(MPI_DATATYPE_NULL, name, &len));
    CHECK(strcmp(name, "MPI_DATATYPE_NULL") == 0);
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL);
    int status = check_end();
    if (STRICT) all(0);
    return status || check_failed;
}
