// run: n=1,2 timeout=120
/* Every predefined operation on every predefined datatype (MPI 5.0, 12.3.4) in the window of another rank: by MPI_Accumulate,
 * MPI_Get_accumulate and MPI_Fetch_and_op, with MPI_REPLACE and MPI_NO_OP. What is not defined is refused with MPI_ERR_OP. */
#include "rma.h"
#include "op_kinds.h"

enum { ROOM = (N + 2) * 64 };
static char *memory, mine[ROOM] __attribute__((aligned(64))), before[ROOM] __attribute__((aligned(64))),
    after[ROOM] __attribute__((aligned(64))), result[ROOM] __attribute__((aligned(64)));
static MPI_Win win;
static int next_rank, done, refused;

/* What the operation makes of elements 1 to n. */
static void expect(const Kind *k, enum Op op, int n) {
    memcpy(after, before, ROOM);
    for (int i = 1; i <= n && op != NO_OP; i++) {
        if (op == REPLACE) memcpy(after + i * k->size, mine + i * k->size, k->size);
        else k->combine(op, mine, after, i);
    }
}

static void compare(const Kind *k, enum Op op, const char *how, const void *a, const void *b, int from, int to) {
    int bad = 0;
    for (int i = from; i < to; i++) bad += !k->equal(a, b, i);
    if (bad) FAILED("%s of %s, %s: %d elements differ", op_names[op], k->name, how, bad);
}

static void again(void) {
    memcpy(memory, before, ROOM);
    memset(result, 0, ROOM);
    OK(MPI_Win_fence(0, win));
}

static void ended(const Kind *k, enum Op op, const char *how) {
    OK(MPI_Win_fence(0, win));
    compare(k, op, how, memory, after, 0, N + 2);
}

static void one_op(const Kind *k, MPI_Datatype type, enum Op op) {
    MPI_Aint at = (MPI_Aint)k->size;
    /* All ranks begin with the same, and give the same. */
    uint64_t s = op * 1000 + (uintptr_t)k->size;
    for (int i = 0; i < N + 2; i++) k->make(mine, i, &s), k->make(before, i, &s);
    expect(k, op, N);
    if (op != NO_OP) {
        again();
        OK(MPI_Accumulate(mine + at, N, type, next_rank, at, N, type, ops[op], win));
        ended(k, op, "MPI_Accumulate");
    }
    again();
    OK(MPI_Get_accumulate(mine + at, N, type, result + at, N, type, next_rank, at, N, type, ops[op], win));
    ended(k, op, "MPI_Get_accumulate");
    compare(k, op, "result of MPI_Get_accumulate", result, before, 1, N + 1);
    expect(k, op, 1);
    again();
    OK(MPI_Fetch_and_op(mine + at, result + at, type, next_rank, at, ops[op], win));
    ended(k, op, "MPI_Fetch_and_op");
    compare(k, op, "result of MPI_Fetch_and_op", result, before, 1, 2);
    done++;
}

static void forbidden(const char *name, MPI_Datatype type, enum Op op) {
    int code = MPI_Accumulate(mine, 1, type, next_rank, 0, 1, type, ops[op], win);
    if (check_class(code) != MPI_ERR_OP) FAILED("%s of %s: class %d, not MPI_ERR_OP", op_names[op], name, check_class(code));
    code = MPI_Fetch_and_op(mine, result, type, next_rank, 0, ops[op], win);
    if (check_class(code) != MPI_ERR_OP) FAILED("%s of %s: class %d, not MPI_ERR_OP", op_names[op], name, check_class(code));
    refused++;
}

static void all_ops(const Kind *k, MPI_Datatype type) {
    if (type == MPI_DATATYPE_NULL) return;
    for (int op = 0; op < OPS; op++) {
        int bit = BIT(k->group);
        if (op >= REPLACE || (allowed[op] & bit)) one_op(k, type, op);
        else if (STRICT && !(extra[op] & bit)) forbidden(k->name, type, op);
    }
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    next_rank = (check_rank + 1) % check_size;
    win = win_allocated(check_comm, &memory, ROOM, 1);
    OK(MPI_Win_fence(0, win));
    ops_begin();
    types();
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(done > 300);
    if (STRICT) CHECK(refused > 200);
    win_free(&win);
    return check_end();
}
