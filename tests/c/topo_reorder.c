/* Topologies with reordering: the ranks are a permutation, neighbours are those of the rank, and not more edges leave a host
 * than without. Our own runs are told that the processes live on two hosts in turn. */
// run: n=1,4,8 hosts=2 timeout=60
#include "check.h"

#define MOST 64
static int host_of[MOST]; /* by rank in MPI_COMM_WORLD */
static int hosts;

static void find_hosts(void) {
    MPI_Comm node;
    int lowest, r;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Allreduce(&check_rank, &lowest, 1, MPI_INT, MPI_MIN, node));
    OK(MPI_Allgather(&lowest, 1, MPI_INT, host_of, 1, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Comm_free(&node));
    hosts = 0;
    for (r = 0; r < check_size; r++) hosts += host_of[r] == r;
    if (STRICT) CHECK_EQ(hosts, check_size > 1 ? 2 : 1);
}

/* Which process of MPI_COMM_WORLD has each rank of `comm`; every one has one. */
static void members(MPI_Comm comm, int *who) {
    int seen[MOST] = {0}, n, r;
    OK(MPI_Comm_size(comm, &n));
    OK(MPI_Allgather(&check_rank, 1, MPI_INT, who, 1, MPI_INT, comm));
    for (r = 0; r < n; r++) CHECK(who[r] >= 0 && who[r] < check_size && !seen[who[r]]++);
}

/* A double ring: rank r and its successor. */
static int crossing(const int *who) {
    int r, n = 0;
    for (r = 0; r < check_size; r++)
        n += host_of[who ? who[r] : r] != host_of[who ? who[(r + 1) % check_size] : (r + 1) % check_size];
    return n;
}

static void judge(MPI_Comm comm, int mapped) {
    int who[MOST], rank;
    OK(MPI_Comm_rank(comm, &rank));
    members(comm, who);
    CHECK(crossing(who) <= crossing(NULL));
    if (STRICT && check_size > 2) CHECK_EQ(crossing(who), 2);
    if (mapped >= 0) CHECK_EQ(rank, mapped);
}

/* Along the ring, what rank r sends up and down comes from below and above. */
static void talk(MPI_Comm comm, int up_first) {
    int out[2], in[2] = {-1, -1}, rank, n = check_size;
    OK(MPI_Comm_rank(comm, &rank));
    int down = (rank + n - 1) % n, up = (rank + 1) % n;
    out[0] = rank * 10 + 0;
    out[1] = rank * 10 + 1;
    OK(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm));
    CHECK_EQ(in[0], (up_first ? up : down) * 10 + 1);
    CHECK_EQ(in[1], (up_first ? down : up) * 10 + 0);
}

static void cart(void) {
    int dims[1] = {check_size}, periods[1] = {1}, place;
    MPI_Comm ring;
    OK(MPI_Cart_map(MPI_COMM_WORLD, 1, dims, periods, &place));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &ring));
    judge(ring, STRICT ? place : -1);
    talk(ring, 0);
    OK(MPI_Comm_free(&ring));
}

static void smaller(void) {
    int dims[2] = {1, check_size - 1}, periods[2] = {0, 0}, place, n, who[MOST];
    MPI_Comm grid;
    if (check_size < 2) return;
    OK(MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, &place));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid));
    if (STRICT) CHECK_EQ(place == MPI_UNDEFINED, grid == MPI_COMM_NULL);
    if (grid == MPI_COMM_NULL) return;
    OK(MPI_Comm_size(grid, &n));
    CHECK_EQ(n, check_size - 1);
    OK(MPI_Allgather(&check_rank, 1, MPI_INT, who, 1, MPI_INT, grid));
    OK(MPI_Comm_free(&grid));
}

static void graph(void) {
    int index[MOST], edges[2 * MOST], r, n = check_size, place;
    MPI_Comm ring;
    for (r = 0; r < n; r++) {
        index[r] = 2 * r + 2;
        edges[2 * r] = (r + n - 1) % n;
        edges[2 * r + 1] = (r + 1) % n;
    }
    OK(MPI_Graph_map(MPI_COMM_WORLD, n, index, edges, &place));
    OK(MPI_Graph_create(MPI_COMM_WORLD, n, index, edges, 1, &ring));
    judge(ring, STRICT ? place : -1);
    if (n > 2) talk(ring, 0);
    OK(MPI_Comm_free(&ring));
}

/* The lists are those that the process with this rank in the old communicator gave. */
static void lists(MPI_Comm comm, int adjacent) {
    int from[2], to[2], weight_from[2], weight_to[2], in, out, weighted, rank, n = check_size;
    OK(MPI_Comm_rank(comm, &rank));
    int down = (rank + n - 1) % n, up = (rank + 1) % n;
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    CHECK(in == 2 && out == 2 && weighted);
    OK(MPI_Dist_graph_neighbors(comm, 2, from, weight_from, 2, to, weight_to));
    if (adjacent) {
        CHECK(from[0] == down && from[1] == up && to[0] == down && to[1] == up);
        CHECK(weight_from[0] == down * 2 + 1 && weight_from[1] == up * 2);
        CHECK(weight_to[0] == rank * 2 && weight_to[1] == rank * 2 + 1);
    } else {
        CHECK((from[0] == down && from[1] == up) || (from[0] == up && from[1] == down));
        CHECK((to[0] == down && to[1] == up) || (to[0] == up && to[1] == down));
    }
}

static void distributed(void) {
    int n = check_size, r = check_rank, down = (r + n - 1) % n, up = (r + 1) % n, k;
    int ends[2] = {down, up}, in_weights[2] = {down * 2 + 1, up * 2}, out_weights[2] = {r * 2, r * 2 + 1};
    MPI_Comm ring;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, ends, in_weights, 2, ends, out_weights, MPI_INFO_NULL, 1, &ring));
    judge(ring, -1);
    lists(ring, 1);
    if (n > 2) talk(ring, 0);
    OK(MPI_Comm_free(&ring));
    /* process r names the edges of process 3r (all of them once where 3 and n have no common factor) */
    int source = 3 * r % n, degree = 2, to[2] = {(source + n - 1) % n, (source + 1) % n}, weights[2] = {1, 1};
    if (n % 3 == 0) return;
    for (k = 0; k < 2; k++) {
        OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &source, &degree, to, weights, MPI_INFO_NULL, k, &ring));
        if (k) judge(ring, -1);
        lists(ring, 0);
        OK(MPI_Comm_free(&ring));
    }
}

/* The first process names a complete graph whose edges from lower to higher ranks are double. */
static void by_one(void) {
    int n = check_size, sources[MOST], degrees[MOST], to[2 * MOST * MOST], weights[2 * MOST * MOST], e = 0, r, d, k;
    int in, out, weighted, from[2 * MOST], into[2 * MOST], weight_from[2 * MOST], weight_into[2 * MOST];
    MPI_Comm all;
    for (r = 0; r < n; r++) {
        int start = e;
        for (d = 0; d < n; d++)
            for (k = 0; k <= (d > r); k++) {
                weights[e] = r * 100 + d * 10 + k;
                to[e++] = d;
            }
        sources[r] = r;
        degrees[r] = e - start;
    }
    if (check_rank > 0) n = 0;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, n, sources, degrees, to, weights, MPI_INFO_NULL, 0, &all));
    n = check_size;
    OK(MPI_Dist_graph_neighbors_count(all, &in, &out, &weighted));
    CHECK(in == n + check_rank && out == n + (n - 1 - check_rank) && weighted);
    OK(MPI_Dist_graph_neighbors(all, in, from, weight_from, out, into, weight_into));
    int sum = 0, want = 0;
    for (k = 0; k < in; k++) {
        CHECK_EQ(weight_from[k] / 10, from[k] * 10 + check_rank);
        sum += weight_from[k];
    }
    for (r = 0; r < n; r++)
        for (k = 0; k <= (check_rank > r); k++) want += r * 100 + check_rank * 10 + k;
    CHECK_EQ(sum, want);
    for (k = 0; k < out; k++) CHECK_EQ(weight_into[k] / 10, check_rank * 10 + into[k]);
    /* along several edges the blocks keep the order of both lists: send the weights */
    int got[2 * MOST];
    OK(MPI_Neighbor_alltoall(weight_into, 1, MPI_INT, got, 1, MPI_INT, all));
    for (k = 0; k < in; k++) {
        CHECK_EQ(got[k] / 10, weight_from[k] / 10);
        if (STRICT) CHECK_EQ(got[k], weight_from[k]);
    }
    OK(MPI_Comm_free(&all));
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    find_hosts();
    cart();
    smaller();
    graph();
    distributed();
    by_one();
    return check_end();
}
