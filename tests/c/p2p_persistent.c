// run: n=2,4 timeout=60
// Persistent requests of every mode, started many times; inactive ones in completion calls.
#include "check.h"

// A rank may be this many rounds ahead of its neighbour.
#define ROOM (5 * (500000 + MPI_BSEND_OVERHEAD))

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    int me = check_rank, left = (me - 1 + check_size) % check_size, right = (me + 1) % check_size;
    static const int sizes[] = {0, 1, 100, 20000, 500000};
    char *attached = malloc(ROOM), *out[3], *in[3];
    int i, k, round, flag, index, n, indices[6];
    MPI_Status s[6];
    MPI_Request r[6];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Buffer_attach(attached, ROOM);
    for (k = 0; k < 3; k++) out[k] = malloc(500000), in[k] = malloc(500000);
    for (i = 0; i < 5; i++) {
        int size = sizes[i];
        OK(MPI_Send_init(out[0], size, MPI_BYTE, right, 1, MPI_COMM_WORLD, &r[0]));
        OK(MPI_Ssend_init(out[1], size, MPI_BYTE, right, 2, MPI_COMM_WORLD, &r[1]));
        OK(MPI_Bsend_init(out[2], size, MPI_BYTE, right, 3, MPI_COMM_WORLD, &r[2]));
        for (k = 0; k < 3; k++) OK(MPI_Recv_init(in[k], size, MPI_BYTE, left, k + 1, MPI_COMM_WORLD, &r[3 + k]));
        OK(MPI_Waitall(6, r, s));
        CHECK(s[3].MPI_SOURCE == MPI_ANY_SOURCE && s[3].MPI_TAG == MPI_ANY_TAG);
        OK(MPI_Waitany(6, r, &index, &s[0]));
        CHECK_EQ(index, MPI_UNDEFINED);
        OK(MPI_Testsome(6, r, &n, indices, s));
        CHECK_EQ(n, MPI_UNDEFINED);
        for (round = 0; round < 8; round++) {
            for (k = 0; k < 3; k++) fill(out[k], size, me * 100 + round * 3 + k);
            OK(MPI_Startall(3, r + 3));
            if (round % 2)
                OK(MPI_Startall(3, r));
            else
                for (k = 0; k < 3; k++) OK(MPI_Start(&r[k]));
            if (round == 3 && size) CHECK_CLASS(MPI_Start(&r[1]), MPI_ERR_REQUEST);
            if (round < 4)
                OK(MPI_Waitall(6, r, s));
            else if (round < 6)
                for (k = 0; k < 6; k++) {
                    MPI_Status t;
                    OK(MPI_Waitany(6, r, &index, &t));
                    CHECK(index >= 0 && index < 6);
                    if (index >= 0) s[index] = t;
                }
            else
                for (k = 0; k < 6; k++)
                    for (flag = 0; !flag;) OK(MPI_Test(&r[k], &flag, &s[k]));
            for (k = 0; k < 3; k++) {
                CHECK(r[k] != MPI_REQUEST_NULL && r[3 + k] != MPI_REQUEST_NULL);
                CHECK_EQ(s[3 + k].MPI_SOURCE, left);
                CHECK_EQ(s[3 + k].MPI_TAG, k + 1);
                CHECK_EQ(count_of(&s[3 + k], MPI_BYTE), size);
                CHECK_EQ(differs(in[k], size, left * 100 + round * 3 + k), -1);
            }
        }
        for (k = 0; k < 6; k++) {
            OK(MPI_Request_free(&r[k]));
            CHECK(r[k] == MPI_REQUEST_NULL);
        }
    }
    // Ready sends, and MPI_PROC_NULL.
    OK(MPI_Recv_init(in[0], 4, MPI_BYTE, left, 1, MPI_COMM_WORLD, &r[0]));
    OK(MPI_Rsend_init(out[0], 4, MPI_BYTE, right, 1, MPI_COMM_WORLD, &r[1]));
    OK(MPI_Recv_init(in[1], 4, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r[2]));
    OK(MPI_Send_init(out[1], 4, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r[3]));
    OK(MPI_Start(&r[0]));
    meet();
    fill(out[0], 4, me);
    OK(MPI_Startall(3, r + 1));
    OK(MPI_Waitall(4, r, s));
    CHECK_EQ(differs(in[0], 4, left), -1);
#if STRICT
    CHECK(s[2].MPI_SOURCE == MPI_PROC_NULL && s[2].MPI_TAG == MPI_ANY_TAG && count_of(&s[2], MPI_BYTE) == 0);
#endif
    for (k = 0; k < 4; k++) OK(MPI_Request_free(&r[k]));
    void *p;
    OK(MPI_Buffer_detach(&p, &n));
    return check_end();
}
