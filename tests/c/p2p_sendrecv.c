// run: n=1,2,4 timeout=60
// MPI_Sendrecv, its replace and immediate forms, in rings, with oneself and with MPI_PROC_NULL.
#include "check.h"

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    int me = check_rank, left = (me - 1 + check_size) % check_size, right = (me + 1) % check_size, i, form, flag;
    static const int sizes[] = {0, 4, 1000, 9000, 70000, 3 << 20};
    char *a = malloc(3 << 20), *b = malloc(3 << 20);
    for (i = 0; i < 6; i++)
        for (form = 0; form < 4; form++) {
            int n = sizes[i];
            char *got = form % 2 ? a : b;
            MPI_Status s;
            MPI_Request r;
            fill(a, n, me * 10 + i);
            memset(b, 0, n);
            if (form == 0) OK(MPI_Sendrecv(a, n, MPI_BYTE, right, 1, b, n, MPI_BYTE, left, 1, MPI_COMM_WORLD, &s));
            if (form == 1) OK(MPI_Sendrecv_replace(a, n, MPI_BYTE, right, 1, left, MPI_ANY_TAG, MPI_COMM_WORLD, &s));
            if (form == 2) {
                OK(MPI_Isendrecv(a, n, MPI_BYTE, right, 1, b, n, MPI_BYTE, left, 1, MPI_COMM_WORLD, &r));
                OK(MPI_Wait(&r, &s));
            }
            if (form == 3) {
                OK(MPI_Isendrecv_replace(a, n, MPI_BYTE, right, 1, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &r));
                for (flag = 0; !flag;) OK(MPI_Test(&r, &flag, &s));
                CHECK(r == MPI_REQUEST_NULL);
            }
#if !STRICT
            if (form < 2) // MPICH 5.0 leaves no status of the receive after MPI_Isendrecv
#endif
            {
                CHECK_EQ(s.MPI_SOURCE, left);
                CHECK_EQ(s.MPI_TAG, 1);
                CHECK_EQ(count_of(&s, MPI_BYTE), n);
            }
            CHECK_EQ(differs(got, n, left * 10 + i), -1);
            meet();
        }
    // The two sides may differ in size and type.
    int v[3] = {me, me + 1, me + 2}, w[6];
    MPI_Status s;
    OK(MPI_Sendrecv(v, 3, MPI_INT, right, 2, w, 24, MPI_BYTE, left, 2, MPI_COMM_WORLD, &s));
    CHECK(count_of(&s, MPI_BYTE) == 12 && w[2] == left + 2);
    // A line: no neighbour beyond its ends.
    int up = me + 1 < check_size ? me + 1 : MPI_PROC_NULL, down = me > 0 ? me - 1 : MPI_PROC_NULL;
    w[0] = -5;
    OK(MPI_Sendrecv(v, 1, MPI_INT, up, 3, w, 1, MPI_INT, down, 3, MPI_COMM_WORLD, &s));
    CHECK_EQ(w[0], me > 0 ? me - 1 : -5);
    CHECK_EQ(s.MPI_SOURCE, down);
    CHECK_EQ(count_of(&s, MPI_INT), me > 0);
    OK(MPI_Sendrecv_replace(v, 1, MPI_INT, up, 3, down, 3, MPI_COMM_WORLD, &s));
    CHECK_EQ(v[0], me > 0 ? me - 1 : me);
    MPI_Request r;
    OK(MPI_Isendrecv(v, 1, MPI_INT, MPI_PROC_NULL, 3, w, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &r));
    OK(MPI_Wait(&r, &s));
#if STRICT
    CHECK(s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG);
#endif
    return check_end();
}
