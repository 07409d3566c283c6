// run: n=2,3,5,8 timeout=120
/* Collectives on intercommunicators (MPI 5.0, 6.2.3): blocking, non-blocking and persistent, every root of either group,
 * unequal groups and blocks, operations that do not commute; on an intercommunicator and on a duplicate of it. */
#include "check.h"

enum { BLOCK, LATER, KEPT, FORMS };
#define MOST 64

static int rank, mine, theirs, side, form; /* in the group, sizes of both, which group I am in */
static MPI_Comm inter;
static MPI_Request request;

static void finish(void) {
    if (form == KEPT) {
        /* Twice: the second start finds everything as the first one left it. */
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&request));
    } else if (form == LATER) {
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
}

/* One call in the form of the day. */
#define DO(Name, name, ...) do {                                                                \
        if (form == BLOCK) OK(MPI_##Name(__VA_ARGS__, inter));                                   \
        if (form == LATER) OK(MPI_I##name(__VA_ARGS__, inter, &request));                        \
        if (form == KEPT) OK(MPI_##Name##_init(__VA_ARGS__, inter, MPI_INFO_NULL, &request));    \
        finish();                                                                                \
    } while (0)

static int value(int group, int r, int i) { return group * 1000000 + r * 1000 + i; }

/* The root argument when rank `root` of `group` is the root. */
static int root_for(int group, int root) {
    if (side != group) return root;
    return rank == root ? MPI_ROOT : MPI_PROC_NULL;
}

static void barrier(void) {
    if (form == BLOCK) OK(MPI_Barrier(inter));
    if (form == LATER) OK(MPI_Ibarrier(inter, &request));
    if (form == KEPT) OK(MPI_Barrier_init(inter, MPI_INFO_NULL, &request));
    finish();
}

static void rooted(int group, int root, int n) {
    int here = root_for(group, root), receives = side != group, i, k;
    int *a = calloc(MOST * (n + 1), sizeof *a), *b = calloc(MOST * (n + 1), sizeof *b);
    int counts[MOST], at[MOST], sum = 0;
    /* Bcast */
    for (i = 0; i < n; i++) a[i] = here == MPI_ROOT ? value(group, root, i) : -1;
    a[n] = -9;
    DO(Bcast, bcast, a, n, MPI_INT, here);
    for (i = 0; i < n; i++) CHECK_EQ(a[i], receives || here == MPI_ROOT ? value(group, root, i) : -1);
    CHECK_EQ(a[n], -9);
    /* Gather: the other group has what the root wants. */
    for (i = 0; i < n; i++) a[i] = value(side, rank, i);
    memset(b, 255, MOST * n * sizeof *b);
    DO(Gather, gather, a, n, MPI_INT, b, n, MPI_INT, here);
    for (k = 0; here == MPI_ROOT && k < theirs; k++)
        for (i = 0; i < n; i++) CHECK_EQ(b[k * n + i], value(!side, k, i));
    /* Gatherv: rank k gives k % 3, in reverse order. */
    memset(b, 255, MOST * n * sizeof *b);
    for (k = 0; k < theirs; k++) counts[k] = n ? k % 3 % (n + 1) : 0, at[k] = (theirs - 1 - k) * n;
    DO(Gatherv, gatherv, a, n ? rank % 3 % (n + 1) : 0, MPI_INT, b, counts, at, MPI_INT, here);
    for (k = 0; here == MPI_ROOT && k < theirs; k++)
        for (i = 0; i < n; i++) CHECK_EQ(b[at[k] + i], i < counts[k] ? value(!side, k, i) : -1);
    /* Scatter */
    for (i = 0; i < MOST * n; i++) a[i] = value(side, rank, i);
    memset(b, 255, MOST * n * sizeof *b);
    DO(Scatter, scatter, a, n, MPI_INT, b, n, MPI_INT, here);
    for (i = 0; i < n; i++) CHECK_EQ(b[i], receives ? value(group, root, rank * n + i) : -1);
    /* Scatterv: as two ints each at the receivers. */
    memset(b, 255, MOST * n * sizeof *b);
    for (k = 0; k < theirs; k++) counts[k] = 2 * (k % 2), at[k] = (theirs - 1 - k) * (n > 2 ? n : 0);
    if (n > 2) {
        DO(Scatterv, scatterv, a, counts, at, MPI_INT, b, rank % 2, MPI_2INT, here);
        for (i = 0; receives && i < 2 * (rank % 2); i++)
            CHECK_EQ(b[i], value(group, root, (mine - 1 - rank) * n + i));
    }
    /* Reduce */
    for (i = 0; i < n; i++) a[i] = value(side, rank, i), b[i] = -1;
    DO(Reduce, reduce, a, b, n, MPI_INT, MPI_SUM, here);
    for (k = 0; k < theirs; k++) sum += value(!side, k, 0);
    for (i = 0; i < n; i++) CHECK_EQ(b[i], here == MPI_ROOT ? sum + theirs * i : -1);
    free(a), free(b);
}

static void unrooted(int n) {
    int i, k, sum = 0, counts[MOST], at[MOST], give[MOST], from[MOST];
    int *a = calloc(MOST * (n + 1), sizeof *a), *b = calloc(MOST * (n + 1), sizeof *b);
    MPI_Datatype types[MOST];
    int bytes[MOST], places[MOST];
    for (i = 0; i < MOST * n; i++) a[i] = value(side, rank, i);
    for (k = 0; k < theirs; k++) sum += value(!side, k, 0);
    memset(b, 255, MOST * n * sizeof *b);
    DO(Allgather, allgather, a, n, MPI_INT, b, n, MPI_INT);
    for (k = 0; k < theirs; k++)
        for (i = 0; i < n; i++) CHECK_EQ(b[k * n + i], value(!side, k, i));
    CHECK(n == 0 || b[theirs * n] == -1);
    memset(b, 255, MOST * n * sizeof *b);
    for (k = 0; k < theirs; k++) counts[k] = k % 2 ? n : 0, at[k] = (theirs - 1 - k) * n;
    DO(Allgatherv, allgatherv, a, rank % 2 ? n : 0, MPI_INT, b, counts, at, MPI_INT);
    for (k = 0; k < theirs; k++)
        for (i = 0; i < n; i++) CHECK_EQ(b[at[k] + i], i < counts[k] ? value(!side, k, i) : -1);
    memset(b, 255, MOST * n * sizeof *b);
    DO(Alltoall, alltoall, a, n, MPI_INT, b, n, MPI_INT);
    for (k = 0; k < theirs; k++)
        for (i = 0; i < n; i++) CHECK_EQ(b[k * n + i], value(!side, k, rank * n + i));
    /* Data flow one way only. */
    memset(b, 255, MOST * n * sizeof *b);
    DO(Alltoall, alltoall, a, side ? n : 0, MPI_INT, b, side ? 0 : n, MPI_INT);
    for (k = 0; k < theirs; k++)
        for (i = 0; i < n; i++) CHECK_EQ(b[k * n + i], side ? -1 : value(!side, k, rank * n + i));
    /* Between x of group 0 and y of group 1 go (x + 2y) % (n + 1) ints each way. */
    memset(b, 255, MOST * n * sizeof *b);
    for (k = 0; k < theirs; k++) {
        counts[k] = side ? (k + 2 * rank) % (n + 1) : (rank + 2 * k) % (n + 1);
        at[k] = (theirs - 1 - k) * n, from[k] = k * n, give[k] = counts[k];
        types[k] = MPI_INT, bytes[k] = 4 * at[k], places[k] = 4 * from[k];
    }
    DO(Alltoallv, alltoallv, a, give, from, MPI_INT, b, counts, at, MPI_INT);
    for (k = 0; k < theirs; k++)
        for (i = 0; i < n; i++) CHECK_EQ(b[at[k] + i], i < counts[k] ? value(!side, k, rank * n + i) : -1);
    memset(b, 255, MOST * n * sizeof *b);
    DO(Alltoallw, alltoallw, a, give, places, types, b, counts, bytes, types);
    for (k = 0; k < theirs; k++)
        for (i = 0; i < n; i++) CHECK_EQ(b[at[k] + i], i < counts[k] ? value(!side, k, rank * n + i) : -1);
    memset(b, 255, MOST * n * sizeof *b);
    DO(Allreduce, allreduce, a, b, n, MPI_INT, MPI_SUM);
    for (i = 0; i < n; i++) CHECK_EQ(b[i], sum + theirs * i);
    /* Both groups scatter mine * theirs * n elements among themselves. */
    int total = mine * theirs * n, share = theirs * n, *in = malloc((total + 1) * sizeof *in);
    for (i = 0; i < total; i++) in[i] = value(side, rank, i);
    memset(b, 255, MOST * n * sizeof *b);
    DO(Reduce_scatter_block, reduce_scatter_block, in, b, share, MPI_INT, MPI_SUM);
    for (i = 0; i < share; i++) CHECK_EQ(b[i], sum + theirs * (rank * share + i));
    /* The first gets everything that the last gives away. */
    for (k = 0; k < mine; k++) counts[k] = share;
    counts[0] += counts[mine - 1], counts[mine - 1] = mine > 1 ? 0 : counts[0];
    if (mine == 1) counts[0] = share;
    int *out = malloc((total + 1) * sizeof *out), begin = 0;
    for (k = 0; k < rank; k++) begin += counts[k];
    for (i = 0; i <= total; i++) out[i] = -1;
    DO(Reduce_scatter, reduce_scatter, in, out, counts, MPI_INT, MPI_SUM);
    for (i = 0; i < total; i++) CHECK_EQ(out[i], i < counts[rank] ? sum + theirs * (begin + i) : -1);
    free(in), free(out), free(a), free(b);
}

/* x -> a x + b: composing such maps does not commute. */
typedef struct { unsigned a, b; } Map;

static void compose(void *in, void *inout, int *n, MPI_Datatype *type) {
    Map *f = in, *g = inout;
    for (int i = 0; i < *n; i++) g[i] = (Map){f[i].a * g[i].a, f[i].a * g[i].b + f[i].b};
}

static void in_order(void) {
    MPI_Op op;
    MPI_Datatype map;
    OK(MPI_Op_create(compose, 0, &op));
    OK(MPI_Type_contiguous(2, MPI_UNSIGNED, &map));
    OK(MPI_Type_commit(&map));
    Map own[3], got[3], want = {1, 0};
    for (int i = 0; i < 3; i++) own[i] = (Map){2 + rank + side, 7 * rank + 3}, got[i] = (Map){0, 0};
    for (int k = 0; k < theirs; k++) {
        Map next = {2 + k + !side, 7 * k + 3};
        want = (Map){want.a * next.a, want.a * next.b + want.b};
    }
    DO(Allreduce, allreduce, own, got, 3, map, op);
    for (int i = 0; i < 3; i++) CHECK(got[i].a == want.a && got[i].b == want.b);
    memset(got, 0, sizeof got);
    DO(Reduce, reduce, own, got, 3, map, op, root_for(1, 0));
    if (side == 1 && rank == 0)
        for (int i = 0; i < 3; i++) CHECK(got[i].a == want.a && got[i].b == want.b);
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&map));
}

static void all(void) {
    static const int lengths[] = {1, 0, 5, 3000};
    MPI_Comm_remote_size(inter, &theirs);
    MPI_Comm_size(inter, &mine);
    MPI_Comm_rank(inter, &rank);
    /* The reference library's other forms bring wrong data to unequal groups. */
    for (form = 0; form < (STRICT ? FORMS : LATER); form++) {
        for (int l = 0; l < 4; l++) {
            barrier();
            for (int group = 0; group < 2; group++)
                for (int root = 0; root < (group == side ? mine : theirs); root++)
                    rooted(group, root, lengths[l]);
            unrooted(lengths[l]);
        }
        in_order();
    }
}

/* Many are under way at once, and end in another order. */
static void pending(void) {
    enum { N = 12 };
    MPI_Request r[N];
    int in[N], out[N][MOST], i, k;
    for (i = 0; i < N; i++) {
        in[i] = value(side, rank, i);
        if (i % 2) OK(MPI_Iallgather(&in[i], 1, MPI_INT, out[i], 1, MPI_INT, inter, &r[i]));
        else OK(MPI_Iallreduce(&in[i], out[i], 1, MPI_INT, MPI_MAX, inter, &r[i]));
    }
    for (i = N - 1; i >= 0; i--) OK(MPI_Wait(&r[i], MPI_STATUS_IGNORE));
    for (i = 0; i < N; i++)
        for (k = 0; k < (i % 2 ? theirs : 1); k++)
            CHECK_EQ(out[i][k], value(!side, i % 2 ? k : theirs - 1, i));
}

static void wrong(void) {
#if STRICT
    int a[MOST] = {0}, b[MOST] = {0};
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    CHECK_FAILS(MPI_Bcast(a, 1, MPI_INT, theirs, inter), MPI_ERR_ROOT);
    CHECK_FAILS(MPI_Bcast(a, 1, MPI_INT, -77, inter), MPI_ERR_ROOT);
    CHECK_FAILS(MPI_Allreduce(MPI_IN_PLACE, b, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_BUFFER);
    CHECK_FAILS(MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, b, 1, MPI_INT, inter), MPI_ERR_BUFFER);
    CHECK_FAILS(MPI_Scan(a, b, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM);
    CHECK_FAILS(MPI_Exscan(a, b, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM);
    CHECK_FAILS(MPI_Alltoall(a, -1, MPI_INT, b, 1, MPI_INT, inter), MPI_ERR_COUNT);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_ARE_FATAL);
#endif
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm half, first, again;
    /* One third against two thirds, the smaller group in front; then the other way round by turned ranks. */
    for (int turn = 0; turn < 2; turn++) {
        int few = (check_size + 2) / 3, place = turn ? check_size - 1 - check_rank : check_rank;
        side = place >= few;
        OK(MPI_Comm_split(MPI_COMM_WORLD, side, place, &half));
        int other = side ? 0 : few;
        OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, turn ? check_size - 1 - other : other, 3, &first));
        inter = first;
        all();
        wrong();
        OK(MPI_Comm_dup(first, &again));
        inter = again;
        if (turn == 0) all();
        pending();
        OK(MPI_Comm_free(&again));
        OK(MPI_Comm_free(&first));
        OK(MPI_Comm_free(&half));
    }
    return check_end();
}
