// What a program of another ABI sees at its edges: handles that are none, attributes that are constants, functions that are
// called back, functions, datatypes and an operation beyond MPI. One argument says which.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int MPIX_Comm_agree(MPI_Comm comm, int *flag);
int MPIX_Query_cuda_support(void);

static int heard_class;

static void handler(MPI_Comm *comm, int *code, ...) {
    if (*comm == MPI_COMM_WORLD) MPI_Error_class(*code, &heard_class);
}

static int copies(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
    *(void **)out = (char *)in + *(int *)extra;
    *flag = comm == MPI_COMM_WORLD;
    return MPI_SUCCESS;
}

static void sums(void *in, void *inout, int *n, MPI_Datatype *datatype) {
    for (int i = 0; i < *n; i++) ((int *)inout)[i] += *datatype == MPI_INT ? ((int *)in)[i] : 1000;
}

static int callbacks(void) {
    int rank, size, keyval, extra = 5, flag, sum;
    void *value;
    MPI_Errhandler errors;
    MPI_Comm dup;
    MPI_Op op;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_create_errhandler(handler, &errors);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, errors);
    MPI_Send(&rank, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    if (heard_class != MPI_ERR_RANK) return printf("the handler heard of class %d\n", heard_class);
    MPI_Comm_create_keyval(copies, MPI_COMM_NULL_DELETE_FN, &keyval, &extra);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &extra);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_get_attr(dup, keyval, &value, &flag);
    if (!flag || value != (char *)&extra + 5) return printf("the attribute is %p\n", value);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag);
    if (flag && *(int *)value != MPI_ANY_SOURCE && *(int *)value != MPI_PROC_NULL && *(int *)value < 0)
        return printf("MPI_IO is %d\n", *(int *)value);
    MPI_Op_create(sums, 1, &op);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, op, dup);
    if (sum != size * (size - 1) / 2) return printf("the sum is %d\n", sum);
    return 0;
}

// A datatype of 2 bytes, and 1, 2 and 3 in it.
static int two_bytes(MPI_Datatype type, const char *name, unsigned short one, unsigned short two, unsigned short three) {
    int rank, size, number[3], length;
    unsigned short mine, all, got = 0;
    char text[MPI_MAX_OBJECT_NAME];
    MPI_Aint none;
    MPI_Datatype pair, part;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mine = rank ? two : one;
    MPI_Type_size(type, &size);
    if (size != 2) return printf("%s has %d bytes\n", name, size);
    MPI_Type_get_name(type, text, &length);
    if (strcmp(text, name)) return printf("the name of %s is %s\n", name, text);
    MPI_Allreduce(&mine, &all, 1, type, MPI_SUM, MPI_COMM_WORLD);
    if (all != three) return printf("the sum of %s is %#x\n", name, all);
    MPI_Allreduce(&mine, &all, 1, type, MPI_MAX, MPI_COMM_WORLD);
    if (all != two) return printf("the largest %s is %#x\n", name, all);
    MPI_Sendrecv(&mine, 1, type, 1 - rank, 0, &got, 1, type, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (got != (rank ? one : two)) return printf("%s came as %#x\n", name, got);
    MPI_Type_contiguous(2, type, &pair);
    MPI_Type_get_contents(pair, 1, 0, 1, number, &none, &part);
    if (part != type) return printf("a pair of %s is made of something else\n", name);
    MPI_Type_free(&pair);
    return 0;
}

static int extensions(void) {
    if (sizeof(MPI_Datatype) != sizeof(int)) // Open MPI's MPIX_C_FLOAT16 is this object
        return two_bytes(MPI_REAL2, "MPI_REAL2", 0x3c00, 0x4000, 0x4200);
    return two_bytes((MPI_Datatype)(intptr_t)0x4c000246, "MPIX_C_FLOAT16", 0x3c00, 0x4000, 0x4200)
        || two_bytes((MPI_Datatype)(intptr_t)0x4c00024c, "MPIX_BFLOAT16", 0x3f80, 0x4000, 0x4040);
}

// The operation MPIX_EQUAL of MPICH, which is not in Intel's header: two ranks.
static int equal(void) {
    MPI_Op op = (MPI_Op)(intptr_t)0x5800000f;
    MPI_Datatype apart;
    MPI_Request request;
    int rank, mine[4] = {1, 2, 3, 4}, in_place[2] = {5, 6}, said[2] = {7, 7}, class;
    double zero, nan = 0;
    if (sizeof(MPI_Op) != sizeof(int)) return 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(mine, said, 4, MPI_INT, op, MPI_COMM_WORLD);
    if (said[0] != 1 || said[1] != 7) return printf("of equal ones MPIX_EQUAL says %d %d\n", said[0], said[1]);
    mine[2] += rank;
    MPI_Allreduce(mine, said, 4, MPI_INT, op, MPI_COMM_WORLD);
    if (said[0] != 0 || said[1] != 7) return printf("of others MPIX_EQUAL says %d %d\n", said[0], said[1]);
    MPI_Type_vector(2, 2, 3, MPI_INT, &apart);
    MPI_Type_commit(&apart);
    int gaps[5] = {1, 2, rank, 3, 4};
    MPI_Allreduce(gaps, said, 1, apart, op, MPI_COMM_WORLD);
    if (!said[0]) return printf("MPIX_EQUAL compares gaps\n");
    MPI_Type_free(&apart);
    memset(&nan, 0xff, sizeof nan);
    MPI_Allreduce(&nan, said, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
    if (!said[0]) return printf("a NaN is not MPIX_EQUAL to itself\n");
    zero = rank ? -0.0 : 0.0;
    MPI_Allreduce(&zero, said, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
    if (said[0]) return printf("zeros of both signs are MPIX_EQUAL\n");
    MPI_Allreduce(&rank, said, 0, MPI_INT, op, MPI_COMM_WORLD);
    if (!said[0]) return printf("nothing is not MPIX_EQUAL to nothing\n");
    said[0] = 7;
    MPI_Reduce(mine, said, 2, MPI_INT, op, 1, MPI_COMM_WORLD);
    if (said[0] != (rank ? 1 : 7)) return printf("after MPI_Reduce rank %d has %d\n", rank, said[0]);
    MPI_Allreduce(MPI_IN_PLACE, in_place, 2, MPI_INT, op, MPI_COMM_WORLD);
    if (in_place[0] != 1 || in_place[1] != 6) return printf("in place: %d %d\n", in_place[0], in_place[1]);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Iallreduce(mine, said, 2, MPI_INT, op, MPI_COMM_WORLD, &request), &class);
    if (class != MPI_ERR_OP) return printf("MPI_Iallreduce with MPIX_EQUAL: class %d\n", class);
    return 0;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const char *what = argc > 1 ? argv[1] : "";
    int flag = 0, wrong = 0;
    if (!strcmp(what, "callbacks")) wrong = callbacks();
    if (!strcmp(what, "extensions")) wrong = extensions();
    if (!strcmp(what, "equal")) wrong = equal();
    if (!strcmp(what, "standard")) MPI_Comm_rank((MPI_Comm)0x101, &flag); // MPI_COMM_WORLD of the standard ABI
    if (!strcmp(what, "number")) MPI_Comm_rank(MPI_Comm_fromint(0x101), &flag);
    if (!strcmp(what, "kind")) MPI_Comm_rank((MPI_Comm)MPI_INT, &flag);
    if (!strcmp(what, "beyond")) {
        wrong = MPIX_Query_cuda_support();
        if (MPIX_Comm_agree(MPI_COMM_WORLD, &flag) == MPI_ERR_UNSUPPORTED_OPERATION) puts("unsupported");
    }
    MPI_Finalize();
    return wrong != 0;
}
