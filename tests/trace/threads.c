/* Three threads of each rank exchange 50 messages each with their like, with tags of their own. None ends before all
 * have begun, so each has a ring of its own. */
#include <mpi.h>
#include <pthread.h>

static int rank;
static pthread_barrier_t all;

static void *speaks(void *tag) {
    int a = 0, b, *t = tag;
    for (int i = 0; i < 50; i++) {
        MPI_Request r;
        MPI_Irecv(&b, 1, MPI_INT, 1 - rank, *t, MPI_COMM_WORLD, &r);
        MPI_Send(&a, 1, MPI_INT, 1 - rank, *t, MPI_COMM_WORLD);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    pthread_barrier_wait(&all);
    return 0;
}

int main(void) {
    int provided, tags[3] = {1, 2, 3};
    pthread_t threads[3];
    MPI_Init_thread(0, 0, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_barrier_init(&all, 0, 3);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, speaks, &tags[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    MPI_Finalize();
    return 0;
}
