// run: n=1,2,4 timeout=60
/* Dynamic windows (MPI 5.0, 12.2.4): memory is attached and detached while the window is used; addresses are told. */
#include "rma.h"

static void addresses(void *memory, MPI_Aint *all) {
    MPI_Aint at;
    OK(MPI_Get_address(memory, &at));
    OK(MPI_Allgather(&at, 1, MPI_AINT, all, 1, MPI_AINT, check_comm));
}

static MPI_Win made(void) {
    MPI_Win win;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, check_comm, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    return win;
}

static void regions(void) {
    enum { REGIONS = 10, EACH = 16 };
    int *memory[REGIONS], got[EACH], mine[EACH], next = (check_rank + 1) % check_size, i, k;
    MPI_Aint (*all)[64] = malloc(REGIONS * sizeof *all);
    MPI_Win win = made();
    for (k = 0; k < REGIONS; k++) {
        memory[k] = malloc(EACH * sizeof(int));
        for (i = 0; i < EACH; i++) memory[k][i] = 1000 * check_rank + 100 * k + i;
        OK(MPI_Win_attach(win, memory[k], EACH * sizeof(int)));
        addresses(memory[k], all[k]);
    }
    OK(MPI_Win_fence(0, win));
    for (k = 0; k < REGIONS; k++) {
        OK(MPI_Get(got, EACH, MPI_INT, next, all[k][next], EACH, MPI_INT, win));
        OK(MPI_Win_fence(0, win));
        for (i = 0; i < EACH; i++) CHECK_EQ(got[i], 1000 * next + 100 * k + i);
    }
    /* Half of them go, in another order, and one comes back longer. */
    for (k = REGIONS - 1; k >= 0; k -= 2) OK(MPI_Win_detach(win, memory[k]));
    memory[1] = realloc(memory[1], 2 * EACH * sizeof(int));
    for (i = 0; i < 2 * EACH; i++) memory[1][i] = -1;
    OK(MPI_Win_attach(win, memory[1], 2 * EACH * sizeof(int)));
    addresses(memory[1], all[1]);
    for (i = 0; i < EACH; i++) mine[i] = 7 * check_rank + i;
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(mine, EACH, MPI_INT, next, MPI_Aint_add(all[1][next], EACH * sizeof(int)), EACH, MPI_INT, win));
    OK(MPI_Accumulate(mine, EACH, MPI_INT, next, all[2][next], EACH, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_unlock_all(win));
    MPI_Barrier(check_comm);
    int before = (check_rank + check_size - 1) % check_size;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, win));
    for (i = 0; i < EACH; i++) {
        CHECK_EQ(memory[1][i], -1);
        CHECK_EQ(memory[1][EACH + i], 7 * before + i);
        CHECK_EQ(memory[2][i], 1000 * check_rank + 200 + i + 7 * before + i);
    }
    OK(MPI_Win_unlock(check_rank, win));
    /* What is attached still when the window goes is given up with it. */
    win_free(&win);
    for (k = 0; k < REGIONS; k++) free(memory[k]);
    free(all);
}

/* A list that grows while others walk along it: each element lies in another rank's memory. */
static void list(void) {
    typedef struct { MPI_Aint next; int rank, value; } Node;
    enum { EACH = 5 };
    Node *nodes[EACH], *head = NULL;
    MPI_Aint at, *heads = malloc((size_t)check_size * sizeof *heads);
    MPI_Win win = made();
    for (int k = 0; k < EACH; k++) {
        nodes[k] = malloc(sizeof(Node));
        nodes[k]->next = k ? (MPI_Aint)(intptr_t)nodes[k - 1] : 0;
        nodes[k]->rank = check_rank;
        nodes[k]->value = 10 * check_rank + k;
        OK(MPI_Win_attach(win, nodes[k], sizeof(Node)));
        head = nodes[k];
    }
    addresses(head, heads);
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int r = 0; r < check_size; r++) {
        int k = EACH;
        Node node;
        for (at = heads[r]; at; at = node.next) {
            OK(MPI_Get(&node, sizeof node, MPI_BYTE, r, at, sizeof node, MPI_BYTE, win));
            OK(MPI_Win_flush(r, win));
            CHECK_EQ(node.value, 10 * r + --k);
        }
        CHECK_EQ(k, 0);
    }
    OK(MPI_Win_unlock_all(win));
    MPI_Barrier(check_comm);
    for (int k = 0; k < EACH; k++) {
        OK(MPI_Win_detach(win, nodes[k]));
        free(nodes[k]);
    }
    win_free(&win);
    free(heads);
}

/* Every operation on memory that is not attached, on this rank and on others, has an error at the latest with its flush,
 * and the operation after it has none. */
static void refused(void) {
    int memory[4] = {1, 2, 3, 4}, one = 1, zero = 0, got;
    MPI_Aint *all = malloc((size_t)check_size * sizeof *all);
    MPI_Win win = made();
    OK(MPI_Win_attach(win, memory, sizeof memory));
    addresses(memory, all);
    for (int r = 0; r < check_size; r++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, r, 0, win));
        for (int k = 0; k < 5; k++) {
            MPI_Aint away = all[r] + (MPI_Aint)sizeof memory - 2;
            int code = k == 0   ? MPI_Put(&one, 1, MPI_INT, r, away, 1, MPI_INT, win)
                       : k == 1 ? MPI_Get(&got, 1, MPI_INT, r, away, 1, MPI_INT, win)
                       : k == 2 ? MPI_Accumulate(&one, 1, MPI_INT, r, away, 1, MPI_INT, MPI_SUM, win)
                       : k == 3 ? MPI_Fetch_and_op(&one, &got, MPI_INT, r, away, MPI_SUM, win)
                                : MPI_Compare_and_swap(&one, &zero, &got, MPI_INT, r, away, win);
            int end = MPI_Win_flush(r, win);
            CHECK_EQ(check_class(code != MPI_SUCCESS ? code : end), MPI_ERR_RMA_RANGE);
            OK(MPI_Put(&one, 1, MPI_INT, r, all[r], 1, MPI_INT, win));
            OK(MPI_Win_flush(r, win));
        }
        OK(MPI_Win_unlock(r, win));
    }
    MPI_Barrier(check_comm);
    win_free(&win);
    CHECK_EQ(memory[0], 1);
    CHECK_EQ(memory[3], 4);
    free(all);
}

static void errors(void) {
    char memory[64], other[64], got;
    MPI_Aint at;
    MPI_Win win = made(), plain = win_of(check_comm, memory, sizeof memory, 1);
    CHECK_CLASS(MPI_Win_attach(plain, other, sizeof other), MPI_ERR_RMA_FLAVOR);
    CHECK_CLASS(MPI_Win_detach(plain, memory), MPI_ERR_RMA_FLAVOR);
    OK(MPI_Win_attach(win, memory, 32));
    CHECK_CLASS(MPI_Win_attach(win, memory + 16, 32), MPI_ERR_RMA_ATTACH);
    CHECK_CLASS(MPI_Win_attach(win, memory, 1), MPI_ERR_RMA_ATTACH);
    CHECK_CLASS(MPI_Win_attach(win, other, -1), MPI_ERR_SIZE);
    CHECK_CLASS(MPI_Win_attach(win, NULL, 8), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Win_detach(win, memory + 16), MPI_ERR_RMA_ATTACH);
    OK(MPI_Win_attach(win, memory + 32, 32));
    OK(MPI_Win_detach(win, memory));
    CHECK_CLASS(MPI_Win_detach(win, memory), MPI_ERR_RMA_ATTACH);
    int unit;
    void *base;
    CHECK_CLASS(MPI_Win_shared_query(win, check_rank, &at, &unit, &base), MPI_ERR_RMA_FLAVOR);
    /* What is not attached, or only in part, cannot be read; the error comes at the latest with the end of the epoch. */
    OK(MPI_Get_address(memory, &at));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, win));
    int code = MPI_Get(&got, 1, MPI_CHAR, check_rank, at + 31, 1, MPI_CHAR, win), end = MPI_Win_unlock(check_rank, win);
    CHECK_EQ(check_class(code != MPI_SUCCESS ? code : end), MPI_ERR_RMA_RANGE);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, win));
    OK(MPI_Get(&got, 1, MPI_CHAR, check_rank, at + 63, 1, MPI_CHAR, win));
    OK(MPI_Win_unlock(check_rank, win));
    win_free(&plain);
    win_free(&win);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(check_comm, MPI_ERRORS_RETURN);
    regions();
    list();
    if (STRICT) refused();
    if (STRICT) errors();
    return check_end();
}
