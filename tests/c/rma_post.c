// run: n=1,2,4 timeout=60
/* Post, start, complete and wait (MPI 5.0, 12.5.2): around a ring, from one to all, from all to one, with MPI_Win_test. */
#include "rma.h"

static int next_rank, rank_before;

static void ring(int test) {
    int *memory, mine[3], got, i, round;
    MPI_Group before = group_of(check_comm, rank_before, rank_before), next = group_of(check_comm, next_rank, next_rank);
    MPI_Win win = win_allocated(check_comm, &memory, 4 * sizeof *memory, sizeof *memory);
    for (round = 0; round < 20; round++) {
        memory[3] = 7 * check_rank + round;
        for (i = 0; i < 3; i++) mine[i] = 100 * round + 10 * check_rank + i;
        /* The asserted order of post and start cannot be given where each does both. */
        OK(MPI_Win_post(before, round % 2 ? MPI_MODE_NOSTORE : 0, win));
        OK(MPI_Win_start(next, 0, win));
        OK(MPI_Put(mine, 3, MPI_INT, next_rank, 0, 3, MPI_INT, win));
        OK(MPI_Get(&got, 1, MPI_INT, next_rank, 3, 1, MPI_INT, win));
        OK(MPI_Win_complete(win));
        CHECK_EQ(got, 7 * next_rank + round);
        if (test) {
            int flag = 0;
            while (!flag) OK(MPI_Win_test(win, &flag));
        } else {
            OK(MPI_Win_wait(win));
        }
        for (i = 0; i < 3; i++) CHECK_EQ(memory[i], 100 * round + 10 * rank_before + i);
    }
    win_free(&win);
    MPI_Group_free(&before);
    MPI_Group_free(&next);
}

/* Rank 0 opens its window to all others, who add to it; then all others open theirs to rank 0. */
static void star(void) {
    long *memory, one = 1, *values = malloc((size_t)check_size * sizeof *values);
    int i, round, *ranks = malloc((size_t)check_size * sizeof *ranks);
    MPI_Group all, others, root = group_of(check_comm, 0, 0);
    for (i = 0; i < check_size; i++) ranks[i] = i;
    OK(MPI_Comm_group(check_comm, &all));
    OK(MPI_Group_incl(all, check_size - 1, ranks + 1, &others));
    MPI_Win win = win_allocated(check_comm, &memory, sizeof *memory, sizeof *memory);
    *memory = 0;
    MPI_Barrier(check_comm);
    for (round = 1; round <= 10; round++) {
        if (check_rank == 0) {
            OK(MPI_Win_post(others, 0, win));
            OK(MPI_Win_wait(win));
            CHECK_EQ(*memory, (long)round * (check_size - 1));
            OK(MPI_Win_start(others, 0, win));
            for (i = 1; i < check_size; i++) {
                values[i] = 100 * round + i;
                OK(MPI_Accumulate(&values[i], 1, MPI_LONG, i, 0, 1, MPI_LONG, MPI_REPLACE, win));
                OK(MPI_Accumulate(&one, 1, MPI_LONG, i, 0, 1, MPI_LONG, MPI_SUM, win));
            }
            OK(MPI_Win_complete(win));
        } else {
            OK(MPI_Win_start(root, 0, win));
            OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
            OK(MPI_Win_complete(win));
            OK(MPI_Win_post(root, 0, win));
            OK(MPI_Win_wait(win));
            CHECK_EQ(*memory, 100 * round + check_rank + 1);
        }
    }
    win_free(&win);
    MPI_Group_free(&all);
    if (others != MPI_GROUP_EMPTY) MPI_Group_free(&others);
    MPI_Group_free(&root);
    free(ranks);
    free(values);
}

/* Epochs of no processes. */
static void empty(void) {
    char *memory;
    MPI_Win win = win_allocated(check_comm, &memory, 8, 1);
    for (int round = 0; round < 2; round++) {
        OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
        OK(MPI_Win_start(MPI_GROUP_EMPTY, MPI_MODE_NOCHECK, win));
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
    }
    win_free(&win);
}

/* With MPI_MODE_NOCHECK on both sides, the program has seen to it that the post comes first. */
static void no_check(void) {
    int *memory, value = check_rank;
    MPI_Group before = group_of(check_comm, rank_before, rank_before), next = group_of(check_comm, next_rank, next_rank);
    MPI_Win win = win_allocated(check_comm, &memory, sizeof *memory, sizeof *memory);
    for (int round = 0; round < 5; round++) {
        *memory = -1;
        OK(MPI_Win_post(before, MPI_MODE_NOCHECK, win));
        MPI_Barrier(check_comm);
        OK(MPI_Win_start(next, MPI_MODE_NOCHECK, win));
        OK(MPI_Put(&value, 1, MPI_INT, next_rank, 0, 1, MPI_INT, win));
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
        CHECK_EQ(*memory, rank_before);
    }
    win_free(&win);
    MPI_Group_free(&before);
    MPI_Group_free(&next);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    next_rank = (check_rank + 1) % check_size;
    rank_before = (check_rank + check_size - 1) % check_size;
    ring(0);
    ring(1);
    star();
    empty();
    no_check();
    return check_end();
}
