// run: n=3,4 timeout=60 hosts=2 abi=one
/* Windows whose memory some ranks share and others reach by messages: every kind of epoch, and locks
 * that ranks of both kinds want. */
#include "check.h"

#define TURNS 20

static int rank, size;

static void fences(MPI_Win win, long *memory) {
    long value = rank + 1, got[8];
    int i, turn;
    for (turn = 0; turn < TURNS; turn++) {
        OK(MPI_Win_fence(turn == 0 ? MPI_MODE_NOPRECEDE : 0, win));
        for (i = 0; i < size; i++) OK(MPI_Put(&value, 1, MPI_LONG, i, rank, 1, MPI_LONG, win));
        OK(MPI_Win_fence(0, win));
        for (i = 0; i < size; i++) CHECK(memory[i] == i + 1);
        for (i = 0; i < size; i++) OK(MPI_Get(&got[i], 1, MPI_LONG, i, (rank + 1) % size, 1, MPI_LONG, win));
        OK(MPI_Win_fence(0, win));
        for (i = 0; i < size; i++) CHECK(got[i] == (rank + 1) % size + 1);
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

/* Read, add one, write under an exclusive lock: nothing is lost. */
static void exclusive(MPI_Win win, long *memory) {
    int turn, to;
    memory[0] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (turn = 0; turn < TURNS; turn++)
        for (to = 0; to < size; to++) {
            long now = -1;
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win));
            OK(MPI_Get(&now, 1, MPI_LONG, to, 0, 1, MPI_LONG, win));
            OK(MPI_Win_flush(to, win));
            now++;
            OK(MPI_Put(&now, 1, MPI_LONG, to, 0, 1, MPI_LONG, win));
            OK(MPI_Win_unlock(to, win));
        }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK(memory[0] == TURNS * size);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Tickets under MPI_Win_lock_all: each is drawn once. */
static void tickets(MPI_Win win, long *memory) {
    long one = 1, mine[TURNS], *all = malloc(sizeof *all * TURNS * (size_t)size);
    int turn, i;
    char *seen = calloc((size_t)TURNS * (size_t)size, 1);
    memory[0] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (turn = 0; turn < TURNS; turn++) {
        OK(MPI_Fetch_and_op(&one, &mine[turn], MPI_LONG, size - 1, 0, MPI_SUM, win));
        OK(MPI_Win_flush(size - 1, win));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Allgather(mine, TURNS, MPI_LONG, all, TURNS, MPI_LONG, MPI_COMM_WORLD));
    for (i = 0; i < TURNS * size; i++) {
        CHECK(all[i] >= 0 && all[i] < TURNS * size && !seen[all[i]]);
        seen[all[i]] = 1;
    }
    free(all);
    free(seen);
}

/* Each rank writes to all others, who post. */
static void posts(MPI_Win win, long *memory) {
    MPI_Group world, others;
    long value;
    int turn, i;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_excl(world, 1, &rank, &others));
    for (turn = 0; turn < TURNS; turn++) {
        value = 1000 * turn + rank;
        OK(MPI_Win_post(others, 0, win));
        OK(MPI_Win_start(others, 0, win));
        for (i = 0; i < size; i++)
            if (i != rank) OK(MPI_Put(&value, 1, MPI_LONG, i, rank, 1, MPI_LONG, win));
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
        for (i = 0; i < size; i++)
            if (i != rank) CHECK(memory[i] == 1000 * turn + i);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Group_free(&others));
    OK(MPI_Group_free(&world));
}

int main(int argc, char **argv) {
    MPI_Win win;
    long *memory;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    check_rank = rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > 8) return 1;
    OK(MPI_Win_allocate(8 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    fences(win, memory);
    exclusive(win, memory);
    tickets(win, memory);
    posts(win, memory);
    OK(MPI_Win_free(&win));
    return check_result();
}
