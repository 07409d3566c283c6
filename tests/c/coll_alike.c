// run: n=2,3,5 timeout=60 abi=one
/* Calls that are alike but for one thing: another operation, datatype, count, root, list of counts or place for the result, a communicator, a
 * hint, a form that does not block, or a mistake. Whatever the library keeps of one call for the next, it may not be taken for another. */
#include "check.h"

#define ROUNDS 60
#define MOST 20

static int give[64 * MOST], got[64 * MOST];

static int value(int round, int r, int i) { return (round * 5 + r * 3 + i) % 7 + 1; }

static int folded(MPI_Op op, int round, int i) {
    int all = value(round, 0, i);
    for (int r = 1; r < check_size; r++) {
        int v = value(round, r, i);
        all = op == MPI_SUM ? all + v : op == MPI_MAX ? (v > all ? v : all) : (v < all ? v : all);
    }
    return all;
}

static void prepare(int round, int n) {
    for (int i = 0; i < n; i++) give[i] = value(round, check_rank, i), got[i] = -1;
    got[n] = -1;
}

static void result(MPI_Op op, const int *a, int round, int first, int n) {
    for (int i = 0; i < n; i++) CHECK_EQ(a[i], folded(op, round, first + i));
    CHECK_EQ(a == got ? got[n] : -1, -1);
}

static MPI_Op op_of(int round) { return round % 3 == 0 ? MPI_SUM : round % 3 == 1 ? MPI_MAX : MPI_MIN; }

/* One after the other with all operations, two counts and two types of one size, in place and not. */
static void reductions(MPI_Comm comm, int round) {
    MPI_Op op = op_of(round);
    int n = round / 3 % 2 ? 2 : 3, root = round / 6 % check_size, in_place = round / 2 % 2;
    MPI_Datatype type = round / 4 % 2 ? MPI_INT : MPI_INT32_T;
    prepare(round, MOST);
    if (in_place) memcpy(got, give, (size_t)n * sizeof *got);
    OK(MPI_Allreduce(in_place ? MPI_IN_PLACE : give, got, n, type, op, comm));
    result(op, got, round, 0, n);
    prepare(round, MOST);
    int here = in_place && check_rank == root;
    if (here) memcpy(got, give, (size_t)n * sizeof *got);
    OK(MPI_Reduce(here ? MPI_IN_PLACE : give, check_rank == root ? got : NULL, n, type, op, root, comm));
    if (check_rank == root) result(op, got, round, 0, n);
}

/* The same bytes as two floats and as one double: other loops. */
static void representations(MPI_Comm comm) {
    float two[2] = {1.5f + (float)check_rank, 2}, twice[2];
    double one = 0.25 * (check_rank + 1), once, want = 0;
    float first = 0;
    for (int r = 0; r < check_size; r++) want += 0.25 * (r + 1), first += 1.5f + (float)r;
    OK(MPI_Allreduce(two, twice, 2, MPI_FLOAT, MPI_SUM, comm));
    OK(MPI_Allreduce(&one, &once, 1, MPI_DOUBLE, MPI_SUM, comm));
    CHECK(twice[0] == first && twice[1] == 2.0f * (float)check_size);
    CHECK(once == want);
}

/* The same sum of counts, differently shared out, as int and as MPI_Count. */
static void lists(MPI_Comm comm, int round) {
    int counts[64] = {0}, n = 2 * check_size, mine, first = 0, to = round % check_size;
    MPI_Count large[64] = {0};
    for (int r = 0; r < check_size; r++) counts[r] = round / check_size % 2 ? 2 : r == to ? n : 0;
    for (int r = 0; r < check_size; r++) large[r] = counts[r], first += r < check_rank ? counts[r] : 0;
    mine = counts[check_rank];
    prepare(round, n);
    OK(MPI_Reduce_scatter(give, got, counts, MPI_INT, MPI_SUM, comm));
    result(MPI_SUM, got, round, first, mine);
    prepare(round, n);
    OK(MPI_Reduce_scatter_c(give, got, large, MPI_INT, MPI_MAX, comm));
    result(MPI_MAX, got, round, first, mine);
    prepare(round, n);
    OK(MPI_Reduce_scatter_block(give, got, 2, MPI_INT, MPI_SUM, comm));
    result(MPI_SUM, got, round, 2 * check_rank, 2);
}

/* From every root, of several lengths, also with another datatype of as many bytes. */
static void broadcasts(MPI_Comm comm, int round) {
    static const int lengths[] = {1, 2, 14, 15, MOST};
    int n = lengths[round % 5], root = round / 3 % check_size;
    prepare(round, MOST);
    int *data = check_rank == root ? give : got;
    OK(round % 2 ? MPI_Bcast(data, n, MPI_INT, root, comm) : MPI_Bcast(data, 4 * n, MPI_BYTE, root, comm));
    for (int i = 0; i < n; i++) CHECK_EQ(data[i], value(round, root, i));
    if (data == got) CHECK_EQ(got[n], -1);
}

/* Others run in between: the turns on what ranks share must come in the order of the calls. */
static void in_between(MPI_Comm comm, int round) {
    MPI_Request requests[2];
    int sum = -1, news = check_rank == 0 ? round : -1;
    prepare(round, 3);
    OK(MPI_Iallreduce(give, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]));
    OK(MPI_Allreduce(give, got, 1, MPI_INT, MPI_SUM, comm));
    OK(MPI_Ibcast(&news, 1, MPI_INT, 0, comm, &requests[1]));
    OK(MPI_Barrier(comm));
    result(MPI_SUM, got, round, 0, 1);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK_EQ(sum, folded(MPI_SUM, round, 0));
    CHECK_EQ(news, round);
}

/* Everybody makes the same mistake, again and again, between calls that are right. */
static void mistakes(MPI_Comm comm) {
    int one = 1;
    CHECK_FAILS(MPI_Allreduce(&one, NULL, 1, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER);
    CHECK_FAILS(MPI_Allreduce(&one, &one, 1, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER);
    CHECK_FAILS(MPI_Allreduce(&one, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER);
    CHECK_FAILS(MPI_Allreduce(&one, got, -1, MPI_INT, MPI_SUM, comm), MPI_ERR_COUNT);
    CHECK_FAILS(MPI_Allreduce(&one, got, 1, MPI_FLOAT, MPI_BAND, comm), MPI_ERR_OP);
    CHECK_FAILS(MPI_Bcast(NULL, 1, MPI_INT, 0, comm), MPI_ERR_BUFFER);
    CHECK_FAILS(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, comm), MPI_ERR_BUFFER);
    CHECK_FAILS(MPI_Bcast(&one, 1, MPI_INT, check_size, comm), MPI_ERR_ROOT);
    CHECK_FAILS(MPI_Reduce(NULL, got, 1, MPI_INT, MPI_SUM, 0, comm), MPI_ERR_BUFFER);
}

/* Calls that were all made before, but not together: somebody hears of it, and the next ones are right again. */
static void quarrel(MPI_Comm comm) {
    for (int round = 0; round < 3; round++) {
        int heard, all, n = check_rank == 0 ? 3 : 2;
        for (int right = 2; right <= 3; right++) {
            prepare(round, MOST);
            OK(MPI_Allreduce(give, got, right, MPI_INT, MPI_SUM, comm));
            result(MPI_SUM, got, round, 0, right);
        }
        heard = MPI_Allreduce(give, got, n, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS;
        OK(MPI_Allreduce(&heard, &all, 1, MPI_INT, MPI_SUM, comm));
        if (all == 0) FAILED("round %d: no rank has reported it", round);
    }
}

static void hint(MPI_Comm comm, const char *rows) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "kw_coll", rows));
    OK(MPI_Comm_set_info(comm, info));
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    for (int again = 0; again < 3; again++) { /* what a freed communicator leaves must not be found by the next */
        MPI_Comm comm;
        OK(MPI_Comm_split(check_comm, 0, again % 2 ? -check_rank : check_rank, &comm));
        MPI_Comm_rank(comm, &check_rank);
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        for (int round = 0; round < ROUNDS; round++) {
            reductions(comm, round);
            representations(comm);
            lists(comm, round);
            broadcasts(comm, round);
            in_between(comm, round);
            if (STRICT && round % 8 == 0) mistakes(comm);
            if (round == ROUNDS / 3) hint(comm, "allreduce - - any any any doubling; bcast - - any any any binomial");
            if (round == ROUNDS / 2) hint(comm, "barrier - - any any any dissemination");
        }
        if (STRICT && check_size > 1) quarrel(comm);
        OK(MPI_Comm_free(&comm));
    }
    return check_end();
}
