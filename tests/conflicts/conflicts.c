// conflicts HOW: accesses to a window that conflict, each in its own way, and some that only seem to (test_conflicts.py). The two
// lines that should be named end with the comments `one` and `two` of their case.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD MPI_COMM_WORLD
enum { CELLS = 4096 };

static int rank, size, word = 7, words[CELLS], *cells;
static MPI_Win win;
static MPI_Datatype column; /* every second cell */

#define PUT(at, n) MPI_Put(words, n, MPI_INT, 1, at, n, MPI_INT, win)
#define GET(at, n) MPI_Get(words + 32, n, MPI_INT, 1, at, n, MPI_INT, win)
#define ACC(op) MPI_Accumulate(&word, 1, MPI_INT, 1, 0, 1, MPI_INT, op, win)

static void fence(void) { MPI_Win_fence(0, win); }

static MPI_Group only(int one) {
    MPI_Group all, group;
    MPI_Comm_group(WORLD, &all);
    MPI_Group_incl(all, 1, &one, &group);
    MPI_Group_free(&all);
    return group;
}

static void lock_all(void) {
    MPI_Win_lock_all(0, win);
    MPI_Barrier(WORLD);
}

static void unlock_all(void) {
    MPI_Barrier(WORLD);
    MPI_Win_unlock_all(win);
}

// Fences.

static void put_put(void) {
    fence();
    if (rank == 0) PUT(0, 4); // put_put one
    if (rank == 2) PUT(3, 4); // put_put two
    fence();
}

static void put_put_same(void) {
    fence();
    if (rank == 0) PUT(0, 4); // put_put_same one
    if (rank == 0) PUT(0, 4); // put_put_same two
    fence();
}

static void put_get(void) {
    fence();
    if (rank == 0) PUT(8, 4); // put_get one
    if (rank == 2) GET(11, 1); // put_get two
    fence();
}

static void put_acc(void) {
    fence();
    if (rank == 0) PUT(0, 1); // put_acc one
    if (rank == 2) ACC(MPI_SUM); // put_acc two
    fence();
}

static void get_acc(void) {
    fence();
    if (rank == 0) GET(0, 1); // get_acc one
    if (rank == 2) ACC(MPI_SUM); // get_acc two
    fence();
}

static void acc_operations(void) {
    fence();
    if (rank == 0) ACC(MPI_SUM); // acc_operations one
    if (rank == 2) ACC(MPI_PROD); // acc_operations two
    fence();
}

static void acc_types(void) {
    double one = 1;
    fence();
    if (rank == 0) ACC(MPI_SUM); // acc_types one
    if (rank == 2) MPI_Accumulate(&one, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, MPI_SUM, win); // acc_types two
    fence();
}

static void put_columns(void) {
    fence();
    if (rank == 0) MPI_Put(words, 8, MPI_INT, 1, 0, 1, column, win); // put_columns one
    if (rank == 2) PUT(4, 1); // put_columns two
    fence();
}

static void own_put(void) {
    fence();
    if (rank == 1) PUT(0, 1); // own_put one
    if (rank == 2) PUT(0, 1); // own_put two
    fence();
}

static void put_from_exposed(void) {
    fence();
    if (rank == 1) MPI_Put(cells + 2, 1, MPI_INT, 0, 0, 1, MPI_INT, win); // put_from_exposed one
    if (rank == 0) PUT(2, 1); // put_from_exposed two
    fence();
}

static void get_into_exposed(void) {
    fence();
    if (rank == 1) MPI_Get(cells + 2, 1, MPI_INT, 0, 0, 1, MPI_INT, win); // get_into_exposed one
    if (rank == 0) GET(2, 1); // get_into_exposed two
    fence();
}

static void send_exposed(void) {
    fence();
    if (rank == 0) PUT(2, 2000); // send_exposed one
    if (rank == 0) MPI_Send(&word, 1, MPI_INT, 1, 2, WORLD);
    if (rank == 1) {
        MPI_Recv(&word, 1, MPI_INT, 0, 2, WORLD, MPI_STATUS_IGNORE);
        int flag;
        MPI_Iprobe(0, 3, WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Send(cells + 2, 1, MPI_INT, 1, 3, WORLD); // send_exposed two
    }
    fence();
}

static void second_epoch(void) {
    fence();
    if (rank == 0) PUT(0, 4);
    fence();
    if (rank == 0) PUT(0, 4); // second_epoch one
    if (rank == 2) GET(0, 4); // second_epoch two
    fence();
}

// Post, start, complete, wait.

static void posted(void) {
    if (rank == 1) {
        MPI_Group all, both;
        MPI_Comm_group(WORLD, &all);
        MPI_Group_incl(all, 2, (int[]){0, 2}, &both);
        MPI_Win_post(both, 0, win);
        MPI_Win_wait(win);
        MPI_Group_free(&all);
        MPI_Group_free(&both);
    } else {
        MPI_Group one = only(1);
        MPI_Win_start(one, 0, win);
        if (rank == 0) PUT(0, 2); // posted one
        if (rank == 2) PUT(1, 2); // posted two
        MPI_Win_complete(win);
        MPI_Group_free(&one);
    }
}

// Locks.

static void lock_put_get(void) {
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        PUT(0, 2); // lock_put_get one
        GET(1, 2); // lock_put_get two
        MPI_Win_unlock(1, win);
    }
}

static void lock_all_puts(void) {
    lock_all();
    if (rank == 0) PUT(0, 2); // lock_all_puts one
    if (rank == 0) MPI_Rput(words + 8, 1, MPI_INT, 1, 1, 1, MPI_INT, win, &(MPI_Request){0}); // lock_all_puts two
    unlock_all();
}

/* No flush ends the first one before the message says that it is there. */
static void unflushed(void) {
    lock_all();
    if (rank == 0) {
        PUT(0, 2); // unflushed one
        MPI_Win_sync(win);
        MPI_Send(&word, 1, MPI_INT, 1, 1, WORLD);
    }
    if (rank == 1) {
        MPI_Recv(&word, 1, MPI_INT, 0, 1, WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&word, 1, MPI_INT, 2, 1, WORLD);
    }
    if (rank == 2) {
        MPI_Recv(&word, 1, MPI_INT, 1, 1, WORLD, MPI_STATUS_IGNORE);
        PUT(1, 2); // unflushed two
        MPI_Win_flush(1, win);
    }
    unlock_all();
}

static void fetch_next_to_put(void) {
    lock_all();
    if (rank == 0) {
        PUT(0, 1); // fetch_next_to_put one
        MPI_Fetch_and_op(&word, words + 40, MPI_INT, 1, 0, MPI_SUM, win); // fetch_next_to_put two
    }
    unlock_all();
}

// Memory of the origin.

static void get_twice(void) {
    fence();
    if (rank == 0) MPI_Get(words, 4, MPI_INT, 1, 0, 4, MPI_INT, win); // get_twice one
    if (rank == 0) MPI_Get(words + 3, 1, MPI_INT, 1, 8, 1, MPI_INT, win); // get_twice two
    fence();
}

static void get_then_put(void) {
    lock_all();
    if (rank == 0) MPI_Get(words, 4, MPI_INT, 1, 0, 4, MPI_INT, win); // get_then_put one
    if (rank == 0) MPI_Put(words, 4, MPI_INT, 1, 8, 4, MPI_INT, win); // get_then_put two
    unlock_all();
}

static void get_then_send(void) {
    fence();
    if (rank == 0) MPI_Get(words, 4, MPI_INT, 1, 0, 4, MPI_INT, win); // get_then_send one
    if (rank == 0) MPI_Send(words, 4, MPI_INT, 0, 1, WORLD); // get_then_send two
    fence();
}

static void put_then_receive(void) {
    lock_all();
    if (rank == 0) MPI_Put(words, 4, MPI_INT, 1, 0, 4, MPI_INT, win); // put_then_receive one
    if (rank == 0) MPI_Recv(words, 4, MPI_INT, 2, 1, WORLD, MPI_STATUS_IGNORE); // put_then_receive two
    if (rank == 2) MPI_Send(words, 4, MPI_INT, 0, 1, WORLD);
    unlock_all();
}

// What follows is correct.

static void correct(void) {
    MPI_Request request;
    int old, compare = 1;
    fence();
    if (rank == 0) PUT(0, 4);
    if (rank == 2) PUT(4, 4);
    if (rank == 1) MPI_Put(cells + 16, 2, MPI_INT, 0, 0, 2, MPI_INT, win);
    fence();
    /* Different epochs; readers of one place; accumulates of one kind. */
    GET(0, 8);
    fence();
    ACC(MPI_SUM);
    fence();
    /* Columns that lie between each other. */
    if (rank == 0) MPI_Put(words, 8, MPI_INT, 1, 0, 1, column, win);
    if (rank == 2) MPI_Put(words, 8, MPI_INT, 1, 1, 1, column, win);
    fence();
    if (rank == 1) MPI_Send(cells, 4, MPI_INT, 0, 1, WORLD);
    if (rank == 0) MPI_Recv(words, 4, MPI_INT, 1, 1, WORLD, MPI_STATUS_IGNORE);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    /* One after the other, by locks, by flushes, by a message after a flush, by a request. */
    for (int i = 0; i < 3; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        GET(0, 1);
        MPI_Win_flush(1, win);
        PUT(0, 1);
        MPI_Win_unlock(1, win);
    }
    MPI_Barrier(WORLD);
    lock_all();
    if (rank == 0) {
        PUT(0, 1);
        MPI_Win_flush(1, win);
        PUT(0, 1);
        MPI_Win_flush_all(win);
        MPI_Rget(words + 32, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        PUT(0, 1);
        MPI_Win_flush_local(1, win);
        words[0] = 1;
        MPI_Win_flush(1, win);
        MPI_Send(&word, 1, MPI_INT, 2, 1, WORLD);
    }
    if (rank == 2) {
        MPI_Recv(&word, 1, MPI_INT, 0, 1, WORLD, MPI_STATUS_IGNORE);
        PUT(0, 1);
        MPI_Win_flush(1, win);
    }
    unlock_all();
    /* Atomics of any kind that wait for each other: a lock of the program's own. */
    lock_all();
    MPI_Fetch_and_op(&word, &old, MPI_INT, 1, 2, MPI_NO_OP, win);
    MPI_Win_flush(1, win);
    MPI_Compare_and_swap(&word, &compare, &old, MPI_INT, 1, 2, win);
    MPI_Win_flush(1, win);
    MPI_Fetch_and_op(&word, &old, MPI_INT, 1, 2, MPI_REPLACE, win);
    unlock_all();
    /* An accumulate follows another of the same rank in the order of the calls. */
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        ACC(MPI_SUM);
        ACC(MPI_REPLACE);
        MPI_Win_unlock(1, win);
    }
    MPI_Barrier(WORLD);
    for (int i = 0; i < 3; i++) {
        int who = i % 2 * 2;
        MPI_Group one = only(rank == 1 ? who : 1);
        if (rank == 1) {
            MPI_Win_post(one, 0, win);
            MPI_Win_wait(win);
        } else if (rank == who) {
            MPI_Win_start(one, 0, win);
            PUT(0, 2);
            MPI_Win_complete(win);
        }
        MPI_Group_free(&one);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} HOW[] = {{"put_put", put_put}, {"put_put_same", put_put_same}, {"put_get", put_get}, {"put_acc", put_acc},
           {"get_acc", get_acc}, {"acc_operations", acc_operations}, {"acc_types", acc_types}, {"put_columns", put_columns},
           {"own_put", own_put}, {"put_from_exposed", put_from_exposed}, {"get_into_exposed", get_into_exposed},
           {"send_exposed", send_exposed}, {"second_epoch", second_epoch}, {"posted", posted}, {"lock_put_get", lock_put_get},
           {"lock_all_puts", lock_all_puts}, {"unflushed", unflushed}, {"fetch_next_to_put", fetch_next_to_put},
           {"get_twice", get_twice}, {"get_then_put", get_then_put}, {"get_then_send", get_then_send},
           {"put_then_receive", put_then_receive}, {"correct", correct}};

/* conflicts HOW created|allocated|dynamic */
int main(int argc, char **argv) {
    static int lent[CELLS];
    const char *kind = argc > 2 ? argv[2] : "created";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    MPI_Type_vector(8, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    cells = lent;
    if (!strcmp(kind, "allocated"))
        MPI_Win_allocate(sizeof lent, sizeof(int), MPI_INFO_NULL, WORLD, &cells, &win);
    else
        MPI_Win_create(lent, sizeof lent, sizeof(int), MPI_INFO_NULL, WORLD, &win);
    MPI_Win_set_name(win, "grid");
    for (size_t i = 0; i < sizeof HOW / sizeof *HOW; i++)
        if (argc > 1 && !strcmp(argv[1], HOW[i].name)) HOW[i].run();
    MPI_Win_free(&win);
    MPI_Type_free(&column);
    MPI_Finalize();
    return 0;
}
