// run: n=2 timeout=60
// Buffered sends: attached buffers of process and communicator, what they hold, flushing, automatic buffers.
#include "check.h"

#define BIG (1 << 20)
static char *buf;

static void go(int tag) { MPI_Send(NULL, 0, MPI_BYTE, check_rank ^ 1, tag, MPI_COMM_WORLD); }
static void await(int tag) { MPI_Recv(NULL, 0, MPI_BYTE, check_rank ^ 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

// Ten large messages go out before the receiver looks; the buffer of the caller is free at once.
static void send_ten(MPI_Comm comm) {
    int i;
    for (i = 0; i < 10; i++) {
        fill(buf, BIG, i);
        OK(MPI_Bsend(buf, BIG, MPI_BYTE, 1, i, comm));
    }
    memset(buf, 0, BIG);
    go(100);
}

static void recv_ten(MPI_Comm comm) {
    int i;
    await(100);
    for (i = 9; i >= 0; i--) {
        OK(MPI_Recv(buf, BIG, MPI_BYTE, 0, i, comm, MPI_STATUS_IGNORE));
        CHECK_EQ(differs(buf, BIG, i), -1);
    }
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm world = MPI_COMM_WORLD, dup;
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_dup(world, &dup);
    int room = 10 * (BIG + MPI_BSEND_OVERHEAD), size = 0, v = 1;
    char *mem = malloc(room), *mem2 = malloc(room);
    void *p = NULL;
    buf = malloc(BIG);
    if (check_rank == 0) CHECK_CLASS(MPI_Bsend(&v, 1, MPI_INT, 1, 5, world), MPI_ERR_BUFFER);
    OK(MPI_Buffer_attach(mem, room));
#if STRICT
    CHECK_CLASS(MPI_Buffer_attach(mem2, room), MPI_ERR_BUFFER);
#endif
    if (check_rank == 0) send_ten(world); else recv_ten(world);
    OK(MPI_Buffer_detach(&p, &size));
    CHECK(p == mem && size == room);
    // Too small a buffer.
    OK(MPI_Buffer_attach(mem, 1000 + MPI_BSEND_OVERHEAD));
    if (check_rank == 0) {
        CHECK_CLASS(MPI_Bsend(buf, 4000, MPI_BYTE, 1, 5, world), MPI_ERR_BUFFER);
        OK(MPI_Bsend(buf, 1000, MPI_BYTE, 1, 6, world));
    } else
        OK(MPI_Recv(buf, 1000, MPI_BYTE, 0, 6, world, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_detach(&p, &size));
    CHECK(p == mem && size == 1000 + MPI_BSEND_OVERHEAD);
    // Detaching waits for the messages.
    OK(MPI_Buffer_attach(mem, room));
    if (check_rank == 0) {
        send_ten(world);
        OK(MPI_Buffer_detach(&p, &size));
        memset(mem, 0xff, room);
    } else {
        recv_ten(world);
        OK(MPI_Buffer_detach(&p, &size));
    }
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    MPI_Request r = MPI_REQUEST_NULL;
    OK(MPI_Buffer_attach(mem, room));
    if (check_rank == 0) {
        send_ten(world);
        OK(MPI_Buffer_flush());
        memset(mem, 0xff, room);
        send_ten(world);
        OK(MPI_Buffer_iflush(&r));
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        memset(mem, 0xff, room);
    } else {
        recv_ten(world);
        recv_ten(world);
    }
    // A communicator's own buffer; the process's is still there for others.
    OK(MPI_Comm_attach_buffer(dup, mem2, room));
    if (check_rank == 0) {
        send_ten(dup);
        OK(MPI_Comm_flush_buffer(dup));
        send_ten(dup);
        OK(MPI_Comm_iflush_buffer(dup, &r));
        int flag = 0;
        while (!flag) OK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
    } else {
        recv_ten(dup);
        recv_ten(dup);
    }
    OK(MPI_Comm_detach_buffer(dup, &p, &size));
    CHECK(p == mem2 && size == room);
    OK(MPI_Buffer_detach(&p, &size));
    CHECK(p == mem && size == room);
    // A buffer that the library provides.
    OK(MPI_Comm_attach_buffer(dup, MPI_BUFFER_AUTOMATIC, 0));
    if (check_rank == 0) send_ten(dup); else recv_ten(dup);
    OK(MPI_Comm_detach_buffer(dup, &p, &size));
    CHECK(p == MPI_BUFFER_AUTOMATIC);
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    if (check_rank == 0) send_ten(world); else recv_ten(world);
#else
    (void)mem2;
#endif
    MPI_Comm_free(&dup);
    return check_end();
}
