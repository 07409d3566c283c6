/* System calls that fail on one rank during a collective call on a file: every rank must get the
 * same error, none waits for another, and the next collective calls work.
 *
 *     one_rank_fails DIRECTORY [HINT]     HINT: of romio_cb_write and romio_cb_read
 *     one_rank_fails DIRECTORY refresh    the ranks are on two hosts, each of which keeps pages of its own
 *
 * The fault is injected with seccomp: a thread of the rank decides about each call and lets all but
 * one pass. Ends with 77 where the kernel does not permit that. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BLOCK = 1024, BYTES = 64 * BLOCK };

static int rank, size;
static const char *hint = "automatic";
static char path[4096], scene[256], data[BYTES];
static MPI_File file;

static void must(int well, const char *what)
{
    if (well)
        return;
    fprintf(stderr, "rank %d, %s: %s\n", rank, scene, what);
    exit(1);
}

static void ok(int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length);
    must(code == MPI_SUCCESS, text);
}

/* The call that fails from now on: its number, how many of its kind pass before, why it fails, and
 * whether it has. */
static volatile int failing_call = -1, passing, reason, has_failed;
static volatile int listener;

/* Two calls that do the same count as one. */
static int kind_of(int call)
{
#ifdef SYS_open
    if (call == SYS_open)
        return SYS_openat;
#endif
#ifdef SYS_unlink
    if (call == SYS_unlink)
        return SYS_unlinkat;
#endif
    if (call == SYS_fstat)
        return SYS_statx;
    return call;
}

static void *supervise(void *unused)
{
    for (;;) {
        struct seccomp_notif asked = {0};
        struct seccomp_notif_resp answer = {0};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked))
            continue;
        answer.id = asked.id;
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        if (kind_of(asked.data.nr) == failing_call && passing-- <= 0) {
            has_failed = 1;
            answer.flags = 0;
            answer.error = -reason;
        }
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    return unused;
}

/* From now on these calls of this thread, and of threads that it makes, ask the supervisor. */
static int watch_calls(void)
{
    static const int calls[] = {SYS_openat, SYS_fstat, SYS_statx, SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_pwrite64,
                                SYS_pread64, SYS_close, SYS_unlinkat, SYS_fadvise64,
#ifdef SYS_open
                                SYS_open,
#endif
#ifdef SYS_unlink
                                SYS_unlink,
#endif
    };
    enum { CALLS = sizeof calls / sizeof calls[0] };
    struct sock_filter code[CALLS + 3];
    struct sock_fprog program = {CALLS + 3, code};
    pthread_t thread;
    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
    for (int i = 0; i < CALLS; i++)
        code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], CALLS - i, 0);
    code[CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[CALLS + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    /* The supervisor must exist before the filter does: it would have to ask itself. */
    listener = -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return 0;
    if (pthread_create(&thread, NULL, supervise, NULL))
        return 0;
    listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    return listener >= 0;
}

/* The system call `call` fails on one rank with this error, after `before` of its kind. */
static void next_fails(const char *name, int on, int call, int before, int error)
{
    snprintf(scene, sizeof scene, "%s", name);
    ok(MPI_Barrier(MPI_COMM_WORLD));
    if (rank != on)
        return;
    reason = error;
    passing = before;
    has_failed = 0;
    failing_call = call;
}

/* Every rank must have got this class and the same sentence, which begins with the words; the
 * injected call must have been made. */
static void all_hear(int code, int class, const char *words)
{
    char text[MPI_MAX_ERROR_STRING] = "", first[MPI_MAX_ERROR_STRING];
    int got, length;
    must(code != MPI_SUCCESS, "the call succeeded");
    must(failing_call == -1 || has_failed, "the system call that should fail was not made");
    failing_call = -1;
    MPI_Error_class(code, &got);
    MPI_Error_string(code, text, &length);
    memcpy(first, text, sizeof first);
    ok(MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD));
    must(!strcmp(text, first), text);
    must(strstr(text, words) && strstr(text, path), text);
    must(got == class, text);
    if (rank == 0)
        printf("%s: %s\n", scene, text);
}

static int opened(int mode)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", hint);
    MPI_Info_set(info, "romio_cb_read", hint);
    int code = MPI_File_open(MPI_COMM_WORLD, path, mode, info, &file);
    MPI_Info_free(&info);
    must(code == MPI_SUCCESS || file == MPI_FILE_NULL, "a file that was not opened has a handle");
    return code;
}

/* Blocks of the ranks in turn, so that ranks access the file for each other where the hint says so. */
static void see_blocks(void)
{
    MPI_Datatype type;
    MPI_Type_vector(1, BLOCK, BLOCK, MPI_BYTE, &type);
    MPI_Type_create_resized(type, 0, (MPI_Aint)BLOCK * size, &type);
    MPI_Type_commit(&type);
    ok(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&type);
}

static void fill(int seed)
{
    for (int i = 0; i < BYTES; i++)
        data[i] = (char)(i * 7 + rank * 31 + seed);
}

/* What was written before is there, and all ranks are in step. */
static void still_works(void)
{
    static char back[BYTES];
    fill(1);
    ok(MPI_File_read_at_all(file, 0, back, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    must(!memcmp(back, data, BYTES), "what was written before is lost");
}

static void opening(void)
{
    const int write = MPI_MODE_CREATE | MPI_MODE_RDWR;
    next_fails("create", 0, SYS_openat, 0, EACCES);
    all_hear(opened(write), MPI_ERR_ACCESS, "rank 0 cannot create");
    next_fails("open", 1, SYS_openat, 0, EIO);
    all_hear(opened(write | MPI_MODE_EXCL), MPI_ERR_IO, "rank 1 cannot open");
    /* No rank has opened the file that rank 0 had made: it is not there. */
    ok(opened(write | MPI_MODE_EXCL));
    ok(MPI_File_close(&file));
    /* Without MPI_MODE_CREATE, MPI_MODE_EXCL makes no file: the one that was there was removed. */
    next_fails("open what is there", 1, SYS_openat, 0, EIO);
    all_hear(opened(MPI_MODE_RDWR | MPI_MODE_EXCL), MPI_ERR_IO, "rank 1 cannot open");
    ok(opened(MPI_MODE_RDWR));
    ok(MPI_File_close(&file));
    /* The first call belongs to the opening. */
    next_fails("append", 1, SYS_statx, 1, EIO);
    all_hear(opened(write | MPI_MODE_APPEND), MPI_ERR_IO, "rank 1 cannot find the end of");
}

static void sizes(void)
{
    next_fails("set_size", 0, SYS_ftruncate, 0, EIO);
    all_hear(MPI_File_set_size(file, 10), MPI_ERR_IO, "rank 0 cannot set the size of");
    next_fails("preallocate", 0, SYS_fallocate, 0, ENOSPC);
    all_hear(MPI_File_preallocate(file, 1 << 20), MPI_ERR_NO_SPACE, "rank 0 cannot reserve storage for");
    next_fails("sync", 1, SYS_fsync, 0, EIO);
    all_hear(MPI_File_sync(file), MPI_ERR_IO, "rank 1 cannot sync");
    still_works();
}

static void accesses(void)
{
    MPI_Request request;
    const MPI_Offset behind = BYTES;
    const char *cannot_write = "rank 1 cannot write", *cannot_read = "rank 1 cannot read";
    static char back[BYTES];
    fill(2);
    next_fails("write_at_all", 1, SYS_pwrite64, 0, EIO);
    all_hear(MPI_File_write_at_all(file, behind, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_IO, cannot_write);
    next_fails("write_all", 1, SYS_pwrite64, 0, EDQUOT);
    ok(MPI_File_seek(file, behind, MPI_SEEK_SET));
    all_hear(MPI_File_write_all(file, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_QUOTA, cannot_write);
    next_fails("iwrite_at_all", 1, SYS_pwrite64, 0, ENOSPC);
    ok(MPI_File_iwrite_at_all(file, behind, data, BYTES, MPI_BYTE, &request));
    all_hear(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE, cannot_write);
    next_fails("write_at_all_begin", 1, SYS_pwrite64, 0, EIO);
    ok(MPI_File_write_at_all_begin(file, behind, data, BYTES, MPI_BYTE));
    all_hear(MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE), MPI_ERR_IO, cannot_write);
    next_fails("write_ordered", 1, SYS_pwrite64, 0, EIO);
    ok(MPI_File_seek_shared(file, behind, MPI_SEEK_SET));
    all_hear(MPI_File_write_ordered(file, data, BYTES / size, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_IO, cannot_write);
    next_fails("read_at_all", 1, SYS_pread64, 0, EIO);
    all_hear(MPI_File_read_at_all(file, 0, back, BYTES, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_IO, cannot_read);
    still_works();
}

static void refreshing(void)
{
    const char *cannot = "rank 1 cannot refresh";
    next_fails("refresh after opening", 1, SYS_fadvise64, 0, EIO);
    all_hear(opened(MPI_MODE_CREATE | MPI_MODE_RDWR), MPI_ERR_IO, cannot);
    ok(opened(MPI_MODE_CREATE | MPI_MODE_RDWR));
    next_fails("refresh after set_size", 1, SYS_fadvise64, 0, EIO);
    all_hear(MPI_File_set_size(file, 10), MPI_ERR_IO, cannot);
    next_fails("refresh after sync", 1, SYS_fadvise64, 0, EIO);
    all_hear(MPI_File_sync(file), MPI_ERR_IO, cannot);
    ok(MPI_File_close(&file));
}

static void closing(void)
{
    next_fails("close", 1, SYS_close, 0, EDQUOT);
    all_hear(MPI_File_close(&file), MPI_ERR_QUOTA, "rank 1 cannot close");
    must(file == MPI_FILE_NULL, "a closed file has a handle");
    ok(opened(MPI_MODE_RDWR));
    see_blocks();
    still_works();
    ok(MPI_File_close(&file));
    ok(opened(MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE));
    next_fails("delete on close", 0, SYS_unlinkat, 0, EACCES);
    all_hear(MPI_File_close(&file), MPI_ERR_ACCESS, "rank 0 cannot delete");
}

static void all_calls(void)
{
    opening();
    ok(opened(MPI_MODE_CREATE | MPI_MODE_RDWR));
    see_blocks();
    fill(1);
    ok(MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    sizes();
    accesses();
    closing();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    must(argc > 1, "a directory must be named");
    snprintf(path, sizeof path, "%s/data", argv[1]);
    hint = argc > 2 ? argv[2] : hint;
    int watched = rank > 1 || watch_calls(), all;
    MPI_Allreduce(&watched, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all) {
        MPI_Finalize();
        return 77;
    }
    if (!strcmp(hint, "refresh"))
        refreshing();
    else
        all_calls();
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
