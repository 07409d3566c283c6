// What a program of another ABI sees at its edges: handles that are none, attributes that are constants, functions that are
// called back, functions beyond MPI. One argument says which.
#include <mpi.h>
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

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const char *what = argc > 1 ? argv[1] : "";
    int flag = 0, wrong = 0;
    if (!strcmp(what, "callbacks")) wrong = callbacks();
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
