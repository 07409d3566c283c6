// run: n=1,2,4 timeout=60
/* Fences (MPI 5.0, 12.5.1): put, get and accumulate between any two ranks, datatypes on both sides, assertions, long data. */
#include "rma.h"

/* Everybody writes to everybody, reads from everybody, and adds to everybody. */
static void all_to_all(void) {
    enum { EACH = 3, MOST = 8 };
    int n = check_size, me = check_rank, from, i, round;
    int *memory, got[MOST][EACH], mine[MOST][EACH];
    MPI_Win win = win_allocated(check_comm, &memory, (size_t)n * (EACH + 1) * sizeof(int), sizeof(int));
    for (round = 0; round < 5; round++) {
        for (i = 0; i < n * (EACH + 1); i++) memory[i] = i < n * EACH ? -1 : 0;
        OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
        for (int to = 0; to < n; to++) {
            for (i = 0; i < EACH; i++) mine[to][i] = 10000 * round + 1000 * me + 10 * to + i;
            OK(MPI_Put(mine[to], EACH, MPI_INT, to, me * EACH, EACH, MPI_INT, win));
            OK(MPI_Accumulate(&me, 1, MPI_INT, to, n * EACH + to, 1, MPI_INT, MPI_SUM, win));
        }
        OK(MPI_Win_fence(MPI_MODE_NOSTORE, win));
        for (from = 0; from < n; from++)
            for (i = 0; i < EACH; i++) CHECK_EQ(memory[from * EACH + i], 10000 * round + 1000 * from + 10 * me + i);
        CHECK_EQ(memory[n * EACH + me], n * (n - 1) / 2);
        for (from = 0; from < n; from++) OK(MPI_Get(got[from], EACH, MPI_INT, from, me * EACH, EACH, MPI_INT, win));
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOPUT, win));
        for (from = 0; from < n; from++)
            for (i = 0; i < EACH; i++) CHECK_EQ(got[from][i], 10000 * round + 1000 * me + 10 * from + i);
    }
    win_free(&win);
}

/* A column of a matrix to a row of the next rank's, and back; a structure; an indexed type with a negative displacement. */
static void datatypes(void) {
    enum { N = 6 };
    int next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size, i, j;
    double memory[N][N], from[N][N], back[N][N];
    MPI_Datatype column, row, sparse, reversed;
    int lengths[3] = {1, 2, 1}, places[3] = {5, 1, 0}, one[N] = {1, 1, 1, 1, 1, 1}, down[N] = {5, 4, 3, 2, 1, 0};
    OK(MPI_Type_vector(N, 1, N, MPI_DOUBLE, &column));
    OK(MPI_Type_contiguous(N, MPI_DOUBLE, &row));
    OK(MPI_Type_indexed(3, lengths, places, MPI_DOUBLE, &sparse));
    OK(MPI_Type_indexed(N, one, down, MPI_DOUBLE, &reversed));
    OK(MPI_Type_commit(&column));
    OK(MPI_Type_commit(&row));
    OK(MPI_Type_commit(&sparse));
    OK(MPI_Type_commit(&reversed));
    for (i = 0; i < N; i++)
        for (j = 0; j < N; j++) memory[i][j] = 0, from[i][j] = 100 * check_rank + 10 * i + j, back[i][j] = -1;
    MPI_Win win = win_of(check_comm, memory, sizeof memory, sizeof(double));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&from[0][2], 1, column, next, 3 * N, 1, row, win));
    OK(MPI_Win_fence(0, win));
    for (i = 0; i < N; i++)
        for (j = 0; j < N; j++) CHECK_EQ(memory[i][j], i == 3 ? 100 * before + 10 * j + 2 : 0);
    /* The row of the next rank, which came from here, as a column. */
    OK(MPI_Get(&back[0][4], 1, column, next, 3 * N, N, MPI_DOUBLE, win));
    OK(MPI_Win_fence(0, win));
    for (i = 0; i < N; i++) CHECK_EQ(back[i][4], 100 * check_rank + 10 * i + 2);
    for (i = 0; i < N; i++)
        for (j = 0; j < N; j++) memory[i][j] = 1;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(&from[1][0], 1, row, next, N, 1, reversed, MPI_SUM, win));
    OK(MPI_Put(&from[2][0], 4, MPI_DOUBLE, next, 2 * N, 1, sparse, win));
    OK(MPI_Win_fence(0, win));
    for (j = 0; j < N; j++) CHECK_EQ(memory[1][N - 1 - j], 1 + 100 * before + 10 + j);
    double wanted[N] = {100 * before + 23, 100 * before + 21, 100 * before + 22, 1, 1, 100 * before + 20};
    for (j = 0; j < N; j++) CHECK_EQ(memory[2][j], wanted[j]);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(&from[4][0], 1, row, &back[5][0], 1, reversed, next, 1, 1, column, MPI_REPLACE, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (i = 0; i < N; i++) CHECK_EQ(memory[i][1], 100 * before + 40 + i);
    win_free(&win);
    /* Freed before the epoch ends: the operation keeps them. */
    win = win_of(check_comm, memory, sizeof memory, sizeof(double));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&from[0][0], 1, column, next, 0, 1, column, win));
    OK(MPI_Type_free(&column));
    OK(MPI_Win_fence(0, win));
    for (i = 0; i < N; i++) CHECK_EQ(memory[i][0], 100 * before + 10 * i);
    win_free(&win);
    OK(MPI_Type_free(&row));
    OK(MPI_Type_free(&sparse));
    OK(MPI_Type_free(&reversed));
}

/* Pairs within a derived datatype, with the gaps that C leaves. */
static void pairs(void) {
    typedef struct { double value; int at; } Pair;
    enum { N = 5 };
    Pair memory[2 * N], mine[N], old[N];
    int next = (check_rank + 1) % check_size, i;
    MPI_Datatype every_other;
    OK(MPI_Type_vector(N, 1, 2, MPI_DOUBLE_INT, &every_other));
    OK(MPI_Type_commit(&every_other));
    memset(memory, 0, sizeof memory);
    for (i = 0; i < 2 * N; i++) memory[i].value = i, memory[i].at = 100;
    for (i = 0; i < N; i++) mine[i].value = 4, mine[i].at = i;
    MPI_Win win = win_of(check_comm, memory, sizeof memory, sizeof(Pair));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(mine, N, MPI_DOUBLE_INT, old, N, MPI_DOUBLE_INT, next, 0, 1, every_other, MPI_MAXLOC, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (i = 0; i < 2 * N; i++) {
        int changed = i % 2 == 0 && i <= 4;
        CHECK_EQ(memory[i].value, changed ? 4 : i);
        CHECK_EQ(memory[i].at, changed ? i / 2 : 100);
    }
    for (i = 0; i < N; i++) CHECK(old[i].value == 2 * i && old[i].at == 100);
    win_free(&win);
    OK(MPI_Type_free(&every_other));
}

/* Data of some length: in a row, and with gaps on either side. */
static void long_data(void) {
    enum { MOST = 3 << 20 };
    static char mine[2 * MOST], got[2 * MOST];
    static const size_t lengths[] = {1, 1000, 8192, 65536, 262145, MOST};
    char *memory;
    int next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
    MPI_Win win = win_allocated(check_comm, &memory, 2 * MOST, 1);
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        size_t n = lengths[k];
        fill(mine, n, 10 * k + check_rank);
        memset(got, 0, n);
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put(mine, (int)n, MPI_BYTE, next, 0, (int)n, MPI_BYTE, win));
        OK(MPI_Win_fence(0, win));
        CHECK_EQ(differs(memory, n, 10 * k + before), -1);
        OK(MPI_Get(got, (int)n, MPI_BYTE, next, 0, (int)n, MPI_BYTE, win));
        OK(MPI_Win_fence(0, win));
        CHECK_EQ(differs(got, n, 10 * k + check_rank), -1);
        /* To every other byte there, and from there. */
        MPI_Datatype gaps;
        OK(MPI_Type_vector((int)n, 1, 2, MPI_BYTE, &gaps));
        OK(MPI_Type_commit(&gaps));
        memset(memory, 7, 2 * n);
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put(mine, (int)n, MPI_BYTE, next, 0, 1, gaps, win));
        OK(MPI_Win_fence(0, win));
        int bad = 0;
        fill(got, n, 10 * k + before);
        for (size_t i = 0; i < n; i++) bad += memory[2 * i] != got[i] || (2 * i + 1 < 2 * n && memory[2 * i + 1] != 7);
        CHECK_EQ(bad, 0);
        memset(got, 0, 2 * n);
        OK(MPI_Get(got, 1, gaps, next, 0, 1, gaps, win));
        OK(MPI_Win_fence(0, win));
        for (size_t i = 0; i < n; i++) bad += got[2 * i] != mine[i] || (2 * i + 1 < 2 * n && got[2 * i + 1] != 0);
        CHECK_EQ(bad, 0);
        OK(MPI_Type_free(&gaps));
    }
    win_free(&win);
}

/* Long accumulates from all ranks to one: each element gets every rank's. */
static void long_sums(void) {
    enum { N = 200000 };
    static long mine[N];
    long *memory;
    int i, bad = 0;
    MPI_Win win = win_allocated(check_comm, &memory, N * sizeof *mine, sizeof *mine);
    for (i = 0; i < N; i++) memory[i] = i, mine[i] = 1 + check_rank;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(mine, N, MPI_LONG, 0, 0, N, MPI_LONG, MPI_SUM, win));
    OK(MPI_Accumulate(mine, N, MPI_LONG, check_size - 1, 0, N, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    long sum = check_size * (check_size + 1) / 2, times = (check_rank == 0) + (check_rank == check_size - 1);
    for (i = 0; i < N; i++) bad += memory[i] != i + times * sum;
    CHECK_EQ(bad, 0);
    win_free(&win);
}

/* Accesses of no elements, less data than there is room for, MPI_PROC_NULL. */
static void little(void) {
    int memory[4] = {1, 2, 3, 4}, mine[4] = {10, 20, 30, 40}, got[4] = {0, 0, 0, 0};
    int next = (check_rank + 1) % check_size;
    MPI_Win win = win_of(check_comm, memory, sizeof memory, sizeof(int));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(NULL, 0, MPI_INT, next, 0, 0, MPI_INT, win));
    OK(MPI_Get(NULL, 0, MPI_INT, next, 4, 0, MPI_INT, win));
    OK(MPI_Accumulate(NULL, 0, MPI_INT, next, 0, 0, MPI_INT, MPI_SUM, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_INT, NULL, 0, MPI_INT, next, 0, 0, MPI_INT, MPI_SUM, win));
    OK(MPI_Put(mine, 4, MPI_INT, MPI_PROC_NULL, 0, 4, MPI_INT, win));
    OK(MPI_Get(got, 4, MPI_INT, MPI_PROC_NULL, 100, 4, MPI_INT, win));
    OK(MPI_Accumulate(mine, 4, MPI_INT, MPI_PROC_NULL, 0, 4, MPI_INT, MPI_SUM, win));
    OK(MPI_Fetch_and_op(mine, got, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, win));
    OK(MPI_Compare_and_swap(mine, mine, got, MPI_INT, MPI_PROC_NULL, 0, win));
    OK(MPI_Win_fence(0, win));
    CHECK(memory[0] == 1 && memory[3] == 4 && got[0] == 0 && got[3] == 0);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(mine, 2, MPI_INT, next, 1, 3, MPI_INT, win));
    OK(MPI_Get(got, 4, MPI_INT, next, 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(memory[0] == 1 && memory[1] == 10 && memory[2] == 20 && memory[3] == 4);
    CHECK(got[0] == 1 && got[1] == 0);
    /* Less than one element of the target's datatype. */
    MPI_Datatype apart;
    OK(MPI_Type_vector(3, 1, -1, MPI_INT, &apart));
    OK(MPI_Type_commit(&apart));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(mine + 2, 2, MPI_INT, next, 3, 1, apart, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(memory[0] == 1 && memory[1] == 10 && memory[2] == 40 && memory[3] == 30);
    OK(MPI_Type_free(&apart));
    win_free(&win);
}

#if MPI_VERSION >= 4
static void large_counts(void) {
    int memory[4] = {1, 2, 3, 4}, mine[2] = {10, 20}, got[2] = {0, 0}, old[2] = {0, 0};
    int next = (check_rank + 1) % check_size;
    MPI_Win win = win_of(check_comm, memory, sizeof memory, sizeof(int));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put_c(mine, 2, MPI_INT, next, 0, 2, MPI_INT, win));
    OK(MPI_Get_c(got, 2, MPI_INT, next, 2, 2, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK(memory[0] == 10 && memory[1] == 20 && got[0] == 3 && got[1] == 4);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate_c(mine, 2, MPI_INT, next, 0, 2, MPI_INT, MPI_SUM, win));
    OK(MPI_Get_accumulate_c(mine, 2, MPI_INT, old, 2, MPI_INT, next, 2, 2, MPI_INT, MPI_MAX, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(memory[0] == 20 && memory[1] == 40 && memory[2] == 10 && memory[3] == 20 && old[0] == 3 && old[1] == 4);
    win_free(&win);
}
#endif

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    all_to_all();
    datatypes();
    pairs();
    long_data();
    long_sums();
    little();
#if MPI_VERSION >= 4
    large_counts();
#endif
    return check_end();
}
