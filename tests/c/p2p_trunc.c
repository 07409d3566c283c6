// run: n=2 timeout=60
// A message longer than the receive: MPI_ERR_TRUNCATE, no byte beyond the buffer, and all goes on afterwards.
#include "check.h"

static const int sizes[] = {8, 100, 5000, 40000, 200000, 2 << 20};

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    char *buf = malloc(2 << 20);
    int i, form, early, v, index;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (i = 0; i < 6; i++)
        for (form = 0; form < 5; form++)
            for (early = 0; early < 2; early++) {
                int n = sizes[i], fits = n / 2;
                if (check_rank == 0) {
                    MPI_Request r;
                    fill(buf, n, i);
                    if (early) MPI_Recv(&v, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    OK(MPI_Isend(buf, n, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &r));
                    OK(MPI_Send(&i, 1, MPI_INT, 1, 2, MPI_COMM_WORLD));
                    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
                } else {
                    MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
                    MPI_Status s[2];
                    memset(buf, 0x11, n);
                    memset(s, 0, sizeof s);
                    s[0].MPI_ERROR = s[1].MPI_ERROR = 1234;
                    if (early) {
                        OK(MPI_Irecv(buf, fits, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &r[0]));
                        OK(MPI_Irecv(&v, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &r[1]));
                        MPI_Send(&i, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
                    } else {
                        OK(MPI_Recv(&v, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                        OK(MPI_Irecv(buf, fits, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &r[0]));
                    }
                    if (form == 0) CHECK_CLASS(MPI_Wait(&r[0], &s[0]), MPI_ERR_TRUNCATE);
                    if (form == 1) {
                        CHECK_CLASS(MPI_Waitall(2, r, s), MPI_ERR_IN_STATUS);
                        CHECK_EQ(check_class(s[0].MPI_ERROR), MPI_ERR_TRUNCATE);
                        int other = check_class(s[1].MPI_ERROR);
                        CHECK(other == MPI_SUCCESS || other == MPI_ERR_PENDING);
                    }
                    if (form == 2) {
                        int done = 0, n2, idx[2], want = early ? 2 : 1, bad = 0, k;
                        while (done < want) {
                            int code = check_class(MPI_Waitsome(2, r, &n2, idx, s));
                            if (n2 <= 0) break;
                            for (k = 0; k < n2; k++)
                                if (code && idx[k] == 0) bad += check_class(s[k].MPI_ERROR) == MPI_ERR_TRUNCATE;
                            done += n2;
                        }
                        CHECK_EQ(bad, 1);
                    }
                    if (form == 3) {
                        int code = 0;
                        for (index = -1; index != 0 && index != MPI_UNDEFINED;) code = MPI_Waitany(2, r, &index, &s[0]);
                        CHECK_EQ(check_class(code), MPI_ERR_TRUNCATE);
                    }
                    if (form == 4) {
                        int flag = 0, code = 0;
                        while (!flag && !code) code = MPI_Test(&r[0], &flag, &s[0]);
                        CHECK_EQ(check_class(code), MPI_ERR_TRUNCATE);
                    }
                    CHECK(r[0] == MPI_REQUEST_NULL);
                    OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
                    size_t k;
                    for (k = fits; k < (size_t)n; k++)
                        if (buf[k] != 0x11) { FAILED("byte %zu beyond the buffer of %d was written", k, fits); break; }
                }
            }
    // Blocking receive, and a message to oneself.
    if (check_rank == 0) {
        OK(MPI_Send(buf, 64, MPI_BYTE, 1, 9, MPI_COMM_WORLD));
        OK(MPI_Send(buf, 64, MPI_BYTE, 1, 10, MPI_COMM_WORLD));
    } else {
        MPI_Status s;
        CHECK_CLASS(MPI_Recv(buf, 63, MPI_BYTE, 0, 9, MPI_COMM_WORLD, &s), MPI_ERR_TRUNCATE);
        OK(MPI_Recv(buf, 64, MPI_BYTE, 0, 10, MPI_COMM_WORLD, &s));
        CHECK_EQ(count_of(&s, MPI_BYTE), 64);
    }
    MPI_Request r;
    OK(MPI_Irecv(buf, 1, MPI_BYTE, check_rank, 11, MPI_COMM_WORLD, &r));
    OK(MPI_Send(buf + 10, 2, MPI_BYTE, check_rank, 11, MPI_COMM_WORLD));
    CHECK_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    return check_end();
}
