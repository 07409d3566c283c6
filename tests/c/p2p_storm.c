// run: n=2,4 timeout=120 abi=one
// Twenty thousand messages both ways (a hundred thousand in `make check-all`): as pairs, as windows of requests, and all
// unexpected.
#include "check.h"

#define WINDOW 500

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    int me = check_rank, peer = me ^ 1, i, k;
    if (check_size > 2) { // fewer each when there are more
        if (peer >= check_size) peer = me;
    }
    int n = check_times(100000, 20000) / (check_size / 2);
    MPI_Status s;
    static MPI_Request r[2 * WINDOW];
    static int in[WINDOW], out[WINDOW];
    for (i = 0; i < n; i++) {
        int v = -1;
        MPI_Sendrecv(&i, 1, MPI_INT, peer, 1, &v, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, &s);
        if (v != i) { CHECK_EQ(v, i); break; }
    }
    for (i = 0; i < n; i += WINDOW) {
        for (k = 0; k < WINDOW; k++) MPI_Irecv(&in[k], 1, MPI_INT, peer, 2, MPI_COMM_WORLD, &r[k]);
        for (k = 0; k < WINDOW; k++) {
            out[k] = i + k;
            MPI_Isend(&out[k], 1, MPI_INT, peer, 2, MPI_COMM_WORLD, &r[WINDOW + k]);
        }
        OK(MPI_Waitall(2 * WINDOW, r, MPI_STATUSES_IGNORE));
        for (k = 0; k < WINDOW; k++)
            if (in[k] != i + k) { CHECK_EQ(in[k], i + k); break; }
    }
    // One floods, the other comes late, and takes them in reverse order of tags, ten at a time.
    int m = n / 4, round;
    for (round = 0; round < 2; round++) {
        if (me % 2 == round) {
            for (i = 0; i < m; i++) MPI_Send(&i, 1, MPI_INT, peer, i % 10, MPI_COMM_WORLD);
        }
        if (me % 2 != round || peer == me)
            for (k = 9; k >= 0; k--)
                for (i = k; i < m; i += 10) {
                    int v = -1;
                    MPI_Recv(&v, 1, MPI_INT, peer, k, MPI_COMM_WORLD, &s);
                    if (v != i) { CHECK_EQ(v, i); break; }
                }
    }
    meet();
    return check_end();
}
