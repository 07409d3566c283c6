// run: n=1,2,3 timeout=120
/* Spawning (MPI 5.0, 11.8): the program starts itself. Messages, collectives, merging and
 * disconnecting between parents and children, and what is refused. */
#include "check.h"
#include <unistd.h>

#define CHILDREN 2

static char self[4096];

/* Messages both ways between all pairs, and collectives of the intercommunicator. */
static void talk(MPI_Comm inter, int parent) {
    int rank, size, remote, i, sum = -1, got, root;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &size));
    OK(MPI_Comm_remote_size(inter, &remote));
    for (i = 0; i < remote; i++) {
        int out = 100 * parent + rank, in = -1;
        OK(MPI_Sendrecv(&out, 1, MPI_INT, i, 3, &in, 1, MPI_INT, i, 3, inter, MPI_STATUS_IGNORE));
        CHECK_EQ(in, 100 * !parent + i);
    }
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter));
    CHECK_EQ(sum, remote * (remote - 1) / 2);
    root = !parent ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    got = parent ? 4711 : 0;
    OK(MPI_Bcast(&got, 1, MPI_INT, root, inter));
    CHECK_EQ(got, 4711);
    OK(MPI_Barrier(inter));
}

/* Long messages and every kind of collective on the union of both groups. */
static void merged(MPI_Comm inter, int parent) {
    static double out[30000], in[30000];
    MPI_Comm all, again, half;
    int rank, size, i, compared, left, right, *numbers, mine;
    OK(MPI_Intercomm_merge(inter, !parent, &all));
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    mine = rank;
    numbers = malloc((size_t)size * sizeof *numbers);
    OK(MPI_Allgather(&mine, 1, MPI_INT, numbers, 1, MPI_INT, all));
    for (i = 0; i < size; i++) CHECK_EQ(numbers[i], i);
    for (i = 0; i < 30000; i++) out[i] = rank + i;
    left = (rank + size - 1) % size, right = (rank + 1) % size;
    OK(MPI_Sendrecv(out, 30000, MPI_DOUBLE, right, 1, in, 30000, MPI_DOUBLE, left, 1, all, MPI_STATUS_IGNORE));
    for (i = 0; i < 30000; i++) CHECK(in[i] == left + i);
    OK(MPI_Allreduce(out, in, 30000, MPI_DOUBLE, MPI_MAX, all));
    for (i = 0; i < 30000; i++) CHECK(in[i] == size - 1 + i);
    OK(MPI_Comm_dup(all, &again));
    OK(MPI_Comm_compare(all, again, &compared));
    CHECK_EQ(compared, MPI_CONGRUENT);
    OK(MPI_Comm_split(again, rank % 2, -rank, &half));
    OK(MPI_Barrier(half));
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_split_type(again, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &half));
    OK(MPI_Comm_size(half, &left));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &right));
    CHECK(left <= right);
    OK(MPI_Barrier(half));
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_free(&again));
    free(numbers);
    OK(MPI_Comm_free(&all));
}

/* A file that parents and children have open together. */
static void file(MPI_Comm inter, int parent) {
    MPI_Comm all;
    MPI_File fh;
    int rank, size, i, *in;
    char name[64] = "";
    OK(MPI_Intercomm_merge(inter, !parent, &all));
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    if (rank == 0) snprintf(name, sizeof name, "spawn-%d.tmp", (int)getpid());
    OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, all));
    OK(MPI_File_open(all, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &fh));
    OK(MPI_File_write_ordered(fh, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(fh));
    OK(MPI_Barrier(all));
    OK(MPI_File_sync(fh));
    in = malloc((size_t)size * sizeof *in);
    OK(MPI_File_read_at_all(fh, 0, in, size, MPI_INT, MPI_STATUS_IGNORE));
    for (i = 0; i < size; i++) CHECK_EQ(in[i], i);
    free(in);
    OK(MPI_File_close(&fh));
    OK(MPI_Comm_free(&all));
}

/* A window of memory of both. */
static void window(MPI_Comm inter, int parent) {
    MPI_Comm all;
    MPI_Win win;
    long *memory, one = 1;
    int rank, size, i;
    OK(MPI_Intercomm_merge(inter, !parent, &all));
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    OK(MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, all, &memory, &win));
    *memory = 0;
    OK(MPI_Win_fence(0, win));
    for (i = 0; i < size; i++) OK(MPI_Accumulate(&one, 1, MPI_LONG, i, 0, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    CHECK(*memory == size);
    OK(MPI_Barrier(all));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(all));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    if (rank == 0) CHECK(*memory == 2 * size);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&all));
}

/* The launcher reports what its children have found wrong. */
static void tell(MPI_Comm inter, int parent) {
    int theirs = 0;
    OK(MPI_Allreduce(&check_failed, &theirs, 1, MPI_INT, MPI_SUM, inter));
    if (parent) CHECK_EQ(theirs, 0);
}

static void child(MPI_Comm parent, int argc, char **argv) {
    char name[MPI_MAX_OBJECT_NAME];
    int len, size;
    MPI_Comm again;
    CHECK_EQ(argc, 4);
    CHECK(strcmp(argv[2], "two words") == 0 && strcmp(argv[3], "") == 0);
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK_EQ(size, CHILDREN);
    OK(MPI_Comm_get_name(parent, name, &len));
    CHECK(strcmp(name, "MPI_COMM_PARENT") == 0);
    OK(MPI_Comm_get_parent(&again));
    CHECK(again == parent);
    talk(parent, 0);
    merged(parent, 0);
    file(parent, 0);
    window(parent, 0);
    tell(parent, 0);
    OK(MPI_Comm_disconnect(&parent));
    CHECK(parent == MPI_COMM_NULL);
    OK(MPI_Comm_get_parent(&again));
    CHECK(again == MPI_COMM_NULL);
}

static void spawns(int rank) {
    char *args[] = {"child", "two words", "", NULL};
    int codes[CHILDREN] = {-1, -1}, i, remote;
    MPI_Comm inter;
    OK(MPI_Comm_spawn(self, args, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes));
    for (i = 0; i < CHILDREN; i++) CHECK_EQ(codes[i], MPI_SUCCESS);
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK_EQ(remote, CHILDREN);
    talk(inter, 1);
    merged(inter, 1);
    file(inter, 1);
    window(inter, 1);
    tell(inter, 1);
    OK(MPI_Comm_disconnect(&inter));
    CHECK(inter == MPI_COMM_NULL);
    (void)rank;
}

/* Two programs in one start; the children of one of them are told apart by MPI_APPNUM. */
static void spawns_several(int size) {
    char *none[] = {"several", NULL}, *commands[] = {self, self}, **args[] = {none, none};
    int counts[] = {1, 1}, remote, i, *number, flag, root = size - 1, rank;
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm inter;
    (void)number, (void)flag;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    /* What stands at the root alone need not be anywhere else. */
    if (rank == root)
        OK(MPI_Comm_spawn_multiple(2, commands, args, counts, infos, root, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    else OK(MPI_Comm_spawn_multiple(-1, NULL, NULL, NULL, NULL, root, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK_EQ(remote, 2);
    if (rank == root)
        for (i = 0; i < 2; i++) {
            int app = -1;
            OK(MPI_Recv(&app, 1, MPI_INT, i, 0, inter, MPI_STATUS_IGNORE));
            CHECK_EQ(app, i);
        }
    tell(inter, 1);
    OK(MPI_Comm_disconnect(&inter));
}

static void one_of_several(MPI_Comm parent, int size) {
    int *number = NULL, flag = 0;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag));
    CHECK(flag);
    OK(MPI_Comm_remote_size(parent, &size));
    OK(MPI_Send(number, 1, MPI_INT, size - 1, 0, parent));
    tell(parent, 0);
    OK(MPI_Comm_disconnect(&parent));
}

static void refused(int rank) {
    MPI_Comm inter = MPI_COMM_WORLD;
    int codes[2] = {0, 0};
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK_CLASS(MPI_Comm_spawn("./no_such_program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes),
                MPI_ERR_SPAWN);
    CHECK(inter == MPI_COMM_NULL);
    if (rank == 0) CHECK(codes[0] != MPI_SUCCESS && codes[1] != MPI_SUCCESS);
    CHECK_CLASS(MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE),
                MPI_ERR_SPAWN);
    CHECK_CLASS(MPI_Comm_spawn(self, MPI_ARGV_NULL, 0, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE),
                MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 99, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE),
                MPI_ERR_ROOT);
}

int main(int argc, char **argv) {
    MPI_Comm parent;
    int rank, size, round;
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len < 0) return 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    check_rank = rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        if (argc == 2) one_of_several(parent, size);
        else child(parent, argc, argv);
        return check_result();
    }
    refused(rank);
    for (round = 0; round < 2; round++) spawns(rank);
    spawns_several(size);
    return check_result();
}
