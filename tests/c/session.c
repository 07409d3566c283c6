/* Sessions without MPI_Init: process sets, a communicator from a group, an intercommunicator from groups. */
// run: n=1,2,4
#include "check.h"

/* 11.3.1: a session tells the thread level and the kinds of memory that it has, whatever was asked for. */
static void about(void) {
    MPI_Session s;
    MPI_Info wanted, got;
    char value[MPI_MAX_INFO_VAL + 1];
    int flag;
    OK(MPI_Info_create(&wanted));
    OK(MPI_Info_set(wanted, "thread_level", "MPI_THREAD_SERIALIZED"));
    OK(MPI_Info_set(wanted, "mpi_memory_alloc_kinds", "system,cuda:device"));
    OK(MPI_Info_set(wanted, "unheard of", "yes"));
    OK(MPI_Session_init(wanted, MPI_ERRORS_RETURN, &s));
    OK(MPI_Session_get_info(s, &got));
    OK(MPI_Info_get(got, "thread_level", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && strncmp(value, "MPI_THREAD_", 11) == 0);
    CHECK(!STRICT || strcmp(value, "MPI_THREAD_SERIALIZED") == 0);
    OK(MPI_Info_get(got, "mpi_memory_alloc_kinds", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && strstr(value, "system") && strstr(value, "mpi"));
    OK(MPI_Info_get(got, "unheard of", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(!STRICT || !flag);
    OK(MPI_Info_free(&got));
    OK(MPI_Session_finalize(&s));
#if STRICT
    CHECK_CLASS(MPI_Session_finalize(&s), MPI_ERR_SESSION);
    OK(MPI_Info_set(wanted, "thread_level", "nonsense"));
    OK(MPI_Session_init(wanted, MPI_ERRORS_RETURN, &s));
    OK(MPI_Session_get_info(s, &got));
    OK(MPI_Info_get(got, "thread_level", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && strcmp(value, "nonsense") != 0);
    OK(MPI_Info_free(&got));
    OK(MPI_Session_finalize(&s));
#endif
    OK(MPI_Info_free(&wanted));
}

int main(int argc, char **argv) {
    MPI_Session s;
    MPI_Group world, self;
    MPI_Comm c;
    MPI_Info info;
    int n, rank, size, len, flag, got = -1;
    char name[256];
    (void)argc; (void)argv;
    // The handler that a call is given for what it makes is also asked when the call fails.
#if STRICT
    CHECK_CLASS(MPI_Session_init((MPI_Info)(intptr_t)0x7ffff0, MPI_ERRORS_RETURN, &s), MPI_ERR_INFO);
#endif
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s));
#if STRICT
    CHECK_CLASS(MPI_Comm_create_from_group(MPI_GROUP_NULL, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c), MPI_ERR_GROUP);
#endif
    OK(MPI_Session_set_errhandler(s, MPI_ERRORS_RETURN));
    about();
    OK(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n));
    CHECK(n >= 2);
    for (int i = 0; i < n; i++) {
        len = 0;
        OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &len, NULL));
        CHECK(len > 1 && len < 256);
        OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &len, name));
        CHECK_EQ(len, strlen(name) + 1);
        OK(MPI_Session_get_pset_info(s, name, &info));
        OK(MPI_Info_get(info, "mpi_size", 255, name, &flag));
        CHECK(flag && atoi(name) > 0);
        OK(MPI_Info_free(&info));
    }
#if STRICT
    // 11.3.2: a name that does not fit is cut, and the length is what it needs.
    memset(name, 'x', sizeof name);
    len = 3;
    OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, &len, name));
    CHECK(strncmp(name, "mp", 3) == 0 && name[3] == 'x');
    CHECK_EQ(len, strlen("mpi://WORLD") + 1);
    CHECK_CLASS(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, n, &len, name), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_pset_info(s, "mpi://nothing", &info), MPI_ERR_ARG);
#endif
    // 7.3.2: a name that does not exist gives MPI_GROUP_NULL.
    self = MPI_GROUP_EMPTY;
    CHECK_CLASS(MPI_Group_from_session_pset(s, "mpi://nothing", &self), MPI_ERR_ARG);
    CHECK(self == MPI_GROUP_NULL);
    OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &world));
    OK(MPI_Group_from_session_pset(s, "mpi://SELF", &self));
    OK(MPI_Group_size(self, &size));
    CHECK_EQ(size, 1);
    OK(MPI_Comm_create_from_group(world, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    OK(MPI_Comm_rank(c, &rank));
    OK(MPI_Comm_size(c, &size));
    check_rank = rank;
    // 9.1.2: of the predefined attributes communicators of a session, and what is derived from them, have MPI_TAG_UB only.
    int *value;
    OK(MPI_Comm_get_attr(c, MPI_TAG_UB, &value, &flag));
    CHECK(flag && *value >= 32767);
#if STRICT
    MPI_Comm derived;
    int others[] = {MPI_HOST, MPI_IO, MPI_WTIME_IS_GLOBAL, MPI_APPNUM, MPI_LASTUSEDCODE, MPI_UNIVERSE_SIZE};
    OK(MPI_Comm_dup(c, &derived));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        OK(MPI_Comm_get_attr(i % 2 ? c : derived, others[i], &value, &flag));
        CHECK_EQ(flag, 0);
    }
    OK(MPI_Comm_free(&derived));
#endif
    // Of no communicator's name is anything said.
    OK(MPI_Comm_get_name(c, name, &len));
    CHECK_EQ(len, 0);
    CHECK_EQ(name[0], 0);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, right, 5, &got, 1, MPI_INT, left, 5, c, MPI_STATUS_IGNORE));
    CHECK_EQ(got, left);
    if (size > 1) {
        MPI_Group low, high;
        MPI_Comm inter;
        int zero = 0, mine = rank == 0;
        OK(MPI_Group_incl(world, 1, &zero, &low));
        OK(MPI_Group_excl(world, 1, &zero, &high));
        OK(MPI_Intercomm_create_from_groups(mine ? low : high, 0, mine ? high : low, 0, "two",
                                            MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
        OK(MPI_Comm_remote_size(inter, &n));
        CHECK_EQ(n, mine ? size - 1 : 1);
        OK(MPI_Comm_free(&inter));
        OK(MPI_Group_free(&low));
        OK(MPI_Group_free(&high));
    }
    OK(MPI_Comm_free(&c));
    OK(MPI_Group_free(&self));
    OK(MPI_Group_free(&world));
    OK(MPI_Session_finalize(&s));
    CHECK(s == MPI_SESSION_NULL);
    return check_failed != 0;
}
