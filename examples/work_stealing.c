/* work_stealing: idle ranks take tasks from the queues of busy ones.

   mpicc -O2 -o work_stealing work_stealing.c && mpiexec -n 4 ./work_stealing 11

   Counts the ways to place N queens on a board so that none attacks another. Rank 0 begins with the empty board; a task
   is a board with a few queens and creates tasks with one more queen. Every rank keeps its tasks in a window. A rank
   without tasks locks the window of another one and takes half of its tasks, while that rank continues to compute. */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* Boards with SHALLOW queens are counted at once; a rank never has as many tasks as its queue has room for. */
enum { MOST = 16, SHALLOW = 4, ROOM = 4096 };

struct task {
    int queens, column[MOST]; /* the column of the queen in each row */
};

/* Tasks first..last-1 wait, each in its number modulo ROOM: their owner takes the last, thieves the first ones. */
struct queue {
    long first, last;
    struct task tasks[ROOM];
};

static int n, rank, size;
static MPI_Win queues, unfinished;
static MPI_Datatype task_type;
static struct queue *mine;

/* Adds to the number of unfinished tasks, which rank 0 keeps; what it was before. */
static long add_unfinished(long more)
{
    long before;
    MPI_Fetch_and_op(&more, &before, MPI_LONG, 0, 0, more ? MPI_SUM : MPI_NO_OP, unfinished);
    MPI_Win_flush(0, unfinished);
    return before;
}

/* The owner's side: with its own lock it may load and store. */
static void push(const struct task *task)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, queues);
    if (mine->last - mine->first == ROOM) {
        fprintf(stderr, "work_stealing: the queue of rank %d is full\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    mine->tasks[mine->last++ % ROOM] = *task;
    MPI_Win_unlock(rank, queues);
}

static int pop(struct task *task)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, queues);
    int any = mine->first < mine->last;
    if (any) *task = mine->tasks[--mine->last % ROOM];
    MPI_Win_unlock(rank, queues);
    return any;
}

static MPI_Aint task_at(long number)
{
    return (MPI_Aint)(offsetof(struct queue, tasks) + number % ROOM * sizeof(struct task));
}

/* Takes half of the tasks of another rank; how many. */
static int steal(int victim)
{
    static struct task loot[ROOM];
    long ends[2];
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, victim, 0, queues);
    MPI_Get(ends, 2, MPI_LONG, victim, 0, 2, MPI_LONG, queues);
    MPI_Win_flush(victim, queues); /* now `ends` is here, and cannot change: we hold the lock */
    int taken = (int)((ends[1] - ends[0] + 1) / 2);
    for (int i = 0; i < taken; i++)
        MPI_Get(&loot[i], 1, task_type, victim, task_at(ends[0] + i), 1, task_type, queues);
    ends[0] += taken;
    MPI_Put(ends, 1, MPI_LONG, victim, offsetof(struct queue, first), 1, MPI_LONG, queues);
    MPI_Win_unlock(victim, queues); /* all of it has ended */
    for (int i = 0; i < taken; i++) push(&loot[i]);
    return taken;
}

static int fits(const struct task *board, int column)
{
    for (int row = 0; row < board->queens; row++) {
        int away = abs(board->column[row] - column);
        if (away == 0 || away == board->queens - row) return 0;
    }
    return 1;
}

static long count(struct task *board)
{
    long ways = 0;
    if (board->queens == n) return 1;
    for (int column = 0; column < n; column++)
        if (fits(board, column)) {
            board->column[board->queens++] = column;
            ways += count(board);
            board->queens--;
        }
    return ways;
}

/* Does a task; the solutions that it has found itself. */
static long work(struct task *task)
{
    if (task->queens >= SHALLOW || task->queens == n) return count(task);
    for (int column = 0; column < n; column++)
        if (fits(task, column)) {
            struct task next = *task;
            next.column[next.queens++] = column;
            add_unfinished(1); /* before anybody can finish it */
            push(&next);
        }
    return 0;
}

int main(int argc, char **argv)
{
    static const long KNOWN[MOST + 1] = {1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512};
    struct task task = {0, {0}};
    long *left, ways = 0, done = 0, stolen = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    n = argc > 1 ? atoi(argv[1]) : 10;
    if (n < 0 || n > MOST) n = 10;
    MPI_Type_contiguous(sizeof(struct task), MPI_BYTE, &task_type);
    MPI_Type_commit(&task_type);
    MPI_Win_allocate(sizeof *mine, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &queues);
    MPI_Win_allocate(rank == 0 ? sizeof *left : 0, sizeof *left, MPI_INFO_NULL, MPI_COMM_WORLD, &left, &unfinished);
    mine->first = mine->last = 0;
    if (rank == 0) *left = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) push(&task);

    MPI_Win_lock_all(0, unfinished);
    for (int victim = rank; add_unfinished(0) > 0;) {
        while (pop(&task)) {
            ways += work(&task);
            done++;
            add_unfinished(-1);
        }
        victim = (victim + 1) % size;
        if (victim != rank) stolen += steal(victim);
    }
    MPI_Win_unlock_all(unfinished);

    long mine_of[3] = {ways, done, stolen}, all[3];
    MPI_Reduce(mine_of, all, 3, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    int wrong = rank == 0 && all[0] != KNOWN[n];
    if (rank == 0)
        printf("%d queens: %ld ways%s; %d ranks did %ld tasks, of which %ld were stolen\n", n, all[0],
               wrong ? ", which is wrong" : "", size, all[1], all[2]);
    MPI_Win_free(&queues);
    MPI_Win_free(&unfinished);
    MPI_Type_free(&task_type);
    MPI_Finalize();
    return wrong;
}
