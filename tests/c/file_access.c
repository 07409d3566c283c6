// run: n=1,2,4 timeout=120 paths=one
/* Every data access function of MPI 5.0, 14.4, and its large-count twin: what is written is what is read, where it should
 * lie in the file, with the count in the status; file pointers move by it. */
#include "file.h"

#define N 1000

static MPI_File fh;
static int values[N], got[N];
static MPI_Status status;
static MPI_Request request;

static void set(int seed) {
    int i;
    for (i = 0; i < N; i++) values[i] = seed * 100000 + check_rank * 10000 + i, got[i] = -1;
}

/* What rank `rank` wrote under this seed. */
static void expect(int seed, int rank, int n) {
    int i, wrong = -1;
    for (i = 0; i < n && wrong < 0; i++)
        if (got[i] != seed * 100000 + rank * 10000 + i) wrong = i;
    if (wrong >= 0) FAILED("seed %d: element %d is %d", seed, wrong, got[wrong]);
    for (i = n; i < N && wrong < 0; i++)
        if (got[i] != -1) wrong = i;
    if (wrong >= 0) FAILED("seed %d: element %d was written behind the end", seed, wrong);
}

static void counted(int n) {
    CHECK_EQ(count_of(&status, MPI_INT), n);
    memset(&status, 0x55, sizeof status);
}

static MPI_Offset position(void) {
    MPI_Offset at = -1;
    OK(MPI_File_get_position(fh, &at));
    return at;
}

static MPI_Offset shared_position(void) {
    MPI_Offset at = -1;
    OK(MPI_File_get_position_shared(fh, &at));
    return at;
}

static void fresh(int number) {
    fh = file_open(number);
    OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
}

static void everybody(void) { OK(MPI_Barrier(check_comm)); }

/* Explicit offsets. `NAME` is an access, `COUNT` what counts its elements. */
#define AT(number, suffix, all)                                                                       \
    static void at_##number(void) {                                                                   \
        MPI_Offset mine = (MPI_Offset)check_rank * N, next = (MPI_Offset)((check_rank + 1) % check_size) * N; \
        fresh(number);                                                                                \
        set(number);                                                                                  \
        OK(MPI_File_write_at##all##suffix(fh, mine, values, N, MPI_INT, &status));                    \
        counted(N);                                                                                   \
        everybody();                                                                                  \
        OK(MPI_File_read_at##all##suffix(fh, next, got, N, MPI_INT, &status));                        \
        counted(N);                                                                                   \
        expect(number, (check_rank + 1) % check_size, N);                                             \
        everybody();                                                                                  \
        set(number + 50);                                                                             \
        OK(MPI_File_iwrite_at##all##suffix(fh, mine, values, N / 2, MPI_INT, &request));              \
        OK(MPI_Wait(&request, &status));                                                              \
        CHECK(request == MPI_REQUEST_NULL);                                                           \
        counted(N / 2);                                                                               \
        everybody();                                                                                  \
        OK(MPI_File_iread_at##all##suffix(fh, next, got, N / 2, MPI_INT, &request));                  \
        OK(MPI_Wait(&request, &status));                                                              \
        counted(N / 2);                                                                               \
        expect(number + 50, (check_rank + 1) % check_size, N / 2);                                    \
        CHECK_EQ(position(), 0);                                                                      \
        CHECK_EQ(shared_position(), 0);                                                               \
        file_close(&fh);                                                                              \
    }

AT(1, , )
AT(2, _c, )
AT(3, , _all)
AT(4, _c, _all)

/* Individual file pointers. */
#define POINTER(number, suffix, all)                                                                  \
    static void pointer_##number(void) {                                                              \
        MPI_Offset mine = (MPI_Offset)check_rank * 2 * N;                                             \
        MPI_Offset next = (MPI_Offset)((check_rank + 1) % check_size) * 2 * N;                        \
        fresh(number);                                                                                \
        set(number);                                                                                  \
        OK(MPI_File_seek(fh, mine, MPI_SEEK_SET));                                                    \
        OK(MPI_File_write##all##suffix(fh, values, N, MPI_INT, &status));                             \
        counted(N);                                                                                   \
        CHECK_EQ(position(), mine + N);                                                               \
        set(number + 50);                                                                             \
        OK(MPI_File_iwrite##all##suffix(fh, values, N, MPI_INT, &request));                           \
        CHECK_EQ(position(), mine + 2 * N);                                                           \
        OK(MPI_Wait(&request, &status));                                                              \
        counted(N);                                                                                   \
        everybody();                                                                                  \
        OK(MPI_File_seek(fh, next - position(), MPI_SEEK_CUR));                                       \
        CHECK_EQ(position(), next);                                                                   \
        OK(MPI_File_read##all##suffix(fh, got, N, MPI_INT, &status));                                 \
        counted(N);                                                                                   \
        expect(number, (check_rank + 1) % check_size, N);                                             \
        OK(MPI_File_iread##all##suffix(fh, got, N, MPI_INT, &request));                               \
        CHECK_EQ(position(), next + 2 * N);                                                           \
        OK(MPI_Wait(&request, &status));                                                              \
        counted(N);                                                                                   \
        expect(number + 50, (check_rank + 1) % check_size, N);                                        \
        everybody();                                                                                  \
        OK(MPI_File_seek(fh, -10, MPI_SEEK_END));                                                     \
        CHECK_EQ(position(), (MPI_Offset)check_size * 2 * N - 10);                                    \
        set(number + 70);                                                                             \
        OK(MPI_File_read##all##suffix(fh, got, 20, MPI_INT, &status));                                \
        counted(10);                                                                                  \
        CHECK_EQ(got[9], (number + 50) * 100000 + (check_size - 1) * 10000 + N - 1);                  \
        CHECK_EQ(got[10], -1);                                                                        \
        CHECK_EQ(shared_position(), 0);                                                               \
        file_close(&fh);                                                                              \
    }

POINTER(5, , )
POINTER(6, _c, )
POINTER(7, , _all)
POINTER(8, _c, _all)

/* The shared file pointer: every rank's record once, in some order. */
static void records(int number, int per_rank) {
    int seen[64] = {0}, i, k;
    OK(MPI_File_sync(fh));
    everybody();
    for (i = 0; i < check_size * per_rank; i++) {
        OK(MPI_File_read_at(fh, (MPI_Offset)i * 10, got, 10, MPI_INT, &status));
        counted(10);
        k = (got[0] - number * 100000) / 10000;
        CHECK(k >= 0 && k < check_size && got[9] == got[0] + 9);
        if (k >= 0 && k < 64) seen[k]++;
    }
    for (k = 0; k < check_size; k++) CHECK_EQ(seen[k], per_rank);
}

#define SHARED(number, suffix)                                                                        \
    static void shared_##number(void) {                                                               \
        int i, before = -1;                                                                           \
        fresh(number);                                                                                \
        set(number);                                                                                  \
        for (i = 0; i < 3; i++) {                                                                     \
            OK(MPI_File_write_shared##suffix(fh, values, 10, MPI_INT, &status));                      \
            counted(10);                                                                              \
            OK(MPI_File_iwrite_shared##suffix(fh, values, 10, MPI_INT, &request));                    \
            OK(MPI_Wait(&request, &status));                                                          \
            counted(10);                                                                              \
        }                                                                                             \
        everybody();                                                                                  \
        CHECK_EQ(shared_position(), check_size * 60);                                                 \
        records(number, 6);                                                                           \
        everybody();                                                                                  \
        OK(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));                                                \
        CHECK_EQ(shared_position(), 0);                                                               \
        everybody();                                                                                  \
        for (i = 0; i < 3; i++) {                                                                     \
            OK(MPI_File_read_shared##suffix(fh, got, 10, MPI_INT, &status));                          \
            counted(10);                                                                              \
            CHECK(got[9] == got[0] + 9);                                                              \
            OK(MPI_File_iread_shared##suffix(fh, got, 10, MPI_INT, &request));                        \
            OK(MPI_Wait(&request, &status));                                                          \
            counted(10);                                                                              \
            CHECK(got[9] == got[0] + 9);                                                              \
        }                                                                                             \
        everybody();                                                                                  \
        CHECK_EQ(shared_position(), check_size * 60);                                                 \
        everybody();                                                                                  \
        OK(MPI_File_read_shared##suffix(fh, &before, 1, MPI_INT, &status));                           \
        counted(0);                                                                                   \
        CHECK_EQ(before, -1);                                                                         \
        file_close(&fh);                                                                              \
    }

SHARED(9, )
SHARED(10, _c)

/* In the order of ranks, as many elements as the rank plus one. */
#define ORDERED(number, suffix)                                                                       \
    static void ordered_##number(void) {                                                              \
        int total = check_size * (check_size + 1) / 2, mine = check_rank + 1;                         \
        fresh(number);                                                                                \
        set(number);                                                                                  \
        OK(MPI_File_write_ordered##suffix(fh, values, mine, MPI_INT, &status));                       \
        counted(mine);                                                                                \
        OK(MPI_File_write_ordered_begin##suffix(fh, values, mine, MPI_INT));                          \
        OK(MPI_File_write_ordered_end(fh, values, &status));                                          \
        counted(mine);                                                                                \
        everybody();                                                                                  \
        CHECK_EQ(shared_position(), 2 * total);                                                       \
        CHECK_EQ(position(), 0);                                                                      \
        OK(MPI_File_read_at_all(fh, total + check_rank * (check_rank + 1) / 2, got, mine, MPI_INT, &status)); \
        expect(number, check_rank, mine);                                                             \
        OK(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));                                                \
        set(number);                                                                                  \
        OK(MPI_File_read_ordered##suffix(fh, got, mine, MPI_INT, &status));                           \
        counted(mine);                                                                                \
        expect(number, check_rank, mine);                                                             \
        set(number);                                                                                  \
        OK(MPI_File_read_ordered_begin##suffix(fh, got, mine, MPI_INT));                              \
        OK(MPI_File_read_ordered_end(fh, got, &status));                                              \
        counted(mine);                                                                                \
        expect(number, check_rank, mine);                                                             \
        everybody();                                                                                  \
        CHECK_EQ(shared_position(), 2 * total);                                                       \
        file_close(&fh);                                                                              \
    }

ORDERED(11, )
ORDERED(12, _c)

/* Split collective access. */
#define SPLIT(number, suffix)                                                                         \
    static void split_##number(void) {                                                                \
        MPI_Offset mine = (MPI_Offset)check_rank * 2 * N;                                             \
        fresh(number);                                                                                \
        set(number);                                                                                  \
        OK(MPI_File_write_at_all_begin##suffix(fh, mine, values, N, MPI_INT));                        \
        OK(MPI_File_write_at_all_end(fh, values, &status));                                           \
        counted(N);                                                                                   \
        OK(MPI_File_seek(fh, mine + N, MPI_SEEK_SET));                                                \
        OK(MPI_File_write_all_begin##suffix(fh, values, N, MPI_INT));                                 \
        OK(MPI_File_write_all_end(fh, values, &status));                                              \
        counted(N);                                                                                   \
        CHECK_EQ(position(), mine + 2 * N);                                                           \
        everybody();                                                                                  \
        OK(MPI_File_read_at_all_begin##suffix(fh, mine + N, got, N, MPI_INT));                        \
        OK(MPI_File_read_at_all_end(fh, got, &status));                                               \
        counted(N);                                                                                   \
        expect(number, check_rank, N);                                                                \
        set(number);                                                                                  \
        OK(MPI_File_seek(fh, mine, MPI_SEEK_SET));                                                    \
        OK(MPI_File_read_all_begin##suffix(fh, got, N, MPI_INT));                                     \
        OK(MPI_File_read_all_end(fh, got, &status));                                                  \
        counted(N);                                                                                   \
        expect(number, check_rank, N);                                                                \
        file_close(&fh);                                                                              \
    }

SPLIT(13, )
SPLIT(14, _c)

/* Many operations at once, completed together. */
static void many(void) {
    MPI_Request all[20];
    int data[20][50], back[20][50], i, k;
    fresh(15);
    for (i = 0; i < 20; i++) {
        for (k = 0; k < 50; k++) data[i][k] = check_rank * 1000000 + i * 1000 + k;
        OK(MPI_File_iwrite_at(fh, (check_rank * 20 + i) * 50, data[i], 50, MPI_INT, &all[i]));
    }
    OK(MPI_Waitall(20, all, MPI_STATUSES_IGNORE));
    for (i = 0; i < 20; i++)
        OK(MPI_File_iread_at(fh, (check_rank * 20 + i) * 50, back[i], 50, MPI_INT, &all[i]));
    OK(MPI_Waitall(20, all, MPI_STATUSES_IGNORE));
    CHECK(memcmp(data, back, sizeof data) == 0);
    file_close(&fh);
}

/* Nothing: zero elements, and nothing to see of the status. */
static void nothing(void) {
    fresh(16);
    OK(MPI_File_write_at_all(fh, 0, NULL, 0, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all(fh, 0, got, check_rank == 0 ? 5 : 0, MPI_INT, &status));
    counted(0);
    OK(MPI_File_write_ordered(fh, values, check_rank % 2, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_EQ(shared_position(), check_size / 2);
    file_close(&fh);
}

/* Many pieces of the ranks in turn, but the last rank has no data: it was killed by a panic. */
static void one_without_data(void) {
    MPI_Datatype turns;
    int n = check_rank < check_size - 1 ? N : 0;
    fresh(17);
    OK(MPI_Type_vector(N, 1, check_size, MPI_INT, &turns));
    OK(MPI_Type_commit(&turns));
    OK(MPI_File_set_view(fh, 4 * check_rank, MPI_INT, turns, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&turns));
    set(17);
    OK(MPI_File_write_at_all(fh, 0, values, n, MPI_INT, &status));
    counted(n);
    OK(MPI_File_read_at_all(fh, 0, got, n, MPI_INT, &status));
    counted(n);
    expect(17, check_rank, n);
    file_close(&fh);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    at_1(), at_2(), at_3(), at_4();
    pointer_5(), pointer_6(), pointer_7(), pointer_8();
    shared_9(), shared_10();
    ordered_11(), ordered_12();
    split_13(), split_14();
    many();
    nothing();
    one_without_data();
    return check_end();
}
