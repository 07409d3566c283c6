// run: n=2,3,4 timeout=120 abi=one
/* Random programs against a model: each round every rank issues the same kind of random operations on places of its own in all
 * windows, with random datatypes on both sides, in an epoch of a random kind. Afterwards each rank knows what its memory must be,
 * for it can work out what all have done. */
#include "rma.h"

enum { SLOT = 4096, ROUNDS = 40, MOST = 12, RANKS = 4 };

static int *memory, model[RANKS * SLOT], from[RANKS][MOST][SLOT], into[MOST][SLOT], wanted[MOST][SLOT];
static int n, me;

/* What rank `origin` does in a round to one target: `kind` 0 puts, 1 adds, 2 replaces and fetches, 3 gets, 4 adds and fetches. */
typedef struct { int target, kind, first, count, step; } Act;

static int acts(int round, int origin, Act *list) {
    uint64_t s = 1000003u * (unsigned)round + (unsigned)origin;
    int many = (int)(rnd(&s) % MOST), i;
    for (i = 0; i < many; i++) {
        Act *a = &list[i];
        a->target = (int)(rnd(&s) % (unsigned)n);
        a->kind = (int)(rnd(&s) % 5);
        a->step = 1 + (int)(rnd(&s) % 3);
        a->count = 1 + (int)(rnd(&s) % (rnd(&s) % 4 ? 20 : SLOT / 4));
        a->first = (int)(rnd(&s) % (unsigned)(SLOT - a->count * a->step));
    }
    return many;
}

static int value(int round, int origin, int act, int i) { return (round * 131 + origin * 17 + act * 5 + i) % 1000; }

/* One rank's acts on the model of one target's memory; `got`: what the fetching ones bring, of this rank. */
static void play(int round, int origin, int target, int *mem, int fetch) {
    Act list[MOST];
    int many = acts(round, origin, list);
    for (int k = 0; k < many; k++) {
        const Act *a = &list[k];
        if (a->target != target) continue;
        for (int i = 0; i < a->count; i++) {
            int *at = &mem[origin * SLOT + a->first + i * a->step], v = value(round, origin, k, i);
            if (fetch) wanted[k][i] = *at;
            if (a->kind == 0 || a->kind == 2) *at = v;
            if (a->kind == 1 || a->kind == 4) *at += v;
        }
    }
}

static void issue(MPI_Win win, int round, int only) {
    Act list[MOST];
    int many = acts(round, me, list);
    for (int k = 0; k < many; k++) {
        const Act *a = &list[k];
        MPI_Aint disp = (MPI_Aint)me * SLOT + a->first;
        MPI_Datatype there, here = MPI_INT;
        int count = a->count;
        if (only >= 0 && a->target != only) continue;
        OK(MPI_Type_vector(a->count, 1, a->step, MPI_INT, &there));
        OK(MPI_Type_commit(&there));
        if (k % 2) {
            OK(MPI_Type_contiguous(a->count, MPI_INT, &here));
            OK(MPI_Type_commit(&here));
            count = 1;
        }
        for (int i = 0; i < a->count; i++) from[me][k][i] = value(round, me, k, i);
        memset(into[k], 0, sizeof into[k]);
        switch (a->kind) {
        case 0: OK(MPI_Put(from[me][k], count, here, a->target, disp, 1, there, win)); break;
        case 1: OK(MPI_Accumulate(from[me][k], count, here, a->target, disp, 1, there, MPI_SUM, win)); break;
        case 2: OK(MPI_Get_accumulate(from[me][k], count, here, into[k], count, here, a->target, disp, 1, there, MPI_REPLACE, win)); break;
        case 3: OK(MPI_Get(into[k], count, here, a->target, disp, 1, there, win)); break;
        default: OK(MPI_Get_accumulate(from[me][k], count, here, into[k], count, here, a->target, disp, 1, there, MPI_SUM, win));
        }
        OK(MPI_Type_free(&there));
        if (k % 2) OK(MPI_Type_free(&here));
        /* Puts and gets of one place are not ordered: each has ended before the next begins. */
        if (only >= 0) OK(MPI_Win_flush(a->target, win));
    }
}

static void check(int round) {
    Act list[MOST];
    int many, bad = 0;
    static int other[RANKS * SLOT];
    /* What was fetched, from what each target's memory was. */
    for (int target = 0; target < n; target++) {
        memset(other, 0, sizeof other);
        for (int before = 0; before < round; before++) play(before, me, target, other, 0);
        play(round, me, target, other, 1);
    }
    many = acts(round, me, list);
    for (int k = 0; k < many; k++) {
        if (list[k].kind < 2) continue;
        for (int i = 0; i < list[k].count; i++) bad += into[k][i] != wanted[k][i];
        if (bad) {
            FAILED("round %d: operation %d of kind %d on rank %d brings %d wrong elements", round, k, list[k].kind, list[k].target, bad);
            return;
        }
    }
    for (int origin = 0; origin < n; origin++) play(round, origin, me, model, 0);
    for (int i = 0; i < n * SLOT; i++) bad += memory[i] != model[i];
    if (bad) FAILED("round %d: %d elements of the window are wrong", round, bad);
}

static void rounds(MPI_Win win) {
    memset(memory, 0, (size_t)n * SLOT * sizeof(int));
    memset(model, 0, sizeof model);
    MPI_Barrier(check_comm);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2) {
            OK(MPI_Win_lock_all(0, win));
            for (int target = 0; target < n; target++) issue(win, round, target);
            OK(MPI_Win_unlock_all(win));
        } else {
            for (int target = 0; target < n; target++) {
                OK(MPI_Win_lock(round % 4 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win));
                issue(win, round, target);
                OK(MPI_Win_unlock(target, win));
            }
        }
        MPI_Barrier(check_comm);
        OK(MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
        check(round);
        OK(MPI_Win_unlock(me, win));
        MPI_Barrier(check_comm);
    }
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    n = check_size, me = check_rank;
    MPI_Win win = win_allocated(check_comm, &memory, (size_t)n * SLOT * sizeof(int), sizeof(int));
    rounds(win);
    win_free(&win);
    memory = malloc((size_t)n * SLOT * sizeof(int));
    win = win_of(check_comm, memory, (size_t)n * SLOT * sizeof(int), sizeof(int));
    rounds(win);
    win_free(&win);
    free(memory);
    return check_end();
}
