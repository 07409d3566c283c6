// An exception of the program's passes through a recorded call: what comes after it is recorded.
#include <mpi.h>

static void fail(MPI_Comm *, int *code, ...) { throw *code; }

// further down the stack than the call that was left
__attribute__((noinline)) static void after() { MPI_Barrier(MPI_COMM_SELF); /* PROFILE: 6 0 */ }

int main(int argc, char **argv) {
    int caught = 0, x = 0;
    MPI_Init(&argc, &argv); /* PROFILE: 2 0 */
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(fail, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    for (int i = 0; i < 3; i++) {
        try {
            MPI_Send(&x, 1, MPI_INT, 77, 0, MPI_COMM_SELF);
        } catch (int) {
            caught++;
        }
        after();
    }
    MPI_Errhandler_free(&handler);
    MPI_Finalize(); /* PROFILE: 2 0 */
    return caught == 3 ? 0 : 1;
}
