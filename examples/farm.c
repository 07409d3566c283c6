/* A task farm that starts workers when there is work and ends them when there is none:
 *
 *     mpicc -O2 -o farm farm.c && mpiexec -n 1 ./farm [TASKS [MOST_WORKERS]]
 *
 * The master starts one worker for every four waiting tasks, at most MOST_WORKERS, with
 * MPI_Comm_spawn. Each worker is a job of its own, so it can end before the others. A task counts
 * the primes in an interval. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TASK = 1, END = 2, MOST = 64, WIDTH = 20000 };

static int primes(int from, int to)
{
    int count = 0;
    for (int n = from < 2 ? 2 : from; n < to; n++) {
        int d = 2;
        while (d * d <= n && n % d)
            d++;
        count += d * d > n;
    }
    return count;
}

static void work(MPI_Comm master)
{
    int from;
    MPI_Status status;
    for (;;) {
        MPI_Recv(&from, 1, MPI_INT, 0, MPI_ANY_TAG, master, &status);
        if (status.MPI_TAG == END)
            break;
        int count = primes(from, from + WIDTH);
        MPI_Send(&count, 1, MPI_INT, 0, TASK, master);
    }
    MPI_Comm_disconnect(&master);
}

struct farm {
    int workers, next, tasks, done, started;
    long sum;
    MPI_Comm comm[MOST];
    MPI_Request answer[MOST];
    int count[MOST];
};

/* Gives a worker the next task, or lets it go. */
static void give(struct farm *f, int i)
{
    int from = f->next * WIDTH;
    if (f->next < f->tasks) {
        f->next++;
        MPI_Send(&from, 1, MPI_INT, 0, TASK, f->comm[i]);
        MPI_Irecv(&f->count[i], 1, MPI_INT, 0, TASK, f->comm[i], &f->answer[i]);
        return;
    }
    MPI_Send(&from, 1, MPI_INT, 0, END, f->comm[i]);
    MPI_Comm_disconnect(&f->comm[i]);
    f->workers--;
}

static void start(struct farm *f, char *program)
{
    int i = 0;
    while (f->comm[i] != MPI_COMM_NULL)
        i++;
    MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &f->comm[i], MPI_ERRCODES_IGNORE);
    f->workers++;
    f->started++;
    give(f, i);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        work(parent);
        MPI_Finalize();
        return 0;
    }
    int most = argc > 2 ? atoi(argv[2]) : 4;
    struct farm f = {.tasks = argc > 1 ? atoi(argv[1]) : 20};
    if (f.tasks < 1 || most < 1 || most > MOST) {
        fprintf(stderr, "farm: wanted are at least 1 task and from 1 to %d workers\n", MOST);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < MOST; i++) {
        f.comm[i] = MPI_COMM_NULL;
        f.answer[i] = MPI_REQUEST_NULL;
    }
    while (f.done < f.tasks) {
        while (f.workers < most && (f.tasks - f.next) > 4 * f.workers)
            start(&f, argv[0]);
        int i;
        MPI_Waitany(MOST, f.answer, &i, MPI_STATUS_IGNORE);
        f.sum += f.count[i];
        f.done++;
        give(&f, i);
    }
    printf("%ld primes below %d, counted by %d workers\n", f.sum, f.tasks * WIDTH, f.started);
    MPI_Finalize();
    return 0;
}
