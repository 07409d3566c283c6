/* Buffers for buffered sends that are attached to a session (MPI 5.0, 3.6): they serve the communicators that were derived from
 * it, in any way, unless such a one has a buffer of its own; without one the process's buffer serves. */
// run: n=1,2 abi=one
#include "check.h"

enum { ROOM = 4096 + MPI_BSEND_OVERHEAD };
static char of_session[ROOM], of_comm[ROOM], of_process[ROOM], data[3000], got[3000];

/* A buffered send to the next process and its receive; the class of the send's error. */
static int pass(MPI_Comm c, int bytes) {
    int rank, size, to, from, class;
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
    to = (rank + 1) % size, from = (rank + size - 1) % size;
    fill(data, bytes, 5);
    class = check_class(MPI_Bsend(data, bytes, MPI_BYTE, to, 3, c));
    if (class != MPI_SUCCESS) return class;
    OK(MPI_Recv(got, sizeof got, MPI_BYTE, from, 3, c, MPI_STATUS_IGNORE));
    CHECK_EQ(differs(got, bytes, 5), -1);
    return MPI_SUCCESS;
}

/* The buffer that a detach call gave back. */
static void is_back(void *addr, int size, void *given, int bytes) {
    CHECK(addr == given);
    CHECK_EQ(size, bytes);
}

/* 3.6.1: whatever is derived from the session uses its buffer. */
static void descendants(MPI_Comm c) {
    MPI_Comm made[4], later;
    MPI_Group g;
    MPI_Request r;
    MPI_Info info;
    int size, i, dims = 0, around = 1;
    OK(MPI_Comm_size(c, &size));
    OK(MPI_Comm_dup(c, &made[0]));
    OK(MPI_Comm_split(c, 0, 0, &made[1]));
    OK(MPI_Dims_create(size, 1, &dims));
    OK(MPI_Cart_create(c, 1, &dims, &around, 0, &made[2]));
    OK(MPI_Comm_group(made[0], &g));
    OK(MPI_Comm_create_from_group(g, "again", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made[3]));
    OK(MPI_Group_free(&g));
    for (i = 0; i < 4; i++) CHECK_EQ(pass(made[i], 100), MPI_SUCCESS);
    OK(MPI_Info_create(&info));
    OK(MPI_Comm_idup_with_info(made[0], info, &later, &r));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    OK(MPI_Info_free(&info));
    CHECK_EQ(pass(later, 100), MPI_SUCCESS);
    OK(MPI_Comm_free(&later));
    for (i = 0; i < 4; i++) OK(MPI_Comm_free(&made[i]));
}

int main(int argc, char **argv) {
    MPI_Session s;
    MPI_Group g;
    MPI_Comm c;
    MPI_Request r;
    void *addr;
    int size, n;
    (void)argc; (void)argv;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
    OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &g));
    OK(MPI_Comm_create_from_group(g, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    OK(MPI_Group_free(&g));
    OK(MPI_Comm_rank(c, &check_rank));
    OK(MPI_Comm_size(c, &n));
#if STRICT
    CHECK_CLASS(pass(c, 10), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Session_detach_buffer(s, &addr, &size), MPI_ERR_BUFFER);
#endif
    OK(MPI_Session_attach_buffer(s, of_session, ROOM));
#if STRICT
    CHECK_CLASS(MPI_Session_attach_buffer(s, of_session, ROOM), MPI_ERR_BUFFER);
#endif
    CHECK_EQ(pass(c, 3000), MPI_SUCCESS);
    descendants(c);
    OK(MPI_Session_flush_buffer(s));
    OK(MPI_Session_iflush_buffer(s, &r));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    OK(MPI_Comm_attach_buffer(c, of_comm, ROOM));
    OK(MPI_Buffer_attach(of_process, ROOM));
    CHECK_EQ(pass(c, 100), MPI_SUCCESS);
    OK(MPI_Comm_detach_buffer(c, &addr, &size));
    is_back(addr, size, of_comm, ROOM);
    OK(MPI_Session_detach_buffer(s, &addr, &size));
    is_back(addr, size, of_session, ROOM);
    CHECK_EQ(pass(c, 100), MPI_SUCCESS);
    OK(MPI_Buffer_detach(&addr, &size));
    is_back(addr, size, of_process, ROOM);
    // MPI_BUFFER_AUTOMATIC has no bounds; detaching gives it back.
    OK(MPI_Session_attach_buffer(s, MPI_BUFFER_AUTOMATIC, 0));
    CHECK_EQ(pass(c, 3000), MPI_SUCCESS);
    OK(MPI_Session_detach_buffer(s, &addr, &size));
    CHECK(addr == MPI_BUFFER_AUTOMATIC);
    CHECK_EQ(size, 0);
    OK(MPI_Comm_free(&c));
    OK(MPI_Session_finalize(&s));
    return check_failed != 0;
}
