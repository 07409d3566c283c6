// run: n=2,4 timeout=90 abi=one
// Messages of one source in one communicator do not overtake each other, whatever their sizes; tags and communicators
// may be received in any order; wildcards take the first that fits.
#include "check.h"

#define N 300
static const int sizes[] = {4, 70000, 8, 1 << 20, 16, 5000, 32, 300000, 0, 64};

static int size_of(int i) { return sizes[i % 10]; }

static void mixed_sizes(MPI_Comm comm, int any) {
    int me, size, i;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    char *buf = malloc(1 << 20);
    if (me == 0) {
        int left = N * (size - 1), *next = calloc(size, sizeof *next);
        while (left-- > 0) {
            MPI_Status s;
            int from = any ? MPI_ANY_SOURCE : 1 + left % (size - 1);
            OK(MPI_Recv(buf, 1 << 20, MPI_BYTE, from, MPI_ANY_TAG, comm, &s));
            i = next[s.MPI_SOURCE]++;
            CHECK_EQ(s.MPI_TAG, i);
            CHECK_EQ(count_of(&s, MPI_BYTE), size_of(i));
            CHECK_EQ(differs(buf, size_of(i), s.MPI_SOURCE * 1000 + i), -1);
        }
        free(next);
    } else {
        MPI_Request r[10];
        char *out[10];
        for (i = 0; i < 10; i++) out[i] = malloc(1 << 20), r[i] = MPI_REQUEST_NULL;
        for (i = 0; i < N; i++) {
            int k = i % 10;
            OK(MPI_Wait(&r[k], MPI_STATUS_IGNORE));
            fill(out[k], size_of(i), me * 1000 + i);
            OK(MPI_Isend(out[k], size_of(i), MPI_BYTE, 0, i, comm, &r[k]));
        }
        OK(MPI_Waitall(10, r, MPI_STATUSES_IGNORE));
        for (i = 0; i < 10; i++) free(out[i]);
    }
    free(buf);
    meet();
}

static void tags_backwards(MPI_Comm comm) {
    int me, i, v;
    MPI_Comm_rank(comm, &me);
    if (me == 1)
        for (i = 0; i < N; i++) OK(MPI_Send(&i, 1, MPI_INT, 0, i, comm));
    if (me == 0)
        for (i = N - 1; i >= 0; i--) {
            OK(MPI_Recv(&v, 1, MPI_INT, 1, i, comm, MPI_STATUS_IGNORE));
            CHECK_EQ(v, i);
        }
    meet();
}

// Receives posted with and without wildcards match in the order they were posted.
static void posted_order(MPI_Comm comm) {
    int me, i, v[6];
    MPI_Status s[6];
    MPI_Request r[6];
    MPI_Comm_rank(comm, &me);
    if (me == 0) {
        int from[] = {MPI_ANY_SOURCE, 1, MPI_ANY_SOURCE, 1, MPI_ANY_SOURCE, 1};
        int tag[] = {7, MPI_ANY_TAG, MPI_ANY_TAG, 7, 8, 7};
        for (i = 0; i < 6; i++) OK(MPI_Irecv(&v[i], 1, MPI_INT, from[i], tag[i], comm, &r[i]));
        MPI_Send(NULL, 0, MPI_BYTE, 1, 1, comm);
        OK(MPI_Waitall(6, r, s));
        int want[] = {0, 1, 2, 3, 5, 4};
        for (i = 0; i < 6; i++) {
            CHECK_EQ(v[i], want[i]);
            CHECK_EQ(s[i].MPI_SOURCE, 1);
            CHECK_EQ(s[i].MPI_TAG, v[i] == 1 || v[i] == 5 ? 8 : 7);
        }
    } else if (me == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, comm, MPI_STATUS_IGNORE);
        for (i = 0; i < 6; i++) OK(MPI_Send(&i, 1, MPI_INT, 0, i == 1 || i == 5 ? 8 : 7, comm));
    }
    meet();
}

static void two_communicators(MPI_Comm a, MPI_Comm b) {
    int i, v;
    if (check_rank == 1)
        for (i = 0; i < 20; i++) {
            v = i;
            OK(MPI_Send(&v, 1, MPI_INT, 0, 3, a));
            v = 100 + i;
            OK(MPI_Send(&v, 1, MPI_INT, 0, 3, b));
        }
    if (check_rank == 0) {
        for (i = 0; i < 20; i++) {
            OK(MPI_Recv(&v, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, b, MPI_STATUS_IGNORE));
            CHECK_EQ(v, 100 + i);
        }
        for (i = 0; i < 20; i++) {
            OK(MPI_Recv(&v, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, a, MPI_STATUS_IGNORE));
            CHECK_EQ(v, i);
        }
    }
    meet();
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm dup;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    mixed_sizes(MPI_COMM_WORLD, 0);
    mixed_sizes(dup, 1);
    tags_backwards(dup);
    posted_order(dup);
    posted_order(MPI_COMM_WORLD);
    two_communicators(MPI_COMM_WORLD, dup);
    MPI_Comm_free(&dup);
    return check_end();
}
