/* MPI_Comm_compare on every kind of communicator: intra and inter, with and without topology. */
// run: n=2,4,6 paths=one
#include "check.h"

static int compared(MPI_Comm a, MPI_Comm b) {
    int ab = -1, ba = -2;
    OK(MPI_Comm_compare(a, b, &ab));
    OK(MPI_Comm_compare(b, a, &ba));
    CHECK_EQ(ab, ba);
    return ab;
}

static MPI_Comm part(int color, int key) {
    MPI_Comm comm;
    OK(MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm));
    return comm;
}

/* An intercommunicator of even and odd processes, whose groups are in this order. */
static MPI_Comm between(int key_even, int key_odd, MPI_Comm *half) {
    int odd = check_rank % 2, leader = (odd ? key_even : key_odd) > 0;
    int size = (check_size + odd) / 2, last = (size - 1) * 2 + 1 - odd; /* of the other side */
    MPI_Comm inter;
    *half = part(odd, (odd ? key_odd : key_even) * check_rank);
    OK(MPI_Intercomm_create(*half, 0, MPI_COMM_WORLD, leader ? 1 - odd : last, 3, &inter));
    return inter;
}

int main(int argc, char **argv) {
    int dims[1], periods[1] = {1};
    MPI_Comm dup, back, half, ring, inter, other, turned, halves[3];
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    dims[0] = check_size;
    CHECK_EQ(compared(MPI_COMM_WORLD, MPI_COMM_WORLD), MPI_IDENT);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    CHECK_EQ(compared(MPI_COMM_WORLD, dup), MPI_CONGRUENT);
    back = part(0, -check_rank);
    CHECK_EQ(compared(MPI_COMM_WORLD, back), MPI_SIMILAR);
    half = part(check_rank % 2, 0);
    CHECK_EQ(compared(MPI_COMM_WORLD, half), MPI_UNEQUAL);
    CHECK_EQ(compared(MPI_COMM_SELF, half), check_size == 2 ? MPI_CONGRUENT : MPI_UNEQUAL);
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring));
    CHECK_EQ(compared(MPI_COMM_WORLD, ring), MPI_CONGRUENT);
    CHECK_EQ(compared(back, ring), MPI_SIMILAR);
    inter = between(1, 1, &halves[0]);
    turned = between(1, -1, &halves[1]);
    OK(MPI_Comm_dup(inter, &other));
    CHECK_EQ(compared(inter, inter), MPI_IDENT);
    CHECK_EQ(compared(inter, other), MPI_CONGRUENT);
    CHECK_EQ(compared(inter, turned), check_size < 4 ? MPI_CONGRUENT : MPI_SIMILAR);
    CHECK_EQ(compared(inter, MPI_COMM_WORLD), MPI_UNEQUAL);
    CHECK_EQ(compared(inter, half), MPI_UNEQUAL);
    OK(MPI_Comm_free(&other));
    OK(MPI_Comm_free(&turned));
    OK(MPI_Comm_free(&halves[1]));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&halves[0]));
    OK(MPI_Comm_free(&ring));
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_free(&back));
    OK(MPI_Comm_free(&dup));
    return check_end();
}
