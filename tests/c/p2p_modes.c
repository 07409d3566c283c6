// run: n=2,4 timeout=120
// Every way to send, expected and unexpected, at sizes around the limits of protocols, to a neighbour and to oneself.
#include "check.h"

enum { SEND, SSEND, RSEND, BSEND, ISEND, ISSEND, IRSEND, IBSEND, MODES };
static const size_t sizes[] = {0,     1,     3,     7,      8,      31,     32,      33,      63,      64,      65,    200,
                               1023,  1024,  1025,  4095,   4096,   4097,   8191,    8192,    8193,    16384,   16385, 32767,
                               32768, 32769, 65535, 65536,  65537,  131072, 262143,  262144,  262145,  1 << 20, (1 << 20) + 1,
                               3 << 20, (8 << 20)};
#define NSIZES (sizeof sizes / sizeof *sizes)
#define MAX ((8 << 20) + 16)

static void send_by(int mode, void *p, int n, int to, int tag) {
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Comm c = MPI_COMM_WORLD;
    switch (mode) {
    case SEND: OK(MPI_Send(p, n, MPI_BYTE, to, tag, c)); break;
    case SSEND: OK(MPI_Ssend(p, n, MPI_BYTE, to, tag, c)); break;
    case RSEND: OK(MPI_Rsend(p, n, MPI_BYTE, to, tag, c)); break;
    case BSEND: OK(MPI_Bsend(p, n, MPI_BYTE, to, tag, c)); break;
    case ISEND: OK(MPI_Isend(p, n, MPI_BYTE, to, tag, c, &r)); break;
    case ISSEND: OK(MPI_Issend(p, n, MPI_BYTE, to, tag, c, &r)); break;
    case IRSEND: OK(MPI_Irsend(p, n, MPI_BYTE, to, tag, c, &r)); break;
    case IBSEND: OK(MPI_Ibsend(p, n, MPI_BYTE, to, tag, c, &r)); break;
    }
    if (mode >= ISEND) {
        CHECK(r != MPI_REQUEST_NULL);
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        CHECK(r == MPI_REQUEST_NULL);
    }
}

static void check_message(char *p, int n, uint64_t seed, MPI_Status *s, int from, int tag) {
    CHECK_EQ(s->MPI_SOURCE, from);
    CHECK_EQ(s->MPI_TAG, tag);
    CHECK_EQ(count_of(s, MPI_BYTE), n);
    CHECK_EQ(differs(p, n, seed), -1);
    CHECK_EQ((unsigned char)p[n], 0xee);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    char *out = malloc(MAX), *in = malloc(MAX), *attached = malloc(MAX + MPI_BSEND_OVERHEAD);
    int me = check_rank, mode, late;
    size_t i;
    MPI_Buffer_attach(attached, MAX + MPI_BSEND_OVERHEAD);
    int peer = me ^ 1, sender = me % 2 == 0;
    for (mode = 0; mode < MODES && peer < check_size; mode++)
        for (i = 0; i < NSIZES; i++)
            for (late = 0; late < 2; late++) {
                int n = (int)sizes[i], tag = (int)(mode * 100 + i);
                int ready = mode == RSEND || mode == IRSEND;
                uint64_t seed = mode * 1000 + i * 2 + late;
                if (sender) {
                    fill(out, n, seed);
                    if (!late || ready) MPI_Recv(NULL, 0, MPI_BYTE, peer, 9999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    if (late && !ready && (mode == SSEND || n > 1000)) {
                        // A small message after it tells the receiver that the large one is on its way.
                        MPI_Request r;
                        OK(MPI_Isend(out, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &r));
                        OK(MPI_Send(&n, 1, MPI_INT, peer, 9998, MPI_COMM_WORLD));
                        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
                    } else {
                        send_by(mode, out, n, peer, tag);
                        if (late && !ready) OK(MPI_Send(&n, 1, MPI_INT, peer, 9998, MPI_COMM_WORLD));
                    }
                } else {
                    MPI_Request r;
                    MPI_Status s;
                    memset(in, 0xee, n + 16);
                    if (!late || ready) {
                        OK(MPI_Irecv(in, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &r));
                        MPI_Send(NULL, 0, MPI_BYTE, peer, 9999, MPI_COMM_WORLD);
                        OK(MPI_Wait(&r, &s));
                    } else if (mode == SSEND || mode == ISSEND) {
                        OK(MPI_Recv(in, n + 4, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &s));
                        OK(MPI_Recv(&n, 1, MPI_INT, peer, 9998, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                    } else {
                        int m;
                        if (n > 1000 || mode == BSEND || mode == IBSEND || mode == ISEND || n <= 64)
                            OK(MPI_Recv(&m, 1, MPI_INT, peer, 9998, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                        OK(MPI_Recv(in, n + 4, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &s));
                        if (!(n > 1000 || mode == BSEND || mode == IBSEND || mode == ISEND || n <= 64))
                            OK(MPI_Recv(&m, 1, MPI_INT, peer, 9998, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                    }
                    check_message(in, n, seed, &s, peer, tag);
                }
            }
    for (mode = ISEND; mode < MODES; mode++)
        for (i = 0; i < NSIZES; i++) {
            int n = (int)sizes[i];
            MPI_Request r[2];
            MPI_Status s;
            fill(out, n, i);
            memset(in, 0xee, n + 16);
            OK(MPI_Irecv(in, n, MPI_BYTE, me, 5, MPI_COMM_WORLD, &r[1]));
            send_by(mode == IBSEND ? BSEND : ISEND, out, n, me, 5);
            OK(MPI_Wait(&r[1], &s));
            check_message(in, n, i, &s, me, 5);
            memset(in, 0xee, n + 16);
            OK(MPI_Issend(out, n, MPI_BYTE, 0, 6, MPI_COMM_SELF, &r[0]));
            OK(MPI_Irecv(in, n, MPI_BYTE, 0, 6, MPI_COMM_SELF, &r[1]));
            OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
            OK(MPI_Wait(&r[1], &s));
            check_message(in, n, i, &s, 0, 6);
        }
    void *p;
    int size;
    OK(MPI_Buffer_detach(&p, &size));
    CHECK(p == attached);
    CHECK_EQ(size, MAX + MPI_BSEND_OVERHEAD);
    return check_end();
}
