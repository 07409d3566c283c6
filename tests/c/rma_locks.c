// run: n=1,2,4 timeout=120
/* Locks (MPI 5.0, 12.5.3): what is done under an exclusive lock is done alone; counters; the request-based operations; the
 * flushes; the order of accumulates. */
#include "rma.h"

enum { TIMES = 50 };

/* A read, an addition and a write under an exclusive lock are one step for everybody else. */
static void exclusive(void) {
    long *memory, value, expected = (long)check_size * TIMES;
    MPI_Win win = win_allocated(check_comm, &memory, sizeof *memory, sizeof *memory);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, win));
    *memory = 0;
    OK(MPI_Win_unlock(check_rank, win));
    MPI_Barrier(check_comm);
    for (int i = 0; i < TIMES; i++) {
        for (int target = 0; target < check_size; target++) {
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
            OK(MPI_Get(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
            OK(MPI_Win_flush(target, win));
            value++;
            OK(MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
            OK(MPI_Win_unlock(target, win));
        }
    }
    MPI_Barrier(check_comm);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, win));
    CHECK_EQ(*memory, expected);
    OK(MPI_Win_unlock(check_rank, win));
    win_free(&win);
}

/* Everybody increments the counters of all; each number comes once. */
static void counters(void) {
    enum { MOST = 8 * TIMES };
    long *memory, one = 1, old;
    char seen[MOST] = {0};
    MPI_Win win = win_allocated(check_comm, &memory, 2 * sizeof *memory, sizeof *memory);
    memory[0] = memory[1] = 0;
    MPI_Barrier(check_comm);
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < TIMES; i++) {
        OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
        CHECK(old >= 0 && old < (long)check_size * TIMES);
        if (old >= 0 && old < MOST) seen[old]++;
        OK(MPI_Accumulate(&one, 1, MPI_LONG, i % check_size, 1, 1, MPI_LONG, MPI_SUM, win));
    }
    OK(MPI_Win_unlock_all(win));
    MPI_Allreduce(MPI_IN_PLACE, seen, MOST, MPI_SIGNED_CHAR, MPI_SUM, check_comm);
    for (int i = 0; i < check_size * TIMES; i++) CHECK_EQ(seen[i], 1);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, win));
    CHECK_EQ(memory[0], check_rank == 0 ? check_size * TIMES : 0);
    int mine = 0;
    for (int i = 0; i < TIMES; i++) mine += i % check_size == check_rank;
    CHECK_EQ(memory[1], (long)check_size * mine);
    OK(MPI_Win_unlock(check_rank, win));
    win_free(&win);
}

/* A lock made of MPI_Compare_and_swap, which guards plain puts and gets. */
static void swaps(void) {
    int *memory, free_value = 0, own = 1 + check_rank, old, value;
    MPI_Win win = win_allocated(check_comm, &memory, 2 * sizeof *memory, sizeof *memory);
    memory[0] = memory[1] = 0;
    MPI_Barrier(check_comm);
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int i = 0; i < TIMES / 2; i++) {
        do {
            OK(MPI_Compare_and_swap(&own, &free_value, &old, MPI_INT, 0, 0, win));
            OK(MPI_Win_flush(0, win));
            CHECK(old != own);
        } while (old != 0);
        OK(MPI_Get(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, win));
        OK(MPI_Win_flush(0, win));
        value++;
        OK(MPI_Put(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, win));
        OK(MPI_Win_flush(0, win));
        OK(MPI_Compare_and_swap(&free_value, &own, &old, MPI_INT, 0, 0, win));
        OK(MPI_Win_flush(0, win));
        CHECK_EQ(old, own);
    }
    OK(MPI_Win_unlock_all(win));
    MPI_Barrier(check_comm);
    if (check_rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        CHECK_EQ(memory[0], 0);
        CHECK_EQ(memory[1], check_size * (TIMES / 2));
        OK(MPI_Win_unlock(0, win));
    }
    win_free(&win);
}

/* Compare and swap of each kind of element that it takes. */
static void kinds(void) {
    static const MPI_Datatype types[] = {MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT,
        MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T,
        MPI_UINT64_T, MPI_BYTE, MPI_C_BOOL, MPI_AINT, MPI_COUNT, MPI_OFFSET, MPI_INTEGER, MPI_LOGICAL};
    char *memory, was[16], swap[16], result[16];
    int next = (check_rank + 1) % check_size, size;
    MPI_Win win = win_allocated(check_comm, &memory, 32, 1);
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        if (types[k] == MPI_DATATYPE_NULL) continue;
        OK(MPI_Type_size(types[k], &size));
        memset(memory, 3, 32);
        memset(was, 3, 16);
        memset(swap, 1, 16);
        MPI_Barrier(check_comm);
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
        OK(MPI_Compare_and_swap(swap, swap, result, types[k], next, 16, win));
        OK(MPI_Win_flush(next, win));
        CHECK_EQ(memcmp(result, was, size), 0);
        OK(MPI_Compare_and_swap(swap, was, result, types[k], next, 8, win));
        OK(MPI_Win_unlock(next, win));
        CHECK_EQ(memcmp(result, was, size), 0);
        MPI_Barrier(check_comm);
        CHECK_EQ(memcmp(memory + 8, swap, size), 0);
        CHECK(memory[7] == 3 && memory[8 + size] == 3 && memory[16] == 3);
        MPI_Barrier(check_comm);
    }
    win_free(&win);
}

static void requests(void) {
    enum { N = 100, LONG = 50000 };
    static int far[LONG];
    int *memory, mine[N], got[N], old[N], i, next = (check_rank + 1) % check_size;
    MPI_Request request[4];
    MPI_Status status;
    MPI_Win win = win_allocated(check_comm, &memory, (LONG + 2 * N) * sizeof(int), sizeof(int));
    for (i = 0; i < LONG + 2 * N; i++) memory[i] = -i;
    for (i = 0; i < N; i++) mine[i] = 1000 * check_rank + i;
    MPI_Barrier(check_comm);
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Rput(mine, N, MPI_INT, next, 0, N, MPI_INT, win, &request[0]));
    OK(MPI_Wait(&request[0], &status));
    CHECK(request[0] == MPI_REQUEST_NULL);
    OK(MPI_Win_flush(next, win));
    OK(MPI_Rget(got, N, MPI_INT, next, 0, N, MPI_INT, win, &request[0]));
    OK(MPI_Rget(far, LONG, MPI_INT, next, 2 * N, LONG, MPI_INT, win, &request[1]));
    OK(MPI_Rget_accumulate(mine, N, MPI_INT, old, N, MPI_INT, next, N, N, MPI_INT, MPI_SUM, win, &request[2]));
    OK(MPI_Rput(mine, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win, &request[3]));
    OK(MPI_Waitall(4, request, MPI_STATUSES_IGNORE));
    for (i = 0; i < N; i++) CHECK(got[i] == mine[i] && old[i] == -(N + i));
    int bad = 0;
    for (i = 0; i < LONG; i++) bad += far[i] != -(2 * N + i);
    CHECK_EQ(bad, 0);
    OK(MPI_Raccumulate(mine, N, MPI_INT, next, N, N, MPI_INT, MPI_SUM, win, &request[0]));
    int flag = 0;
    while (!flag) OK(MPI_Test(&request[0], &flag, MPI_STATUS_IGNORE));
    /* The buffer may be used again now, whatever has become of the operation there. */
    memset(mine, 0, sizeof mine);
#if MPI_VERSION >= 4
    OK(MPI_Rget_c(got, N, MPI_INT, next, 0, N, MPI_INT, win, &request[0]));
    OK(MPI_Rput_c(mine, 0, MPI_INT, next, 0, 0, MPI_INT, win, &request[1]));
    OK(MPI_Raccumulate_c(mine, N, MPI_INT, next, N, N, MPI_INT, MPI_SUM, win, &request[2]));
    OK(MPI_Rget_accumulate_c(mine, N, MPI_INT, old, N, MPI_INT, next, N, N, MPI_INT, MPI_NO_OP, win, &request[3]));
    OK(MPI_Waitall(4, request, MPI_STATUSES_IGNORE));
    for (i = 0; i < N; i++) CHECK(got[i] == 1000 * check_rank + i && old[i] == -(N + i) + 2 * got[i]);
#endif
    OK(MPI_Win_unlock_all(win));
    MPI_Barrier(check_comm);
    int before = (check_rank + check_size - 1) % check_size;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, win));
    for (i = 0; i < N; i++) CHECK(memory[i] == 1000 * before + i && memory[N + i] == -(N + i) + 2 * (1000 * before + i));
    OK(MPI_Win_unlock(check_rank, win));
    win_free(&win);
}

/* What is written and flushed is there for everybody who is told so. */
static void flushes(void) {
    int *memory, value, round, got, next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
    MPI_Win win = win_allocated(check_comm, &memory, 4 * sizeof *memory, sizeof *memory);
    memset(memory, 0, 4 * sizeof *memory);
    MPI_Barrier(check_comm);
    OK(MPI_Win_lock_all(0, win));
    for (round = 1; round < TIMES; round++) {
        value = 1000 * check_rank + round;
        OK(MPI_Put(&value, 1, MPI_INT, next, round % 4, 1, MPI_INT, win));
        switch (round % 4) {
        case 0: OK(MPI_Win_flush(next, win)); break;
        case 1: OK(MPI_Win_flush_all(win)); break;
        case 2: OK(MPI_Win_flush_local(next, win)); value = 0; OK(MPI_Win_flush(next, win)); break;
        default: OK(MPI_Win_flush_local_all(win)); value = 0; OK(MPI_Win_flush_all(win)); break;
        }
        MPI_Sendrecv(NULL, 0, MPI_INT, next, 0, NULL, 0, MPI_INT, before, 0, check_comm, MPI_STATUS_IGNORE);
        OK(MPI_Win_sync(win));
        CHECK_EQ(*(volatile int *)&memory[round % 4], 1000 * before + round);
        OK(MPI_Get(&got, 1, MPI_INT, check_rank, round % 4, 1, MPI_INT, win));
        OK(MPI_Win_flush(check_rank, win));
        CHECK_EQ(got, 1000 * before + round);
        MPI_Sendrecv(NULL, 0, MPI_INT, before, 0, NULL, 0, MPI_INT, next, 0, check_comm, MPI_STATUS_IGNORE);
    }
    OK(MPI_Win_flush(MPI_PROC_NULL, win));
    OK(MPI_Win_unlock_all(win));
    win_free(&win);
}

/* Accumulates of one rank to one place happen in the order of its calls, of any length. */
static void ordered(void) {
    enum { N = 5000 };
    static long mine[TIMES][N], old[N];
    long *memory;
    int last = check_size - 1, i, bad;
    MPI_Win win = win_allocated(check_comm, &memory, N * (size_t)check_size * sizeof(long), sizeof(long));
    memset(memory, 0, N * (size_t)check_size * sizeof(long));
    MPI_Barrier(check_comm);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, last, 0, win));
    for (int k = 0; k < TIMES; k++) {
        /* Short and long ones in turn: the short one must not overtake. */
        int n = k % 3 ? 1 + k % 7 : N;
        for (i = 0; i < n; i++) mine[k][i] = k + 1;
        OK(MPI_Accumulate(mine[k], n, MPI_LONG, last, (MPI_Aint)check_rank * N, n, MPI_LONG, MPI_REPLACE, win));
    }
    OK(MPI_Get_accumulate(NULL, 0, MPI_LONG, old, N, MPI_LONG, last, (MPI_Aint)check_rank * N, N, MPI_LONG, MPI_NO_OP, win));
    OK(MPI_Win_unlock(last, win));
    for (bad = i = 0; i < N; i++) {
        long wanted = 0;
        for (int k = 0; k < TIMES; k++)
            if (i < (k % 3 ? 1 + k % 7 : N)) wanted = k + 1;
        bad += old[i] != wanted;
    }
    CHECK_EQ(bad, 0);
    win_free(&win);
}

/* Two ranks wait for each other in their memory, by MPI_Win_sync or by flushes of their own memory alone: what each has issued
 * before, and not flushed, is what the other one waits for. */
static void signals(void) {
    int *memory, one = 1, next = (check_rank + 1) % check_size;
    MPI_Win win = win_allocated(check_comm, &memory, 2 * sizeof *memory, sizeof *memory);
    memory[0] = memory[1] = 0;
    MPI_Barrier(check_comm);
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Accumulate(&one, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_REPLACE, win));
    while (*(volatile int *)&memory[0] == 0) OK(MPI_Win_sync(win));
    OK(MPI_Accumulate(&one, 1, MPI_INT, next, 1, 1, MPI_INT, MPI_REPLACE, win));
    while (*(volatile int *)&memory[1] == 0) OK(MPI_Win_flush(check_rank, win));
    OK(MPI_Win_unlock_all(win));
    win_free(&win);
}

/* Locks of several targets at once, one exclusive, in any order of unlocking. */
static void several(void) {
    int *memory, i, value = 1;
    MPI_Win win = win_allocated(check_comm, &memory, sizeof *memory, sizeof *memory);
    *memory = 0;
    MPI_Barrier(check_comm);
    for (i = 0; i < check_size; i++) OK(MPI_Win_lock(MPI_LOCK_SHARED, i, i % 2 ? MPI_MODE_NOCHECK : 0, win));
    for (i = 0; i < check_size; i++) OK(MPI_Accumulate(&value, 1, MPI_INT, i, 0, 1, MPI_INT, MPI_SUM, win));
    for (i = check_size - 1; i >= 0; i--) OK(MPI_Win_unlock(i, win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win));
    OK(MPI_Win_unlock(MPI_PROC_NULL, win));
    MPI_Barrier(check_comm);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, win));
    CHECK_EQ(*memory, check_size);
    OK(MPI_Win_unlock(check_rank, win));
    win_free(&win);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    exclusive();
    counters();
    swaps();
    kinds();
    requests();
    flushes();
    ordered();
    signals();
    several();
    return check_end();
}
