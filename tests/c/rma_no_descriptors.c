// run: n=2,3 timeout=30 paths=one abi=one
/* The last rank has no file descriptor left when windows are made that share memory: all ranks get the error at once, with the
 * rank and its reason; where memory need not be shared, the window uses messages. Later windows share memory again. */
#include "rma.h"
#include <sys/resource.h>

static int me, size;

static void set_descriptors(rlim_t most) {
    struct rlimit limit;
    if (me != size - 1) return;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void check_sum(MPI_Win win, const long *mine) {
    long one = 1;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    if (me == 0) CHECK_EQ(*mine, size);
}

int main(int argc, char **argv) {
    char text[MPI_MAX_ERROR_STRING], rank[40];
    long *mine = NULL;
    int length, code;
    MPI_Win win;
    const char *paths = getenv("KW_PATHS");
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* Only our own library on one host shares memory by opening files. */
    if (!STRICT || (paths && !strstr(paths, "shm"))) return check_end();
    set_descriptors(3);
    code = MPI_Win_allocate_shared(sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
    CHECK_CLASS(code, MPI_ERR_RMA_SHARED);
    MPI_Error_string(code, text, &length);
    snprintf(rank, sizeof rank, "on rank %d: ", size - 1);
    CHECK(me == size - 1 || strstr(text, rank));
    CHECK(strstr(text, "open files"));
    win = win_allocated(MPI_COMM_WORLD, &mine, sizeof *mine, sizeof *mine);
    *mine = 0;
    check_sum(win, mine);
    win_free(&win);
    set_descriptors(1 << 10);
    OK(MPI_Win_allocate_shared(sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    *mine = 0;
    check_sum(win, mine);
    win_free(&win);
    return check_end();
}
