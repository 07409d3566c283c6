/* Neighbourhood collectives: blocking, non-blocking and persistent, on grids, graphs and distributed graphs. */
// run: n=1,2,3,4,6 timeout=120
#include "check.h"

#define MOST 64
#define LONGEST 4
enum { CART, GRAPH, DIST };

static MPI_Comm comm;
static int kind, sources[MOST], destinations[MOST], indegree, outdegree;
static int every[MOST][MOST], degrees[MOST];

/* Both lists of neighbours of this process, and everybody's destinations. */
static void look(MPI_Comm c, int k) {
    int weighted, d, i;
    comm = c;
    kind = k;
    if (kind == CART) {
        OK(MPI_Cartdim_get(comm, &d));
        indegree = outdegree = 2 * d;
        for (i = 0; i < d; i++) {
            OK(MPI_Cart_shift(comm, i, 1, &sources[2 * i], &sources[2 * i + 1]));
            destinations[2 * i] = sources[2 * i];
            destinations[2 * i + 1] = sources[2 * i + 1];
        }
    } else if (kind == GRAPH) {
        OK(MPI_Graph_neighbors_count(comm, check_rank, &indegree));
        outdegree = indegree;
        OK(MPI_Graph_neighbors(comm, check_rank, MOST, sources));
        memcpy(destinations, sources, sizeof sources);
    } else {
        OK(MPI_Dist_graph_neighbors_count(comm, &indegree, &outdegree, &weighted));
        OK(MPI_Dist_graph_neighbors(comm, MOST, sources, MPI_UNWEIGHTED, MOST, destinations, MPI_UNWEIGHTED));
    }
    OK(MPI_Allgather(&outdegree, 1, MPI_INT, degrees, 1, MPI_INT, comm));
    OK(MPI_Allgather(destinations, MOST, MPI_INT, every, MOST, MPI_INT, comm));
}

/* Which block of its send buffer the process that is our neighbour `slot` sends us. */
static int block_of(int slot) {
    int i, before = 0, s = sources[slot];
    if (kind == CART) return slot ^ 1;
    for (i = 0; i < slot; i++) before += sources[i] == s;
    for (i = 0; i < degrees[s]; i++)
        if (every[s][i] == check_rank && before-- == 0) return i;
    FAILED("no edge comes from rank %d", s);
    return 0;
}

static int length(int from, int to) { return from < 0 || to < 0 ? 1 : (from * 2 + to) % LONGEST; }
static int value(int from, int block, int i) { return from * 10000 + block * 10 + i; }

/* Calls one function in one form; persistent ones run twice. */
#define CALL(form, name, ...) do {                                                             \
        MPI_Request request_;                                                                  \
        if ((form) == 0) OK(MPI_Neighbor_##name(__VA_ARGS__, comm));                           \
        if ((form) == 1) {                                                                     \
            OK(MPI_Ineighbor_##name(__VA_ARGS__, comm, &request_));                            \
            OK(MPI_Wait(&request_, MPI_STATUS_IGNORE));                                        \
        }                                                                                      \
        if ((form) == 2) {                                                                     \
            OK(MPI_Neighbor_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &request_));       \
            for (int turn_ = 0; turn_ < 2; turn_++) {                                          \
                OK(MPI_Start(&request_));                                                      \
                OK(MPI_Wait(&request_, MPI_STATUS_IGNORE));                                    \
            }                                                                                  \
            OK(MPI_Request_free(&request_));                                                   \
        }                                                                                      \
    } while (0)

static int out[MOST * LONGEST], in[MOST * LONGEST];

static void clear(void) {
    int i;
    for (i = 0; i < MOST * LONGEST; i++) in[i] = -1;
}

/* `n` numbers of block `block` of the neighbour came to the place of `slot`, and nothing behind them. */
static void came(int slot, int block, int n) {
    int i;
    for (i = 0; i < LONGEST; i++) {
        int want = i < n && sources[slot] != MPI_PROC_NULL ? value(sources[slot], block, i) : -1;
        CHECK_EQ(in[slot * LONGEST + i], want);
    }
}

static void equal_blocks(int form) {
    MPI_Datatype row;
    int k, i;
    OK(MPI_Type_contiguous(LONGEST, MPI_INT, &row));
    OK(MPI_Type_commit(&row));
    for (k = 0; k < MOST * LONGEST; k++) out[k] = value(check_rank, k / LONGEST, k % LONGEST);
    clear();
    CALL(form, allgather, out, LONGEST, MPI_INT, in, 1, row);
    for (i = 0; i < indegree; i++) came(i, 0, LONGEST);
    clear();
    CALL(form, alltoall, out, 1, row, in, LONGEST, MPI_INT);
    for (i = 0; i < indegree; i++) came(i, block_of(i), LONGEST);
    OK(MPI_Type_free(&row));
}

static void unequal_blocks(int form) {
    int k, i, counts[MOST], places[MOST], outs[MOST], from[MOST];
    clear();
    for (k = 0; k < LONGEST; k++) out[k] = value(check_rank, 0, k);
    for (i = 0; i < indegree; i++) {
        counts[i] = length(sources[i], 0);
        places[i] = i * LONGEST;
    }
    CALL(form, allgatherv, out, length(check_rank, 0), MPI_INT, in, counts, places, MPI_INT);
    for (i = 0; i < indegree; i++) came(i, 0, counts[i]);
    /* the last block lies first */
    clear();
    for (k = 0; k < outdegree; k++) {
        outs[k] = length(check_rank, destinations[k]);
        from[k] = (outdegree - 1 - k) * LONGEST;
        for (i = 0; i < LONGEST; i++) out[from[k] + i] = value(check_rank, k, i);
    }
    for (i = 0; i < indegree; i++) {
        counts[i] = length(sources[i], check_rank);
        places[i] = i * LONGEST;
    }
    CALL(form, alltoallv, out, outs, from, MPI_INT, in, counts, places, MPI_INT);
    for (i = 0; i < indegree; i++) came(i, block_of(i), counts[i]);
}

/* Odd blocks are pairs of numbers in one element, the others single numbers. */
static void typed_blocks(int form) {
    MPI_Datatype single = MPI_INT, pair, types_out[MOST], types_in[MOST];
    MPI_Aint at_out[MOST], at_in[MOST];
    int k, i, counts[MOST], outs[MOST];
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    clear();
    for (k = 0; k < outdegree; k++) {
        types_out[k] = k % 2 ? pair : single;
        outs[k] = 1;
        at_out[k] = (MPI_Aint)sizeof(int) * k * LONGEST;
        for (i = 0; i < LONGEST; i++) out[k * LONGEST + i] = value(check_rank, k, i);
    }
    for (i = 0; i < indegree; i++) {
        int odd = sources[i] != MPI_PROC_NULL && block_of(i) % 2;
        types_in[i] = single;
        counts[i] = odd ? 2 : 1;
        at_in[i] = (MPI_Aint)sizeof(int) * i * LONGEST;
    }
    CALL(form, alltoallw, out, outs, at_out, types_out, in, counts, at_in, types_in);
    for (i = 0; i < indegree; i++) came(i, sources[i] < 0 ? 0 : block_of(i), counts[i]);
    /* the same by absolute addresses */
    clear();
    for (k = 0; k < outdegree; k++) OK(MPI_Get_address(&out[k * LONGEST], &at_out[k]));
    for (i = 0; i < indegree; i++) OK(MPI_Get_address(&in[i * LONGEST], &at_in[i]));
    CALL(form, alltoallw, MPI_BOTTOM, outs, at_out, types_out, MPI_BOTTOM, counts, at_in, types_in);
    for (i = 0; i < indegree; i++) came(i, sources[i] < 0 ? 0 : block_of(i), counts[i]);
    OK(MPI_Type_free(&pair));
}

/* The large-count twins, all five at once. */
static void twins(void) {
    MPI_Count ones[MOST];
    MPI_Aint places[MOST], bytes[MOST];
    MPI_Datatype types[MOST];
    MPI_Request requests[5];
    int results[5][MOST], k, i, blocks = indegree > outdegree ? indegree : outdegree;
    memset(results, -1, sizeof results);
    for (k = 0; k < blocks; k++) {
        out[k] = value(check_rank, k, 0);
        ones[k] = 1;
        places[k] = k;
        bytes[k] = k * (MPI_Aint)sizeof(int);
        types[k] = MPI_INT;
    }
    OK(MPI_Ineighbor_allgather_c(out, 1, MPI_INT, results[0], 1, MPI_INT, comm, &requests[0]));
    OK(MPI_Ineighbor_allgatherv_c(out, 1, MPI_INT, results[1], ones, places, MPI_INT, comm, &requests[1]));
    OK(MPI_Ineighbor_alltoall_c(out, 1, MPI_INT, results[2], 1, MPI_INT, comm, &requests[2]));
    OK(MPI_Ineighbor_alltoallv_c(out, ones, places, MPI_INT, results[3], ones, places, MPI_INT, comm, &requests[3]));
    OK(MPI_Ineighbor_alltoallw_c(out, ones, bytes, types, results[4], ones, bytes, types, comm, &requests[4]));
    OK(MPI_Waitall(5, requests, MPI_STATUSES_IGNORE));
    for (i = 0; i < indegree; i++)
        for (k = 0; k < 5; k++) {
            int none = sources[i] == MPI_PROC_NULL;
            CHECK_EQ(results[k][i], none ? -1 : value(sources[i], k < 2 ? 0 : block_of(i), 0));
        }
}

static void all(MPI_Comm c, int k) {
    int form;
    look(c, k);
    for (form = 0; form < 3; form++) {
        equal_blocks(form);
        unequal_blocks(form);
        typed_blocks(form);
    }
    twins();
    OK(MPI_Comm_free(&c));
}

static void grid(int ndims, int a, int b, int c, int periodic) {
    int dims[3] = {a, b, c}, periods[3], i;
    MPI_Comm made;
    for (i = 0; i < 3; i++) periods[i] = periodic >> i & 1;
    OK(MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &made));
    if (made != MPI_COMM_NULL) all(made, CART);
}

static void grids(void) {
    int n = check_size, half = n % 2 ? n : n / 2, two = n / half, p;
    grid(0, 0, 0, 0, 0);
    for (p = 0; p < 8; p++) {
        if (p < 2) grid(1, n, 0, 0, p);
        if (p < 4) grid(2, two, half, 0, p);
        grid(3, half, 1, two, p);
    }
}

/* A ring in which every edge is double, and every second process is its own neighbour. */
static void graph(void) {
    int index[MOST], edges[MOST * 5], n = check_size, e = 0, r;
    MPI_Comm made;
    for (r = 0; r < n; r++) {
        int next = (r + 1) % n, before = (r + n - 1) % n;
        edges[e++] = next;
        edges[e++] = before;
        if (r % 2) edges[e++] = r;
        edges[e++] = before;
        edges[e++] = next;
        index[r] = e;
    }
    OK(MPI_Graph_create(MPI_COMM_WORLD, n, index, edges, 0, &made));
    all(made, GRAPH);
}

/* Every process sends to all lower ones and itself, to every second of them twice. */
static void adjacent(void) {
    int from[MOST], to[MOST], a = 0, b = 0, r, i;
    MPI_Comm made;
    for (r = check_size - 1; r >= check_rank; r--)
        for (i = 0; i <= (r + check_rank) % 2; i++) from[a++] = r;
    for (i = 0; i < 2; i++)
        for (r = 0; r <= check_rank; r++)
            if (i == 0 || (r + check_rank) % 2) to[b++] = r;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, a, from, MPI_UNWEIGHTED, b, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made));
    all(made, DIST);
}

/* Each process names the edges of its successor, to the one after that and to process 0. Then no process has any. */
static void anybody(void) {
    int source = (check_rank + 1) % check_size, degree = 2, none = 0;
    int to[2] = {(check_rank + 2) % check_size, 0};
    MPI_Comm made;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &source, &degree, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made));
    all(made, DIST);
    if (!STRICT) return; /* MPICH 5.0 falls over a graph without edges */
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, &none, &none, &none, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made));
    look(made, DIST);
    CHECK(indegree == 0 && outdegree == 0);
    OK(MPI_Neighbor_alltoall(NULL, 1, MPI_INT, NULL, 1, MPI_INT, made));
    OK(MPI_Comm_free(&made));
}

/* Long blocks, which do not fit into one message of any buffer. */
static void long_blocks(void) {
    int dims[1] = {check_size}, periods[1] = {1}, n = 300000, i;
    int *data = malloc(sizeof(int) * 2 * n), *got = malloc(sizeof(int) * 2 * n);
    int up = (check_rank + 1) % check_size, down = (check_rank + check_size - 1) % check_size;
    MPI_Comm ring;
    for (i = 0; i < 2 * n; i++) data[i] = check_rank * 1000003 + i;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring));
    OK(MPI_Neighbor_alltoall(data, n, MPI_INT, got, n, MPI_INT, ring));
    for (i = 0; i < n; i += 997) {
        CHECK_EQ(got[i], down * 1000003 + n + i);
        CHECK_EQ(got[n + i], up * 1000003 + i);
    }
    OK(MPI_Comm_free(&ring));
    free(data);
    free(got);
}

static void faults(void) {
    int dims[1] = {check_size}, periods[1] = {1}, places[2] = {0, 1}, counts[2] = {1, -1};
    MPI_Comm ring, inter_free = MPI_COMM_WORLD;
    MPI_Request request;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring));
    OK(MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN));
    CHECK_FAILS(MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, inter_free), MPI_ERR_TOPOLOGY);
    CHECK_FAILS(MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, inter_free, &request), MPI_ERR_TOPOLOGY);
    if (STRICT) {
        CHECK_FAILS(MPI_Neighbor_alltoall(out, -1, MPI_INT, in, 1, MPI_INT, ring), MPI_ERR_COUNT);
        CHECK_FAILS(MPI_Neighbor_alltoall(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, ring), MPI_ERR_BUFFER);
        CHECK_FAILS(MPI_Neighbor_allgather(out, 1, MPI_INT, out, 1, MPI_INT, ring), MPI_ERR_BUFFER);
        CHECK_FAILS(MPI_Neighbor_allgather(out, 1, MPI_DATATYPE_NULL, in, 1, MPI_INT, ring), MPI_ERR_TYPE);
        CHECK_FAILS(MPI_Neighbor_alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, ring), MPI_ERR_COUNT);
        CHECK_FAILS(MPI_Neighbor_alltoall_init(out, 1, MPI_INT, in, -1, MPI_INT, ring, MPI_INFO_NULL, &request), MPI_ERR_COUNT);
    }
    OK(MPI_Comm_free(&ring));
    if (STRICT && check_size > 1) {
        int index[MOST], edge = 1, i;
        for (i = 0; i < check_size; i++) index[i] = 1;
        OK(MPI_Graph_create(MPI_COMM_WORLD, check_size, index, &edge, 0, &ring));
        CHECK_FAILS(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring), MPI_ERR_TOPOLOGY);
        OK(MPI_Comm_free(&ring));
    }
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    grids();
    graph();
    adjacent();
    anybody();
    long_blocks();
    faults();
    return check_end();
}
