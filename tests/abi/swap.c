/* A program of the standard ABI: built with one library's mpicc, it must run on another's library. It touches every kind
 * of thing the ABI fixes: handles, constants, statuses, callbacks, attributes, error classes, sentinels. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, deleted;

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "swap.c:%d: rank %d: %s\n", __LINE__, rank, #what);                                        \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

static void longest(void *in, void *inout, int *len, MPI_Datatype *type) {
    int *a = in, *b = inout;
    (void)type;
    for (int i = 0; i < *len; i++)
        if (a[i] > b[i]) b[i] = a[i];
}

static int on_delete(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm;
    (void)key;
    CHECK(*(int *)value == 17 && extra == &size);
    deleted++;
    return MPI_SUCCESS;
}

static void messages(void) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size, in[4] = {0}, out[4] = {rank, 1, 2, 3}, n;
    MPI_Status status, both[2];
    MPI_Request r[2];
    MPI_Datatype pair;
    CHECK(MPI_Type_vector(2, 1, 2, MPI_INT, &pair) == MPI_SUCCESS);
    MPI_Type_commit(&pair);
    MPI_Sendrecv(out, 4, MPI_INT, right, 5, in, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &n);
    CHECK(status.MPI_SOURCE == left && status.MPI_TAG == 5 && n == 4 && in[0] == left);
    MPI_Irecv(in, 1, pair, left, 6, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(out, 2, MPI_INT, right, 6, MPI_COMM_WORLD, &r[1]);
    MPI_Waitall(2, r, both);
    CHECK(r[0] == MPI_REQUEST_NULL && both[0].MPI_SOURCE == left && in[2] == 1);
    MPI_Recv(in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    MPI_Type_free(&pair);
    CHECK(pair == MPI_DATATYPE_NULL);
}

static void collectives(void) {
    int x = rank, sum = -1, top = -1;
    double mean = rank;
    MPI_Op op;
    MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
    MPI_Allreduce(MPI_IN_PLACE, &mean, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK(mean == sum);
    MPI_Op_create(longest, 1, &op);
    MPI_Reduce(&x, &top, 1, MPI_INT, op, 0, MPI_COMM_WORLD);
    CHECK(rank != 0 || top == size - 1);
    MPI_Op_free(&op);
    CHECK(op == MPI_OP_NULL);
    MPI_Bcast(&top, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(top == size - 1);
}

static void objects(void) {
    MPI_Comm half;
    MPI_Info info;
    int key, flag, value = 17, *found, class, *ub;
    char text[MPI_MAX_INFO_VAL];
    int len = sizeof text;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2 ? 1 : MPI_UNDEFINED, 0, &half);
    CHECK((half == MPI_COMM_NULL) == (rank % 2 == 0));
    if (half != MPI_COMM_NULL) MPI_Comm_free(&half);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, &size);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value);
    MPI_Comm_get_attr(MPI_COMM_WORLD, key, &found, &flag);
    CHECK(flag && found == &value);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    CHECK(deleted == 1);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &ub, &flag);
    CHECK(flag && *ub >= 32767);
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "value");
    MPI_Info_get_string(info, "key", &len, text, &flag);
    CHECK(flag && strcmp(text, "value") == 0);
    MPI_Info_free(&info);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Send(text, 1, MPI_INT, size, 0, MPI_COMM_WORLD), &class);
    CHECK(class == MPI_ERR_RANK);
    MPI_Error_class(MPI_Send(text, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD), &class);
    CHECK(class == MPI_ERR_TYPE);
    CHECK(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_SELF)) == MPI_COMM_SELF);
}

int main(int argc, char **argv) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int len, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    messages();
    collectives();
    objects();
    MPI_Get_library_version(version, &len);
    if (rank == 0) printf("%d ranks on %.9s\n", size, version);
    return MPI_Finalize();
}
