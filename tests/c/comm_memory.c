// run: n=4,64 timeout=60 abi=one
/* A communicator costs a rank less than 4 KB of heap, also after collectives, whatever the number of ranks: lists for every
 * rank that had ever sent made it 13 KB. */
#include "check.h"
#include <malloc.h>
#include <stdint.h>

#define MANY 12

static size_t heap(void) {
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void use(MPI_Comm comm) {
    int a[64] = {0}, b[64], sum = 0, size;
    MPI_Comm_size(comm, &size);
    OK(MPI_Allreduce(&check_rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, size * (size - 1) / 2);
    OK(MPI_Bcast(a, 64, MPI_INT, size - 1, comm));
    OK(MPI_Gather(a, 1, MPI_INT, b, 1, MPI_INT, 0, comm));
    OK(MPI_Alltoall(a, 1, MPI_INT, b, 1, MPI_INT, comm));
    OK(MPI_Sendrecv(a, 1, MPI_INT, (check_rank + 1) % size, 0, b, 1, MPI_INT, (check_rank + size - 1) % size, 0, comm, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(comm));
}

/* What this many duplicates hold after they were used. */
static size_t held(int n) {
    MPI_Comm c[MANY];
    size_t before = heap(), after;
    for (int i = 0; i < n; i++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &c[i]));
        use(c[i]);
    }
    after = heap();
    for (int i = 0; i < n; i++) OK(MPI_Comm_free(&c[i]));
    return after > before ? after - before : 0;
}

int main(int argc, char **argv) {
    size_t least = SIZE_MAX;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    for (int i = 0; i < 4; i++) held(MANY); /* what comes once: connections, pools, schedules that are kept for the next call */
    /* Messages of ranks that are ahead lie in the heap, too, now and then 150 KB where cores are few: what communicators
     * hold is there in every round. */
    for (int i = 0; i < 8; i++) {
        size_t bytes = held(MANY);
        if (bytes < least) least = bytes;
    }
    if (STRICT && least > MANY * 4096) FAILED("%d communicators hold %zu bytes", MANY, least);
    return check_end();
}
