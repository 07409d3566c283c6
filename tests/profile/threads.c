/* Threads that call MPI at once, and many that come one after the other: more than there are sheets of the table. */
#include <mpi.h>
#include <pthread.h>

enum { AT_ONCE = 40, CALLS = 20000, IN_TURN = 100 };

static pthread_barrier_t all;

static void *at_once(void *nothing) {
    int rank;
    pthread_barrier_wait(&all);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank); /* PROFILE: 80 0 */
    pthread_barrier_wait(&all); /* each has its sheet now */
    for (int i = 0; i < CALLS; i++) MPI_Comm_rank(MPI_COMM_WORLD, &rank); /* PROFILE: 1600000 0 */
    return nothing;
}

static void *in_turn(void *nothing) {
    int a = 0, b;
    MPI_Allreduce(&a, &b, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF); /* PROFILE: 200 800 */
    return nothing;
}

int main(int argc, char **argv) {
    pthread_t threads[AT_ONCE];
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided); /* PROFILE: 2 0 */
    pthread_barrier_init(&all, 0, AT_ONCE);
    for (int i = 0; i < AT_ONCE; i++) pthread_create(&threads[i], 0, at_once, 0);
    for (int i = 0; i < AT_ONCE; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < IN_TURN; i++) {
        pthread_create(&threads[0], 0, in_turn, 0);
        pthread_join(threads[0], 0);
    }
    MPI_Finalize(); /* PROFILE: 2 0 */
    return 0;
}
