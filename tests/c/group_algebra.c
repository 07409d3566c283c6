/* Groups: algebra, inclusion, ranges, translation, comparison, and what is wrong with bad arguments. */
// run: n=1,4 paths=one
#include "check.h"

static int size_of(MPI_Group g) {
    int n = -1;
    OK(MPI_Group_size(g, &n));
    return n;
}

/* World ranks of the members, against a list. */
static void members(MPI_Group world, MPI_Group g, int n, const int *want) {
    CHECK_EQ(size_of(g), n);
    for (int i = 0; i < n && i < size_of(g); i++) {
        int there = -9;
        OK(MPI_Group_translate_ranks(g, 1, &i, world, &there));
        CHECK_EQ(there, want[i]);
    }
}

static void algebra(MPI_Group world, int n) {
    int evens[64], odds[64], ne = 0, no = 0, both[64];
    for (int i = 0; i < n; i++) {
        if (i % 2) odds[no++] = i; else evens[ne++] = i;
    }
    MPI_Group e, o, u, x, d, same;
    OK(MPI_Group_incl(world, ne, evens, &e));
    OK(MPI_Group_excl(world, ne, evens, &o));
    members(world, e, ne, evens);
    members(world, o, no, odds);
    OK(MPI_Group_union(o, e, &u));
    memcpy(both, odds, sizeof(int) * no);
    memcpy(both + no, evens, sizeof(int) * ne);
    members(world, u, n, both);
    OK(MPI_Group_intersection(world, o, &x));
    members(world, x, no, odds);
    OK(MPI_Group_intersection(e, o, &d));
    CHECK(d == MPI_GROUP_EMPTY);
    OK(MPI_Group_free(&d));
    CHECK(d == MPI_GROUP_NULL);
    OK(MPI_Group_difference(world, o, &d));
    members(world, d, ne, evens);
    int r;
    OK(MPI_Group_compare(d, e, &r));
    CHECK_EQ(r, MPI_IDENT);
    OK(MPI_Group_compare(u, world, &r));
    CHECK_EQ(r, n < 2 ? MPI_IDENT : MPI_SIMILAR);
    OK(MPI_Group_compare(MPI_GROUP_EMPTY, world, &r));
    CHECK_EQ(r, MPI_UNEQUAL);
    int rank;
    OK(MPI_Group_rank(e, &rank));
    CHECK_EQ(rank, check_rank % 2 ? MPI_UNDEFINED : check_rank / 2);
    OK(MPI_Group_incl(world, 0, NULL, &same));
    CHECK(same == MPI_GROUP_EMPTY);
    OK(MPI_Group_free(&e));
    OK(MPI_Group_free(&u));
    OK(MPI_Group_free(&x));
    OK(MPI_Group_free(&d));
    if (o != MPI_GROUP_EMPTY) OK(MPI_Group_free(&o));
}

static void ranges(MPI_Group world, int n) {
    int back[1][3] = {{n - 1, 0, -1}}, want[64];
    MPI_Group g;
    for (int i = 0; i < n; i++) want[i] = n - 1 - i;
    OK(MPI_Group_range_incl(world, 1, back, &g));
    members(world, g, n, want);
    OK(MPI_Group_free(&g));
    OK(MPI_Group_range_excl(world, 1, back, &g));
    CHECK(g == MPI_GROUP_EMPTY);
    int two[2][3] = {{0, n - 1, 2}, {1, n - 1, 2}};
    if (n > 1) {
        OK(MPI_Group_range_incl(world, 2, two, &g));
        CHECK_EQ(size_of(g), n);
        OK(MPI_Group_free(&g));
    }
}

static void translation(MPI_Group world, int n) {
    int last = n - 1, ranks[2] = {MPI_PROC_NULL, 0}, there[2];
    MPI_Group g;
    OK(MPI_Group_incl(world, 1, &last, &g));
    OK(MPI_Group_translate_ranks(world, 2, ranks, g, there));
    CHECK_EQ(there[0], MPI_PROC_NULL);
    CHECK_EQ(there[1], n == 1 ? 0 : MPI_UNDEFINED);
    OK(MPI_Group_translate_ranks(world, 0, NULL, g, NULL));
    OK(MPI_Group_free(&g));
}

static void faults(MPI_Group world, int n) {
    int bad[2] = {0, n}, twice[2] = {0, 0}, r;
    int standing[1][3] = {{0, 0, 0}}, beyond[1][3] = {{0, n, 1}};
    MPI_Group g = MPI_GROUP_NULL;
    CHECK_CLASS(MPI_Group_incl(world, 2, bad, &g), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Group_excl(world, 2, bad, &g), MPI_ERR_RANK);
#if STRICT
    CHECK(MPI_Group_incl(world, 2, twice, &g) != MPI_SUCCESS);
#endif
    CHECK(MPI_Group_range_incl(world, 1, standing, &g) != MPI_SUCCESS);
    CHECK(MPI_Group_range_incl(world, 1, beyond, &g) != MPI_SUCCESS);
    CHECK_CLASS(MPI_Group_incl(world, -1, bad, &g), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_size(MPI_GROUP_NULL, &r), MPI_ERR_GROUP);
    CHECK_CLASS(MPI_Group_union(world, MPI_GROUP_NULL, &g), MPI_ERR_GROUP);
#if STRICT
    CHECK_CLASS(MPI_Group_free(&g), MPI_ERR_GROUP);
#endif
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Group world;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    algebra(world, check_size);
    ranges(world, check_size);
    translation(world, check_size);
    faults(world, check_size);
    OK(MPI_Group_free(&world));
    return check_end();
}
