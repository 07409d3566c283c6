/* Info objects, before, during and after MPI is initialised. */
// run: n=1 paths=one
#include "check.h"

static void pairs(void) {
    MPI_Info info, copy;
    char value[64], key[MPI_MAX_INFO_KEY + 1];
    int n, flag, len;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "color", "grey"));
    OK(MPI_Info_set(info, "wings", "2"));
    OK(MPI_Info_set(info, "color", "white and grey"));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK_EQ(n, 2);
    OK(MPI_Info_get_nthkey(info, 0, key));
    CHECK(strcmp(key, "color") == 0);
    OK(MPI_Info_get_nthkey(info, 1, key));
    CHECK(strcmp(key, "wings") == 0);
    OK(MPI_Info_get(info, "color", 63, value, &flag));
    CHECK(flag && strcmp(value, "white and grey") == 0);
#if STRICT
    OK(MPI_Info_get(info, "color", 5, value, &flag));
    CHECK(flag && strcmp(value, "white") == 0);
#endif
    OK(MPI_Info_get_valuelen(info, "color", &len, &flag));
    CHECK(flag && len == 14);
    OK(MPI_Info_get_valuelen(info, "beak", &len, &flag));
    CHECK(!flag);
    len = 6;
    OK(MPI_Info_get_string(info, "color", &len, value, &flag));
    CHECK(flag && len == 15 && strcmp(value, "white") == 0);
    len = 0;
    OK(MPI_Info_get_string(info, "wings", &len, NULL, &flag));
    CHECK(flag && len == 2);
    OK(MPI_Info_dup(info, &copy));
    OK(MPI_Info_delete(info, "color"));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK_EQ(n, 1);
    OK(MPI_Info_get_nkeys(copy, &n));
    CHECK_EQ(n, 2);
    // 10: in C white space belongs to keys and values; keys are case sensitive; a value may be empty.
    OK(MPI_Info_set(info, " wings ", "  2 "));
    OK(MPI_Info_set(info, "Wings", ""));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK_EQ(n, 3);
    OK(MPI_Info_get(info, " wings ", 63, value, &flag));
    CHECK(flag && strcmp(value, "  2 ") == 0);
    OK(MPI_Info_get(info, "Wings", 63, value, &flag));
    CHECK(flag && strcmp(value, "") == 0);
    // A key that is not there leaves the length and the value as they were.
    len = 5;
    strcpy(value, "same");
    OK(MPI_Info_get_string(info, "beak", &len, value, &flag));
    CHECK(!flag && len == 5 && strcmp(value, "same") == 0);
    OK(MPI_Info_free(&info));
    CHECK(info == MPI_INFO_NULL);
    OK(MPI_Info_free(&copy));
}

/* 10, MPI_INFO_CREATE_ENV: what MPI_INFO_ENV holds, at any time; `argc` and `argv` say what the program was called with. */
static void created(int argc, char **argv) {
    char value[MPI_MAX_INFO_VAL + 1], other[MPI_MAX_INFO_VAL + 1];
    char *others[] = {"someone", "else", NULL};
    int n, flag;
    MPI_Info mine;
    OK(MPI_Info_create_env(argc, argv, &mine));
    OK(MPI_Info_get_nkeys(mine, &n));
    CHECK(n > 0);
    OK(MPI_Info_get(mine, "command", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && strcmp(value, argv[0]) == 0);
    // It is the caller's own: it can be changed, and MPI_INFO_ENV stays as it is.
    OK(MPI_Info_set(mine, "command", "changed"));
    OK(MPI_Info_free(&mine));
    CHECK(mine == MPI_INFO_NULL);
    // They are the same before MPI_Init, after it and after MPI_Finalize.
    static int keys;
    CHECK(!STRICT || keys == 0 || keys == n);
    keys = n;
    OK(MPI_Info_create_env(0, NULL, &mine));
    OK(MPI_Info_get(mine, "command", MPI_MAX_INFO_VAL, other, &flag));
    CHECK(!flag || strcmp(value, other) == 0);
    CHECK(!STRICT || flag);
    OK(MPI_Info_free(&mine));
#if STRICT
    OK(MPI_Info_create_env(2, others, &mine));
    OK(MPI_Info_get(mine, "command", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && strcmp(value, "someone") == 0);
    OK(MPI_Info_get(mine, "argv", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && strcmp(value, "else") == 0);
    OK(MPI_Info_get(mine, "maxprocs", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && atoi(value) == 1);
    OK(MPI_Info_free(&mine));
#endif
    (void)others;
}

static void environment(void) {
    char value[MPI_MAX_INFO_VAL + 1];
    int flag;
    MPI_Info mine;
    OK(MPI_Info_get(MPI_INFO_ENV, "thread_level", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(!flag || strncmp(value, "MPI_THREAD_", 11) == 0);
#if STRICT
    CHECK(flag);
    OK(MPI_Info_get(MPI_INFO_ENV, "maxprocs", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && atoi(value) == check_size);
#endif
    OK(MPI_Info_create_env(0, NULL, &mine));
    OK(MPI_Info_free(&mine));
}

static void faults(void) {
    MPI_Info info, null = MPI_INFO_NULL;
    char key[MPI_MAX_INFO_KEY + 300], value[MPI_MAX_INFO_VAL + 1100]; // longer than in any ABI
    int n;
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = 0;
    memset(value, 'v', sizeof value);
    value[sizeof value - 1] = 0;
    OK(MPI_Info_create(&info));
    CHECK_CLASS(MPI_Info_set(info, key, "x"), MPI_ERR_INFO_KEY);
    CHECK_CLASS(MPI_Info_set(info, "x", value), MPI_ERR_INFO_VALUE);
    CHECK_CLASS(MPI_Info_set(info, "", "x"), MPI_ERR_INFO_KEY);
    CHECK_CLASS(MPI_Info_delete(info, "nothing"), MPI_ERR_INFO_NOKEY);
    CHECK_CLASS(MPI_Info_get_nthkey(info, 0, key), MPI_ERR_ARG);
#if STRICT
    CHECK_CLASS(MPI_Info_get_nkeys(MPI_INFO_NULL, &n), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Info_free(&null), MPI_ERR_INFO);
#endif
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv) {
    pairs();
    created(argc, argv);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    pairs();
    created(argc, argv);
    environment();
    faults();
    check_end();
    pairs();
    created(argc, argv);
    return check_failed != 0;
}
