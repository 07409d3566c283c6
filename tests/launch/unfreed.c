// unfreed HOW: what a program leaves at MPI_Finalize, each in its own way, or nothing (test_unfreed.py). The line that made it ends with
// a comment that says so.
#include <mpi.h>
#include <string.h>

#define WORLD MPI_COMM_WORLD

static int rank, other, a[64], b[64];

static void sums(void *in, void *inout, int *n, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *n; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void nothing(void) {
    MPI_Comm comm;
    MPI_Group group;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Request requests[3];
    for (int i = 0; i < 2; i++) {
        MPI_Comm_dup(WORLD, &comm);
        MPI_Comm_group(comm, &group);
        MPI_Type_contiguous(3, MPI_INT, &type);
        MPI_Op_create(sums, 1, &op);
        MPI_Isend(a, 1, MPI_INT, other, 1, comm, &requests[0]);
        MPI_Irecv(b, 1, MPI_INT, other, 1, comm, &requests[1]);
        MPI_Send_init(a, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &requests[2]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Isend(a, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &requests[0]);
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[2]);
        MPI_Op_free(&op);
        MPI_Type_free(&type);
        MPI_Group_free(&group);
        MPI_Comm_free(&comm);
    }
}

static void comm(void) {
    MPI_Comm made;
    for (int i = 0; i < 2; i++) MPI_Comm_dup(WORLD, &made); // comm
}

static void group(void) {
    MPI_Group made;
    MPI_Comm_group(WORLD, &made); // group
}

static void type(void) {
    MPI_Datatype made;
    MPI_Type_vector(2, 1, 2, MPI_INT, &made); // type
    MPI_Type_commit(&made);
}

static void window(void) {
    void *memory;
    MPI_Win made;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, WORLD, &memory, &made); // window
}

static void op(void) {
    MPI_Op made;
    if (rank == 1) MPI_Op_create(sums, 1, &made); // op
}

static void sent(void) {
    MPI_Request made;
    MPI_Isend(a, 1, MPI_INT, other, 1, WORLD, &made); // sent
    MPI_Recv(b, 1, MPI_INT, other, 1, WORLD, MPI_STATUS_IGNORE);
}

static void received(void) {
    MPI_Request made;
    MPI_Irecv(b, 1, MPI_INT, other, 1, WORLD, &made); // received
    MPI_Send(a, 1, MPI_INT, other, 1, WORLD);
    MPI_Barrier(WORLD);
}

static void persistent(void) {
    MPI_Request made;
    MPI_Recv_init(b, 1, MPI_INT, other, 1, WORLD, &made); // persistent
}

static void message(void) {
    MPI_Comm named;
    MPI_Comm_dup(WORLD, &named);
    MPI_Comm_set_name(named, "rows");
    for (int i = 0; i < 2 && rank == 0; i++) MPI_Send(a, 3, MPI_INT, 1, 7, named);
    if (rank == 0) MPI_Send(a, 1, MPI_INT, 1, 8, WORLD);
    static MPI_Comm kept;
    kept = named;
    (void)kept;
}

static int making(int ranks, int first, MPI_Comm *made) {
    MPI_Group all, some;
    int two[2] = {first, 1 - first};
    MPI_Comm_group(WORLD, &all);
    MPI_Group_incl(all, ranks, two, &some);
    int code = MPI_Comm_create_from_group(some, "tag", MPI_INFO_NULL, MPI_ERRORS_RETURN, made);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return code;
}

// Refused, since the ranks mean different groups; then done, with the same tag.
static void refused(void) {
    MPI_Comm made;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < 3; i++) {
        if (making(2, rank, &made) == MPI_SUCCESS) MPI_Abort(WORLD, 7);
        MPI_Barrier(WORLD);
        if (making(2, 0, &made) != MPI_SUCCESS) MPI_Abort(WORLD, 8);
        MPI_Comm_free(&made);
        MPI_Barrier(WORLD);
    }
}

// Refused by two ranks of three, of which one means the third, too: that one never calls.
static void uncalled(void) {
    MPI_Group all, some;
    MPI_Comm made;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_group(WORLD, &all);
    MPI_Group_incl(all, 3 - rank, (int[]){0, 1, 2}, &some);
    if (rank < 2 && MPI_Comm_create_from_group(some, "tag", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made) == MPI_SUCCESS) MPI_Abort(WORLD, 7);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
}

static const struct {
    const char *name;
    void (*run)(void);
} HOW[] = {{"nothing", nothing}, {"comm", comm}, {"group", group}, {"type", type}, {"op", op}, {"window", window}, {"sent", sent},
           {"received", received}, {"persistent", persistent}, {"message", message},
           {"refused", refused}, {"uncalled", uncalled}};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    other = 1 - rank;
    for (size_t i = 0; i < sizeof HOW / sizeof *HOW; i++)
        if (argc > 1 && !strcmp(argv[1], HOW[i].name)) HOW[i].run();
    MPI_Finalize();
    return 0;
}
