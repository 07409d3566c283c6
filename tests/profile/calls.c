/* Calls MPI so that every count and every amount is known: a line that ends with
   "PROFILE: CALLS BYTES" is called CALLS times, about BYTES bytes, by both ranks together.
   Without an argument all of that; with one, the end that it names. */
#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, other;
static int a[64], b[64];

static void point_to_point(void) {
    MPI_Request r[2];
    MPI_Status s[2];
    for (int i = 0; i < 10; i++) {
        if (rank == 0) {
            MPI_Send(a, 3, MPI_INT, 1, 0, MPI_COMM_WORLD); /* PROFILE: 10 120 */
            MPI_Recv(b, 5, MPI_SHORT, 1, 0, MPI_COMM_WORLD, s); /* PROFILE: 10 100 */
        } else {
            MPI_Recv(b, 3, MPI_INT, 0, 0, MPI_COMM_WORLD, s); /* PROFILE: 10 120 */
            MPI_Send(a, 5, MPI_SHORT, 0, 0, MPI_COMM_WORLD); /* PROFILE: 10 100 */
        }
    }
    MPI_Irecv(b, 8, MPI_BYTE, other, 1, MPI_COMM_WORLD, &r[0]); /* PROFILE: 2 16 */
    MPI_Isend(a, 8, MPI_BYTE, other, 1, MPI_COMM_WORLD, &r[1]); /* PROFILE: 2 16 */
    MPI_Waitall(2, r, s); /* PROFILE: 2 0 */
    MPI_Sendrecv(a, 2, MPI_DOUBLE, other, 2, b, 32, MPI_INT, other, 2, MPI_COMM_WORLD, s); /* PROFILE: 2 32 */
    MPI_Sendrecv_c(a, 1, MPI_DOUBLE, other, 3, b, 32, MPI_INT, other, 3, MPI_COMM_WORLD, s); /* PROFILE: 2 16 */
    MPI_Send(a, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD); /* PROFILE: 2 0 */
    MPI_Send(a, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD); /* PROFILE: 2 16 */
    MPI_Send_init(a, 4, MPI_INT, other, 4, MPI_COMM_WORLD, &r[0]); /* PROFILE: 2 0 */
    MPI_Recv_init(b, 4, MPI_INT, other, 4, MPI_COMM_WORLD, &r[1]); /* PROFILE: 2 0 */
    MPI_Startall(2, r); /* PROFILE: 2 0 */
    MPI_Waitall(2, r, s);
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

static void collective(void) {
    int counts[2] = {1, 3}, places[2] = {0, 1}, displs[2] = {0, 16};
    MPI_Datatype types[2] = {MPI_INT, MPI_SHORT};
    MPI_Bcast(a, 6, MPI_INT, 0, MPI_COMM_WORLD); /* PROFILE: 2 48 */
    MPI_Barrier(MPI_COMM_WORLD); /* PROFILE: 2 0 */
    MPI_Reduce(a, b, 2, MPI_DOUBLE, MPI_SUM, 1, MPI_COMM_WORLD); /* PROFILE: 2 32 */
    MPI_Allreduce(MPI_IN_PLACE, b, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* PROFILE: 2 16 */
    MPI_Allgather(a, 4, MPI_BYTE, b, 1, MPI_INT, MPI_COMM_WORLD); /* PROFILE: 2 8 */
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 3, MPI_INT, MPI_COMM_WORLD); /* PROFILE: 2 24 */
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, counts, places, MPI_INT, MPI_COMM_WORLD); /* PROFILE: 2 16 */
    MPI_Gather(a, 2, MPI_INT, b, 2, MPI_INT, 0, MPI_COMM_WORLD); /* PROFILE: 2 16 */
    MPI_Gatherv(rank == 1 ? MPI_IN_PLACE : a, 1, MPI_INT, b, counts, places, MPI_INT, 1, MPI_COMM_WORLD); /* PROFILE: 2 16 */
    MPI_Scatter(a, 2, MPI_INT, rank == 0 ? MPI_IN_PLACE : b, 4, MPI_SHORT, 0, MPI_COMM_WORLD); /* PROFILE: 2 16 */
    MPI_Scatterv(a, counts, places, MPI_INT, b, counts[rank], MPI_INT, 0, MPI_COMM_WORLD); /* PROFILE: 2 16 */
    MPI_Alltoall(a, 3, MPI_INT, b, 3, MPI_INT, MPI_COMM_WORLD); /* PROFILE: 2 48 */
    counts[0] = counts[1] = 2;
    places[1] = 2;
    MPI_Alltoallv(a, counts, places, MPI_INT, b, counts, places, MPI_INT, MPI_COMM_WORLD); /* PROFILE: 2 32 */
    types[rank] = types[other] = MPI_INT;
    MPI_Alltoallw(a, counts, displs, types, b, counts, displs, types, MPI_COMM_WORLD); /* PROFILE: 2 32 */
    MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* PROFILE: 2 32 */
    MPI_Reduce_scatter_block(a, b, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* PROFILE: 2 48 */
}

static void between_two_groups(void) {
    MPI_Comm inter;
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, other, 9, &inter); /* PROFILE: 2 0 */
    /* the root's group has the data: what the root's own arguments are is known, there is no one else in its group */
    MPI_Bcast(a, 4, MPI_INT, rank == 0 ? MPI_ROOT : 0, inter); /* PROFILE: 2 16 */
    MPI_Alltoall(a, 2, MPI_INT, b, 2, MPI_INT, inter); /* PROFILE: 2 16 */
    MPI_Comm_free(&inter);
}

static void datatypes(void) {
    for (int n = 1; n <= 3; n++) { /* a handle that comes again has another size */
        MPI_Datatype t;
        MPI_Type_contiguous(n, MPI_INT, &t); /* PROFILE: 6 0 */
        MPI_Type_commit(&t);
        MPI_Sendrecv(a, 2, t, other, 0, b, 2, t, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* PROFILE: 6 96 */
        MPI_Type_free(&t);
    }
}

static void sum(void *in, void *inout, int *len, MPI_Datatype *t) {
    int bytes;
    MPI_Type_size(*t, &bytes); /* of the call that called us */
    for (int i = 0; i < *len; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static jmp_buf back;

static void leave(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    (void)code;
    longjmp(back, 1);
}

static void functions_of_the_program(void) {
    MPI_Op op;
    MPI_Errhandler handler;
    MPI_Op_create(sum, 1, &op);
    MPI_Allreduce(a, b, 4, MPI_INT, op, MPI_COMM_WORLD); /* PROFILE: 2 32 */
    MPI_Op_free(&op);
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    for (int i = 0; i < 2; i++)
        if (setjmp(back) == 0) MPI_Send(a, 1, MPI_INT, 77, 0, MPI_COMM_SELF);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Send(a, 1, MPI_INT, 77, 0, MPI_COMM_SELF); /* PROFILE: 2 0 */
    MPI_Errhandler_free(&handler);
}

static void files(void) {
    MPI_File file;
    MPI_Request request;
    char name[200];
    snprintf(name, sizeof name, "/tmp/kw-profile-%s", getenv("MPIEXEC_JOB"));
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, rank * 40, a, 10, MPI_INT, MPI_STATUS_IGNORE); /* PROFILE: 2 80 */
    MPI_File_read_at(file, 0, b, 5, MPI_INT, MPI_STATUS_IGNORE); /* PROFILE: 2 40 */
    MPI_File_iwrite_at(file, rank * 4, a, 1, MPI_INT, &request); /* PROFILE: 2 8 */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_close(&file); /* PROFILE: 2 0 */
}

int main(int argc, char **argv) {
    const char *end = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv); /* PROFILE: 2 0 */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank); /* PROFILE: 2 0 */
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    other = 1 - rank;
    if (strcmp(end, "abort") == 0 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
    if (strcmp(end, "exit") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        _exit(5);
    }
    if (strcmp(end, "crash") == 0 && rank == 1) raise(SIGKILL);
    if (*end) {
        if (rank == 0) MPI_Recv(a, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else pause();
    }
    point_to_point();
    collective();
    between_two_groups();
    datatypes();
    functions_of_the_program();
    files();
    MPI_Finalize(); /* PROFILE: 2 0 */
    return 0;
}
