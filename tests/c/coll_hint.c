/* The hint kw_coll: a communicator's own choice of collective algorithms. */
// run: n=3,4 abi=one
#include "check.h"

#define COUNT 1000

static MPI_Comm with(const char *rows)
{
    MPI_Info info;
    MPI_Comm made;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "kw_coll", rows));
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &made));
    OK(MPI_Info_free(&info));
    return made;
}

static int keeps(MPI_Comm comm, const char *rows)
{
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL] = "";
    int flag;
    OK(MPI_Comm_get_info(comm, &info));
    OK(MPI_Info_get(info, "kw_coll", sizeof value - 1, value, &flag));
    OK(MPI_Info_free(&info));
    return flag && strcmp(value, rows) == 0;
}

static void works(MPI_Comm comm)
{
    int rank, size, one[COUNT], sum[COUNT];
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    for (int i = 0; i < COUNT; i++)
        one[i] = rank + i;
    OK(MPI_Allreduce(one, sum, COUNT, MPI_INT, MPI_SUM, comm));
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(sum[i], size * i + size * (size - 1) / 2);
    OK(MPI_Bcast(one, COUNT, MPI_INT, size - 1, comm));
    CHECK_EQ(one[1], size);
}

/* Ranks that give different rows are told so, all of them, and there is no communicator. */
static void differ(const char *mine)
{
    MPI_Info info;
    MPI_Comm made = MPI_COMM_NULL;
    char text[MPI_MAX_ERROR_STRING];
    int len, code;
    OK(MPI_Info_create(&info));
    if (mine) OK(MPI_Info_set(info, "kw_coll", mine));
    code = MPI_Comm_dup_with_info(check_comm, info, &made);
    CHECK_EQ(check_class(code), MPI_ERR_INFO_VALUE);
    OK(MPI_Error_string(code, text, &len));
    if (!strstr(text, "on rank 0") || !strstr(text, "on rank 1") || !strstr(text, "linear")) FAILED("'%s' names no ranks and rows", text);
    CHECK_CLASS(MPI_Comm_set_info(check_comm, info), MPI_ERR_INFO_VALUE);
    OK(MPI_Info_free(&info));
    works(check_comm);
}

int main(int argc, char **argv)
{
    static const char *const rows[] = {
        "allreduce - - any any any ring", "allreduce - - any any any linear; bcast - - any any any linear",
        "bcast 100 - any any any scatter_ring; bcast - - any any any binomial", "allreduce - - any any any rabenseifner"};
    MPI_Comm comm, copy;
    MPI_Info info;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        comm = with(rows[i]);
        CHECK(keeps(comm, rows[i]));
        works(comm);
        OK(MPI_Comm_dup(comm, &copy)); /* hints go with a duplicate */
        CHECK(keeps(copy, rows[i]));
        works(copy);
        OK(MPI_Comm_free(&copy));
        OK(MPI_Comm_free(&comm));
    }
    comm = with("allreduce - - any any any nosuch"); /* a hint that cannot be read is not taken */
    CHECK(!keeps(comm, "allreduce - - any any any nosuch"));
    works(comm);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "kw_coll", rows[0]));
    OK(MPI_Comm_set_info(comm, info));
    OK(MPI_Info_free(&info));
    CHECK(keeps(comm, rows[0]));
    works(comm);
    OK(MPI_Comm_free(&comm));
#if STRICT
    OK(MPI_Comm_set_errhandler(check_comm, MPI_ERRORS_RETURN));
    differ(check_rank == 1 ? "bcast - - any any any linear" : NULL);
    differ(check_rank == 1 ? "bcast - - any any any linear" : "bcast - - any any any binomial");
#endif
    return check_end();
}
