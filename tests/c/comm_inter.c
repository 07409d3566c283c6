/* Intercommunicators: made, used, duplicated, split, created from, compared and merged. */
// run: n=2,4,5
#include "check.h"

static int mine, theirs; /* sizes of my group and of the other */

/* Rank r of each side talks to all ranks of the other. */
static void works(MPI_Comm c) {
    int n, rank, inter;
    OK(MPI_Comm_test_inter(c, &inter));
    CHECK(inter);
    OK(MPI_Comm_rank(c, &rank));
    OK(MPI_Comm_remote_size(c, &n));
    MPI_Request r[128];
    int got[64];
    for (int i = 0; i < n; i++) {
        OK(MPI_Irecv(&got[i], 1, MPI_INT, i, 4, c, &r[2 * i]));
        OK(MPI_Isend(&rank, 1, MPI_INT, i, 4, c, &r[2 * i + 1]));
    }
    OK(MPI_Waitall(2 * n, r, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; i++) CHECK_EQ(got[i], i);
}

static void sizes(MPI_Comm c, int local, int remote) {
    int n;
    OK(MPI_Comm_size(c, &n));
    CHECK_EQ(n, local);
    OK(MPI_Comm_remote_size(c, &n));
    CHECK_EQ(n, remote);
    MPI_Group g;
    OK(MPI_Comm_remote_group(c, &g));
    OK(MPI_Group_size(g, &n));
    CHECK_EQ(n, remote);
    OK(MPI_Group_free(&g));
}

static void merge(MPI_Comm c, int high) {
    MPI_Comm m;
    int rank, size, inter;
    OK(MPI_Intercomm_merge(c, high, &m));
    OK(MPI_Comm_test_inter(m, &inter));
    CHECK(!inter);
    OK(MPI_Comm_size(m, &size));
    CHECK_EQ(size, check_size);
    OK(MPI_Comm_rank(m, &rank));
    /* My group comes first when I did not say high and the others did. */
    CHECK_EQ(rank, (high ? theirs : 0) + check_rank / 2);
    int right = (rank + 1) % size, left = (rank + size - 1) % size, got = -1;
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, right, 5, &got, 1, MPI_INT, left, 5, m, MPI_STATUS_IGNORE));
    CHECK_EQ(got, left);
    OK(MPI_Comm_free(&m));
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (check_size < 2) return check_end();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int odd = check_rank % 2, evens = (check_size + 1) / 2, odds = check_size / 2, r, n;
    mine = odd ? odds : evens;
    theirs = odd ? evens : odds;
    MPI_Comm half, inter, c;
    OK(MPI_Comm_split(MPI_COMM_WORLD, odd, 0, &half));
    /* The last of each half leads. World ranks: last even one, last odd one. */
    int lead_even = 2 * (evens - 1), lead_odd = 2 * (odds - 1) + 1;
    OK(MPI_Intercomm_create(half, mine - 1, MPI_COMM_WORLD, odd ? lead_even : lead_odd, 11, &inter));
    sizes(inter, mine, theirs);
    works(inter);
    MPI_Comm_compare(inter, half, &r);
    CHECK_EQ(r, MPI_UNEQUAL);

    OK(MPI_Comm_dup(inter, &c));
    sizes(c, mine, theirs);
    works(c);
    OK(MPI_Comm_compare(inter, c, &r));
    CHECK_EQ(r, MPI_CONGRUENT);
    OK(MPI_Comm_free(&c));

    MPI_Request req;
    OK(MPI_Comm_idup(inter, &c, &req));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    works(c);
    OK(MPI_Comm_free(&c));

    /* Only the first of each side. */
    OK(MPI_Comm_split(inter, check_rank / 2 == 0 ? 3 : MPI_UNDEFINED, 0, &c));
    CHECK((c != MPI_COMM_NULL) == (check_rank < 2));
    if (c != MPI_COMM_NULL) {
        sizes(c, 1, 1);
        works(c);
        OK(MPI_Comm_free(&c));
    }
    /* A color of one side only makes nothing. */
    OK(MPI_Comm_split(inter, odd, 0, &c));
    CHECK(c == MPI_COMM_NULL);

    MPI_Group local, first;
    int zero = 0;
    OK(MPI_Comm_group(inter, &local));
    OK(MPI_Group_size(local, &n));
    CHECK_EQ(n, mine);
    OK(MPI_Group_incl(local, 1, &zero, &first));
    OK(MPI_Comm_create(inter, odd ? local : first, &c));
    CHECK((c != MPI_COMM_NULL) == (odd || check_rank == 0));
    if (c != MPI_COMM_NULL) {
        sizes(c, odd ? odds : 1, odd ? 1 : odds);
        works(c);
        OK(MPI_Comm_free(&c));
    }
    OK(MPI_Group_free(&local));
    OK(MPI_Group_free(&first));

    merge(inter, odd);
    merge(inter, !odd);
    OK(MPI_Intercomm_merge(inter, 0, &c));
    OK(MPI_Comm_size(c, &n));
    CHECK_EQ(n, check_size);
    OK(MPI_Comm_free(&c));

    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
#if STRICT
    CHECK_CLASS(MPI_Intercomm_merge(half, 0, &c), MPI_ERR_COMM);
#endif
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
    return check_end();
}
