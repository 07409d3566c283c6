/* Long chains of datatypes: each made from the one before, freed in the order of the chain, and used. */
// run: n=1 timeout=120 abi=one
#include "check.h"

/* Frees the parts first, so that the last owner takes the whole chain away. */
static void duplicates(int links) {
    MPI_Datatype t = MPI_INT;
    for (int i = 0; i < links; i++) {
        MPI_Datatype next;
        OK(MPI_Type_contiguous(1, t, &next));
        if (i > 0) OK(MPI_Type_free(&t));
        t = next;
    }
    OK(MPI_Type_free(&t));
}

/* { what was before, int }, again and again. */
static void structures(int links) {
    MPI_Datatype t = MPI_DOUBLE;
    for (int i = 0; i < links; i++) {
        int lens[2] = {1, 1};
        MPI_Aint at[2] = {0, 16 + 12 * (MPI_Aint)i};
        MPI_Datatype of[2] = {t, MPI_INT}, next;
        OK(MPI_Type_create_struct(2, lens, at, of, &next));
        if (i > 0) OK(MPI_Type_free(&t));
        t = next;
    }
    OK(MPI_Type_commit(&t));
    int size, position = 0;
    OK(MPI_Type_size(t, &size));
    CHECK_EQ(size, 8 + 4 * links);
    char *from = malloc(16 + 12 * (size_t)links), *packed = malloc(size);
    for (int i = 0; i < links; i++) memcpy(from + 16 + 12 * (size_t)i, &i, sizeof i);
    memset(from, 0, 8);
    OK(MPI_Pack(from, 1, t, packed, size, &position, MPI_COMM_SELF));
    CHECK_EQ(position, size);
    for (int i = 0, got; i < links; i++) {
        memcpy(&got, packed + 8 + 4 * (size_t)i, sizeof got);
        if (got != i) {
            FAILED("number %d is %d", i, got);
            break;
        }
    }
    free(from);
    free(packed);
    OK(MPI_Type_free(&t));
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    duplicates(500000);
    structures(10000);
    return check_end();
}
