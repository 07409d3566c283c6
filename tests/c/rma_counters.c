// run: n=2,4 timeout=120
/* All ranks combine with the same elements of all ranks at once, each by every way there is to them: calls on one element, on a
 * few, on many, with derived datatypes, requests, comparing and swapping, and loads and stores under an exclusive lock. No
 * operation may be lost, and no ticket drawn twice (MPI 5.0, 12.7.1). */
#include "rma.h"
#include <stddef.h>

enum { TURNS = 300, MANY = 40 };

/* What each rank exposes. */
typedef struct {
    int64_t tickets, by_swap, locked;
    int32_t word, pad;
    int16_t half, halves[3];
    double real[MANY];
    struct { double re, im; } complex_;
    int64_t many[MANY];
} Shared;

static int n, me;
static MPI_Win win;

static void draw(int target, int64_t *last, int *drawn) {
    int64_t one = 1, got = -1;
    OK(MPI_Fetch_and_op(&one, &got, MPI_INT64_T, target, offsetof(Shared, tickets), MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    CHECK(got > last[target]);
    last[target] = got;
    drawn[target]++;
}

static void swap_up(int target) {
    int64_t old, new, got = 0;
    MPI_Aint at = offsetof(Shared, by_swap);
    OK(MPI_Fetch_and_op(NULL, &got, MPI_INT64_T, target, at, MPI_NO_OP, win));
    OK(MPI_Win_flush(target, win));
    do {
        old = got, new = old + 1;
        OK(MPI_Compare_and_swap(&new, &old, &got, MPI_INT64_T, target, at, win));
        OK(MPI_Win_flush(target, win));
    } while (got != old);
}

/* One element of each size, alone or by a request. */
static void add_one(int target, int turn) {
    int32_t word = 2;
    int16_t half = 1, found;
    double complex_[2] = {1, -1};
    MPI_Request request;
    OK(MPI_Accumulate(&word, 1, MPI_INT32_T, target, offsetof(Shared, word), 1, MPI_INT32_T, MPI_SUM, win));
    OK(MPI_Get_accumulate(&half, 1, MPI_INT16_T, &found, 1, MPI_INT16_T, target, offsetof(Shared, half), 1, MPI_INT16_T, MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    CHECK(found >= turn);
    OK(MPI_Raccumulate(complex_, 1, MPI_C_DOUBLE_COMPLEX, target, offsetof(Shared, complex_), 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, win,
                       &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* A few elements, all of them, or every second one, which another datatype picks. */
static void add_many(int target, int turn, MPI_Datatype second) {
    double real[MANY];
    int64_t many[MANY];
    int few = 3;
    for (int i = 0; i < MANY; i++) real[i] = 1, many[i] = 1;
    OK(MPI_Accumulate(real, few, MPI_DOUBLE, target, offsetof(Shared, real), few, MPI_DOUBLE, MPI_SUM, win));
    switch (turn % 2) {
    case 0: OK(MPI_Accumulate(many, MANY, MPI_INT64_T, target, offsetof(Shared, many), MANY, MPI_INT64_T, MPI_SUM, win)); break;
    case 1: OK(MPI_Accumulate(many, MANY / 2, MPI_INT64_T, target, offsetof(Shared, many), 1, second, MPI_SUM, win)); break;
    }
}

/* Loads and stores, or a get and a put, of what an exclusive lock keeps from others. */
static void add_locked(int target) {
    int64_t now;
    MPI_Aint at = offsetof(Shared, locked);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Get(&now, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win));
    OK(MPI_Win_flush(target, win));
    now++;
    OK(MPI_Put(&now, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win));
    OK(MPI_Win_unlock(target, win));
}

static void all_ways(Shared *mine) {
    int64_t last[16];
    int drawn[16] = {0};
    MPI_Datatype second;
    for (int i = 0; i < 16; i++) last[i] = -1;
    memset(mine, 0, sizeof *mine);
    OK(MPI_Type_vector(MANY / 2, 1, 2, MPI_INT64_T, &second));
    OK(MPI_Type_commit(&second));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int turn = 0; turn < TURNS; turn++) {
        int target = (me + turn) % n;
        draw(target, last, drawn);
        swap_up(target);
        add_one(target, drawn[target] - 1);
        add_many(target, turn, second);
    }
    OK(MPI_Win_unlock_all(win));
    for (int turn = 0; turn < TURNS; turn++) add_locked((me + turn) % n);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_free(&second));
}

static void check(const Shared *mine) {
    int turns = 0, odd = 0;
    for (int rank = 0; rank < n; rank++)
        for (int turn = 0; turn < TURNS; turn++)
            if ((rank + turn) % n == me) turns++, odd += turn % 2;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
    CHECK(mine->tickets == turns && mine->by_swap == turns && mine->locked == turns);
    CHECK(mine->word == 2 * turns && mine->half == turns && mine->pad == 0 && mine->halves[0] == 0);
    CHECK(mine->complex_.re == turns && mine->complex_.im == -turns);
    for (int i = 0; i < MANY; i++) {
        CHECK(mine->real[i] == (i < 3 ? turns : 0));
        CHECK(mine->many[i] == turns - odd + (i % 2 ? 0 : odd));
    }
    OK(MPI_Win_unlock(me, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    Shared own, *mine;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &me));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &n));
    win = win_allocated(MPI_COMM_WORLD, &mine, sizeof *mine, 1);
    for (int repeat = 0; repeat < 3; repeat++) all_ways(mine), check(mine);
    win_free(&win);
    win = win_of(MPI_COMM_WORLD, &own, sizeof own, 1);
    all_ways(&own), check(&own);
    win_free(&win);
    OK(MPI_Finalize());
    return 0;
}
