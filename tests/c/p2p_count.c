// run: n=2 timeout=60
// The large-count twins do what their plain forms do.
#include "check.h"

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    int peer = check_rank ^ 1, k, form;
    static int out[1000], in[1000];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (form = 0; form < 8; form++) {
        MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Status s;
        MPI_Count n = 1000, got = -1;
        MPI_Message m;
        for (k = 0; k < 1000; k++) out[k] = check_rank * 5000 + k + form, in[k] = -1;
        switch (form) {
        case 0: OK(MPI_Sendrecv_c(out, n, MPI_INT, peer, 1, in, n, MPI_INT, peer, 1, MPI_COMM_WORLD, &s)); break;
        case 1:
            OK(MPI_Irecv_c(in, n, MPI_INT, peer, 1, MPI_COMM_WORLD, &r[0]));
            OK(MPI_Send_c(out, n, MPI_INT, peer, 1, MPI_COMM_WORLD));
            break;
        case 2:
            OK(MPI_Isend_c(out, n, MPI_INT, peer, 1, MPI_COMM_WORLD, &r[1]));
            OK(MPI_Recv_c(in, n, MPI_INT, peer, 1, MPI_COMM_WORLD, &s));
            break;
        case 3:
            OK(MPI_Recv_init_c(in, n, MPI_INT, peer, 1, MPI_COMM_WORLD, &r[0]));
            OK(MPI_Start(&r[0]));
            OK(MPI_Ssend_c(out, n, MPI_INT, peer, 1, MPI_COMM_WORLD));
            break;
        case 4:
            OK(MPI_Issend_c(out, n, MPI_INT, peer, 1, MPI_COMM_WORLD, &r[1]));
            OK(MPI_Mprobe(peer, 1, MPI_COMM_WORLD, &m, &s));
            OK(MPI_Mrecv_c(in, n, MPI_INT, &m, &s));
            break;
        case 5: {
            MPI_Count size = 8000 + MPI_BSEND_OVERHEAD, back = 0;
            void *p, *mem = malloc(size);
            OK(MPI_Buffer_attach_c(mem, size));
            OK(MPI_Bsend_c(out, n, MPI_INT, peer, 1, MPI_COMM_WORLD));
            OK(MPI_Recv_c(in, n, MPI_INT, peer, 1, MPI_COMM_WORLD, &s));
            OK(MPI_Buffer_detach_c(&p, &back));
            CHECK(p == mem && back == size);
            free(mem);
            break;
        }
        case 6:
            memcpy(in, out, sizeof in);
            OK(MPI_Sendrecv_replace_c(in, n, MPI_INT, peer, 1, peer, 1, MPI_COMM_WORLD, &s));
            break;
        default:
            OK(MPI_Isendrecv_c(out, n, MPI_INT, peer, 1, in, n, MPI_INT, peer, 1, MPI_COMM_WORLD, &r[0]));
        }
        if (r[0] != MPI_REQUEST_NULL) {
            int persistent = form == 3;
            OK(MPI_Wait(&r[0], &s));
            if (persistent) OK(MPI_Request_free(&r[0]));
        }
        OK(MPI_Wait(&r[1], MPI_STATUS_IGNORE));
        OK(MPI_Get_count_c(&s, MPI_INT, &got));
        CHECK_EQ(got, n);
        CHECK(s.MPI_SOURCE == peer && s.MPI_TAG == 1);
        for (k = 0; k < 1000; k++)
            if (in[k] != peer * 5000 + k + form) { CHECK_EQ(in[k], peer * 5000 + k + form); break; }
    }
    CHECK_CLASS(MPI_Send_c(out, -1, MPI_INT, peer, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
    /* More than 2^63 - 1 bytes are a wrong count, and no null buffer. */
    MPI_Datatype row;
    OK(MPI_Type_contiguous(250, MPI_INT, &row));
    OK(MPI_Type_commit(&row));
    CHECK_CLASS(MPI_Send_c(out, (MPI_Count)1 << 62, MPI_INT, peer, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Send_c(out, (MPI_Count)1 << 56, row, peer, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
    OK(MPI_Type_free(&row));
    return check_end();
}
