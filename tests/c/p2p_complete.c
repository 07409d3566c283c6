// run: n=2,4 timeout=90
// Wait, test, and their any, all and some forms; null and inactive requests; statuses; MPI_Request_get_status.
#include "check.h"

#define N 16
static int me, left, right;

static void nulls(void) {
    MPI_Request r[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status s, ss[3];
    int flag = 0, index = 5, n = 5, indices[3];
    OK(MPI_Wait(&r[0], &s));
    CHECK(s.MPI_SOURCE == MPI_ANY_SOURCE && s.MPI_TAG == MPI_ANY_TAG && count_of(&s, MPI_INT) == 0);
    OK(MPI_Test_cancelled(&s, &flag));
    CHECK(!flag);
    OK(MPI_Test(&r[0], &flag, &s));
    CHECK(flag);
    OK(MPI_Waitany(3, r, &index, &s));
    CHECK(index == MPI_UNDEFINED && s.MPI_SOURCE == MPI_ANY_SOURCE);
    flag = 0, index = 5;
    OK(MPI_Testany(3, r, &index, &flag, &s));
    CHECK(flag && index == MPI_UNDEFINED);
    OK(MPI_Waitsome(3, r, &n, indices, ss));
    CHECK_EQ(n, MPI_UNDEFINED);
    n = 5;
    OK(MPI_Testsome(3, r, &n, indices, ss));
    CHECK_EQ(n, MPI_UNDEFINED);
    flag = 0;
    OK(MPI_Waitall(3, r, ss));
    CHECK(ss[2].MPI_SOURCE == MPI_ANY_SOURCE && ss[2].MPI_TAG == MPI_ANY_TAG);
    OK(MPI_Testall(3, r, &flag, ss));
    CHECK(flag);
    OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    index = 5;
    OK(MPI_Waitany(0, NULL, &index, &s));
    CHECK_EQ(index, MPI_UNDEFINED);
    flag = 0;
    OK(MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &s));
    CHECK(flag && s.MPI_SOURCE == MPI_ANY_SOURCE);
}

static MPI_Request r[2 * N];
static int in[N], out[N], sizes_ok;

static void post(void) {
    int i;
    for (i = 0; i < N; i++) {
        in[i] = -1;
        out[i] = me * 100 + i;
        OK(MPI_Irecv(&in[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &r[i]));
    }
    for (i = 0; i < N; i++) OK(MPI_Isend(&out[N - 1 - i], 1, MPI_INT, right, N - 1 - i, MPI_COMM_WORLD, &r[N + i]));
}

static void received(int i, MPI_Status *s) {
    if (i >= N) return;
    CHECK_EQ(in[i], left * 100 + i);
    CHECK_EQ(s->MPI_SOURCE, left);
    CHECK_EQ(s->MPI_TAG, i);
    CHECK_EQ(count_of(s, MPI_INT), 1);
}

static void completions(void) {
    MPI_Status s, ss[2 * N];
    int i, k, n, flag, index, indices[2 * N];
    post();
    for (i = 0; i < 2 * N; i++) ss[i].MPI_ERROR = 99;
    OK(MPI_Waitall(2 * N, r, ss));
    for (i = 0; i < 2 * N; i++) {
        received(i, &ss[i]);
        CHECK(r[i] == MPI_REQUEST_NULL);
    }
    post();
    for (flag = 0; !flag;) OK(MPI_Testall(2 * N, r, &flag, ss));
    for (i = 0; i < 2 * N; i++) received(i, &ss[i]);
    post();
    for (k = 0; k < 2 * N; k++) {
        OK(MPI_Waitany(2 * N, r, &index, &s));
        CHECK(index >= 0 && index < 2 * N && r[index] == MPI_REQUEST_NULL);
        received(index, &s);
    }
    OK(MPI_Waitany(2 * N, r, &index, &s));
    CHECK_EQ(index, MPI_UNDEFINED);
    post();
    for (k = 0; k < 2 * N;) {
        OK(MPI_Testany(2 * N, r, &index, &flag, &s));
        if (!flag) { CHECK_EQ(index, MPI_UNDEFINED); continue; }
        received(index, &s);
        k++;
    }
    post();
    for (k = 0; k < 2 * N; k += n) {
        OK(MPI_Waitsome(2 * N, r, &n, indices, ss));
        CHECK(n > 0 && n <= 2 * N - k);
        if (n <= 0) return;
        for (i = 0; i < n; i++) received(indices[i], &ss[i]);
    }
    post();
    for (k = 0; k < 2 * N; k += n) {
        OK(MPI_Testsome(2 * N, r, &n, indices, ss));
        CHECK(n >= 0 && n <= 2 * N - k);
        if (n < 0) return;
        for (i = 0; i < n; i++) received(indices[i], &ss[i]);
    }
    post();
    OK(MPI_Waitall(2 * N, r, MPI_STATUSES_IGNORE));
    post();
    for (i = 2 * N - 1; i >= 0; i--) {
        for (flag = 0; !flag;) {
            OK(MPI_Request_get_status(r[i], &flag, &s));
            CHECK(r[i] != MPI_REQUEST_NULL);
        }
        received(i, &s);
        OK(MPI_Wait(&r[i], &s));
        received(i, &s);
    }
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    post();
    for (flag = 0; !flag;) OK(MPI_Request_get_status_all(2 * N, r, &flag, ss));
    for (i = 0; i < N; i++) received(i, &ss[i]);
    OK(MPI_Request_get_status_any(2 * N, r, &index, &flag, &s));
    CHECK(flag && index >= 0 && index < 2 * N);
    received(index, &s);
    OK(MPI_Request_get_status_some(2 * N, r, &n, indices, ss));
    CHECK_EQ(n, 2 * N);
    for (i = 0; i < n && i < 2 * N; i++) received(indices[i], &ss[i]);
    OK(MPI_Waitall(2 * N, r, ss));
    for (i = 0; i < N; i++) received(i, &ss[i]);
#endif
}

// Requests that are freed go on.
static void freed(void) {
    static int v[2000];
    int i;
    MPI_Request q;
    for (i = 0; i < 2000; i++) {
        v[i] = i;
        OK(MPI_Isend(&v[i], 1, MPI_INT, right, 900, MPI_COMM_WORLD, &q));
        OK(MPI_Request_free(&q));
        CHECK(q == MPI_REQUEST_NULL);
    }
    for (i = 0; i < 2000; i++) {
        int w;
        OK(MPI_Recv(&w, 1, MPI_INT, left, 900, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(w, i);
    }
    static char big[1 << 20], bigger[1 << 20];
    OK(MPI_Irecv(bigger, 1 << 20, MPI_BYTE, left, 901, MPI_COMM_WORLD, &q));
    OK(MPI_Request_free(&q));
    fill(big, 1 << 20, 4);
    OK(MPI_Ssend(big, 1 << 20, MPI_BYTE, right, 901, MPI_COMM_WORLD));
    OK(MPI_Sendrecv(NULL, 0, MPI_BYTE, right, 902, NULL, 0, MPI_BYTE, left, 902, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(differs(bigger, 1 << 20, 4), -1);
}

static void proc_null(void) {
    int v = 3, flag;
    MPI_Status s;
    MPI_Request q;
    OK(MPI_Send(&v, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    OK(MPI_Ssend(&v, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    OK(MPI_Isend(&v, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &q));
    CHECK(q != MPI_REQUEST_NULL);
    OK(MPI_Wait(&q, &s));
    OK(MPI_Recv(&v, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &s));
    CHECK(s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG && count_of(&s, MPI_INT) == 0 && v == 3);
    OK(MPI_Irecv(&v, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &q));
    CHECK(q != MPI_REQUEST_NULL);
    OK(MPI_Test(&q, &flag, &s));
    CHECK(flag && s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG && q == MPI_REQUEST_NULL);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    me = check_rank;
    left = (me - 1 + check_size) % check_size;
    right = (me + 1) % check_size;
    nulls();
    proc_null();
    completions();
    freed();
    return check_end();
}
