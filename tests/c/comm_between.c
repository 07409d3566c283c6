/* Intercommunicators from groups, their groups, what a duplicate takes over, the order of a merged group, and what is refused
 * (MPI 5.0, 7.3 to 7.7). The other things of intercommunicators are in comm_inter.c, their collectives in coll_inter.c. */
// run: n=2,3,5
#include "check.h"

static MPI_Group low, high; /* the first third of the ranks, and the rest */
static int few, mine, theirs, side, rank; /* `rank` in my group */

static MPI_Comm from_groups(const char *tag, int lead_low, int lead_high) {
    MPI_Comm c = MPI_COMM_NULL;
    OK(MPI_Intercomm_create_from_groups(side ? high : low, side ? lead_high : lead_low, side ? low : high,
                                        side ? lead_low : lead_high, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    return c;
}

/* Everybody hears from everybody on the other side. */
static void works(MPI_Comm c) {
    int got[64], me, n;
    OK(MPI_Comm_rank(c, &me));
    OK(MPI_Comm_remote_size(c, &n));
    OK(MPI_Allgather(&me, 1, MPI_INT, got, 1, MPI_INT, c));
    for (int i = 0; i < n; i++) CHECK_EQ(got[i], i);
}

/* 7.6.1: the groups are those that were given, in their order. */
static void groups(MPI_Comm c) {
    MPI_Group local, remote;
    int r;
    OK(MPI_Comm_group(c, &local));
    OK(MPI_Group_compare(local, side ? high : low, &r));
    CHECK_EQ(r, MPI_IDENT);
    OK(MPI_Comm_remote_group(c, &remote));
    OK(MPI_Group_compare(remote, side ? low : high, &r));
    CHECK_EQ(r, MPI_IDENT);
    OK(MPI_Group_free(&local));
    OK(MPI_Group_free(&remote));
}

/* 7.6.2: the remote group and leader mean something at the local leader only. */
static void leaders(void) {
    MPI_Comm c = from_groups("first", 0, 0);
    groups(c);
    works(c);
    OK(MPI_Comm_free(&c));
    c = from_groups("last", few - 1, check_size - few - 1);
    groups(c);
    works(c);
    OK(MPI_Comm_free(&c));
#if STRICT
    int leads = rank == 0;
    OK(MPI_Intercomm_create_from_groups(side ? high : low, 0, leads ? side ? low : high : MPI_GROUP_NULL, leads ? 0 : -5,
                                        "others say nothing", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    groups(c);
    works(c);
    OK(MPI_Comm_free(&c));
    /* What is wrong at the leaders fails everywhere. */
    CHECK(MPI_Intercomm_create_from_groups(side ? high : low, 0, side ? low : high, leads ? theirs : 0, "no leader",
                                           MPI_INFO_NULL, MPI_ERRORS_RETURN, &c) != MPI_SUCCESS);
    CHECK(c == MPI_COMM_NULL);
    CHECK(MPI_Intercomm_create_from_groups(side ? high : low, 0, side ? high : low, 0, "not disjoint",
                                           MPI_INFO_NULL, MPI_ERRORS_RETURN, &c) != MPI_SUCCESS);
    CHECK(c == MPI_COMM_NULL);
#endif
}

/* 7.6.2: with an empty group, on either side or both, the call is local and makes nothing. */
static void empty(void) {
    MPI_Comm c = MPI_COMM_SELF;
    OK(MPI_Intercomm_create_from_groups(MPI_GROUP_EMPTY, 0, MPI_GROUP_EMPTY, 0, "none", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    CHECK(c == MPI_COMM_NULL);
    c = MPI_COMM_SELF;
    if (check_rank == 0) {
        OK(MPI_Intercomm_create_from_groups(low, 0, MPI_GROUP_EMPTY, 0, "one", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
        CHECK(c == MPI_COMM_NULL);
        c = MPI_COMM_SELF;
        OK(MPI_Intercomm_create_from_groups(MPI_GROUP_EMPTY, 0, high, 0, "one", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
        CHECK(c == MPI_COMM_NULL);
    }
}

/* 7.6.3: with equal `high` one group comes first as a whole, the same one everywhere; within it the order stays. */
static void merged(MPI_Comm inter, int say) {
    MPI_Comm m;
    MPI_Group g;
    int me, first, expected[64], got[64], own[64];
    OK(MPI_Intercomm_merge(inter, say, &m));
    OK(MPI_Comm_rank(m, &me));
    OK(MPI_Comm_group(m, &g));
    for (int i = 0; i < check_size; i++) own[i] = i;
    MPI_Group world;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_translate_ranks(g, check_size, own, world, got));
    first = got[0] < few ? 0 : few; /* the low group's ranks lie before `few` */
    for (int i = 0; i < check_size; i++) expected[i] = (first + i) % check_size;
    for (int i = 0; i < check_size; i++) CHECK_EQ(got[i], expected[i]);
    CHECK_EQ(got[me], check_rank);
    int all;
    OK(MPI_Allreduce(&first, &all, 1, MPI_INT, MPI_SUM, m));
    CHECK_EQ(all, first * check_size);
    OK(MPI_Group_free(&g));
    OK(MPI_Group_free(&world));
    OK(MPI_Comm_free(&m));
}

static int copies, deletes;

static int copy(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag) {
    copies++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int drop(MPI_Comm c, int key, void *value, void *extra) {
    deletes++;
    return MPI_SUCCESS;
}

/* 7.4.2, 7.7.2: a duplicate has the attributes that copy functions let through; what is split or created has none. */
static void attributes(MPI_Comm inter) {
    MPI_Comm d[3], s;
    MPI_Request r[2];
    int key, flag, equal;
    void *value;
    OK(MPI_Comm_create_keyval(copy, drop, &key, NULL));
    OK(MPI_Comm_set_attr(inter, key, (void *)40));
    OK(MPI_Comm_dup(inter, &d[0]));
    OK(MPI_Comm_idup(inter, &d[1], &r[0]));
    OK(MPI_Comm_idup_with_info(inter, MPI_INFO_NULL, &d[2], &r[1]));
    OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    CHECK_EQ(copies, 3);
    for (int i = 0; i < 3; i++) {
        OK(MPI_Comm_get_attr(d[i], key, &value, &flag));
        CHECK(flag && value == (void *)41);
        OK(MPI_Comm_compare(inter, d[i], &equal));
        CHECK_EQ(equal, MPI_CONGRUENT);
        groups(d[i]);
        works(d[i]);
        OK(MPI_Comm_free(&d[i]));
    }
    CHECK_EQ(deletes, 3);
    OK(MPI_Comm_split(inter, 0, -rank, &s));
    OK(MPI_Comm_get_attr(s, key, &value, &flag));
    CHECK(!flag);
    /* By falling rank: the sides are alike as sets only. */
    OK(MPI_Comm_compare(inter, s, &equal));
    CHECK_EQ(equal, check_size == 2 ? MPI_CONGRUENT : MPI_SIMILAR);
    int me, sum;
    OK(MPI_Comm_rank(s, &me));
    CHECK_EQ(me, mine - 1 - rank);
    OK(MPI_Comm_free(&s));
    OK(MPI_Comm_create(inter, side ? high : low, &s));
    OK(MPI_Comm_get_attr(s, key, &value, &flag));
    CHECK(!flag);
    groups(s);
    OK(MPI_Comm_free(&s));
    OK(MPI_Comm_compare(inter, MPI_COMM_WORLD, &equal));
    CHECK_EQ(equal, MPI_UNEQUAL);
    OK(MPI_Comm_delete_attr(inter, key));
    CHECK_EQ(deletes, 4);
    OK(MPI_Comm_free_keyval(&key));
}

/* 7.6: ranks are those of the remote group, and MPI_ROOT is a root alone. */
static void wrong(MPI_Comm inter) {
#if STRICT
    MPI_Comm c = MPI_COMM_NULL;
    MPI_Group g;
    MPI_Request r;
    int x = 0, dims = 1;
    CHECK_CLASS(MPI_Send(&x, 1, MPI_INT, theirs, 0, inter), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Irecv(&x, 1, MPI_INT, theirs, 0, inter, &r), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Send(&x, 1, MPI_INT, -4, 0, inter), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Bcast(&x, 1, MPI_INT, theirs, inter), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Cart_create(inter, 1, &dims, &x, 0, &c), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_remote_group(MPI_COMM_WORLD, &g), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &c), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Intercomm_create(inter, 0, MPI_COMM_WORLD, 0, 1, &c), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_create_group(inter, low, 1, &c), MPI_ERR_COMM);
#endif
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Group world;
    few = (check_size + 2) / 3;
    side = check_rank >= few;
    mine = side ? check_size - few : few;
    theirs = check_size - mine;
    rank = side ? check_rank - few : check_rank;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    int first[1][3] = {{0, few - 1, 1}};
    OK(MPI_Group_range_incl(world, 1, first, &low));
    OK(MPI_Group_difference(world, low, &high));
    leaders();
    empty();
    MPI_Comm inter = from_groups("inter", 0, 0);
    merged(inter, 0);
    merged(inter, 1);
    attributes(inter);
    wrong(inter);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&low));
    OK(MPI_Group_free(&high));
    return check_end();
}
