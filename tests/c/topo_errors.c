/* Wrong arguments of the topology functions: the right class, and no rank hangs. */
// run: n=1,4 paths=one
#include "check.h"

static MPI_Comm made;

static void grids(MPI_Comm ring) {
    int zero[2] = {1, 0}, one[1] = {1}, minus[2] = {-1, 1}, huge[3] = {2147483647, 2147483647, 2147483647}, free_[2] = {0, 0}, more[1] = {check_size + 1};
    int periods[3] = {0, 0, 0}, at[1] = {check_size}, n, d[1], p[1], c[1], fixed[2] = {check_size + 1, 0};
    CHECK_FAILS(MPI_Cart_create(MPI_COMM_WORLD, -1, more, periods, 0, &made), MPI_ERR_DIMS);
    CHECK_FAILS(MPI_Cart_create(MPI_COMM_WORLD, 2, zero, periods, 0, &made), MPI_ERR_DIMS);
    CHECK_FAILS(MPI_Cart_create(MPI_COMM_WORLD, 2, minus, periods, 1, &made), MPI_ERR_DIMS);
    CHECK_FAILS(MPI_Cart_create(MPI_COMM_WORLD, 1, more, periods, 1, &made), MPI_ERR_DIMS);
    CHECK_FAILS(MPI_Cart_create(MPI_COMM_WORLD, 3, huge, periods, 0, &made), MPI_ERR_DIMS);
    CHECK_FAILS(MPI_Cart_create(MPI_COMM_WORLD, 1, NULL, periods, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Cart_create(MPI_COMM_WORLD, 1, one, NULL, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Cart_create(MPI_COMM_NULL, 1, more, periods, 0, &made), MPI_ERR_COMM);
    CHECK_FAILS(MPI_Cart_map(MPI_COMM_WORLD, -1, more, periods, &n), MPI_ERR_DIMS);
    CHECK_FAILS(MPI_Cart_map(MPI_COMM_WORLD, 1, NULL, periods, &n), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Cart_map(MPI_COMM_NULL, 1, one, periods, &n), MPI_ERR_COMM);
    CHECK_FAILS(MPI_Topo_test(MPI_COMM_NULL, &n), MPI_ERR_COMM);
    CHECK_FAILS(MPI_Dims_create(4, 2, NULL), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Cart_rank(ring, NULL, &n), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Cart_coords(ring, -1, 1, c), MPI_ERR_RANK);
    CHECK_FAILS(MPI_Cart_coords(ring, 0, -1, c), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Cart_get(ring, 0, d, p, c), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Cart_map(MPI_COMM_WORLD, 1, more, periods, &n), MPI_ERR_DIMS);
    CHECK_FAILS(MPI_Cart_map(MPI_COMM_WORLD, 2, zero, periods, &n), MPI_ERR_DIMS);
    CHECK_FAILS(MPI_Dims_create(0, 2, free_), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Dims_create(4, -1, free_), MPI_ERR_DIMS);
    CHECK_FAILS(MPI_Dims_create(4, 2, minus), MPI_ERR_DIMS);
    CHECK_FAILS(MPI_Dims_create(check_size, 2, fixed), MPI_ERR_DIMS);
    OK(MPI_Dims_create(1, 0, free_));
    CHECK_FAILS(MPI_Dims_create(2, 0, free_), MPI_ERR_DIMS);
    CHECK_FAILS(MPI_Cart_rank(ring, at, &n), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Cart_coords(ring, check_size, 1, c), MPI_ERR_RANK);
    CHECK_FAILS(MPI_Cart_coords(ring, 0, 0, c), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Cart_shift(ring, 1, 1, &n, &n), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Cart_shift(ring, -1, 1, &n, &n), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Cart_get(ring, -1, d, p, c), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Cart_sub(ring, NULL, &made), MPI_ERR_ARG);
}

static void kinds(MPI_Comm comm) {
    int n, a[1], b[1], c[1], remain[1] = {1};
    CHECK_FAILS(MPI_Cartdim_get(comm, &n), MPI_ERR_TOPOLOGY);
    if (STRICT) CHECK_FAILS(MPI_Cart_get(comm, 1, a, b, c), MPI_ERR_TOPOLOGY); /* MPICH 5.0 falls over */
    CHECK_FAILS(MPI_Cart_rank(comm, a, &n), MPI_ERR_TOPOLOGY);
    CHECK_FAILS(MPI_Cart_coords(comm, 0, 1, a), MPI_ERR_TOPOLOGY);
    CHECK_FAILS(MPI_Cart_shift(comm, 0, 1, a, b), MPI_ERR_TOPOLOGY);
    CHECK_FAILS(MPI_Cart_sub(comm, remain, &made), MPI_ERR_TOPOLOGY);
}

static void not_a_graph(MPI_Comm comm) {
    int n, m, a[1];
    CHECK_FAILS(MPI_Graphdims_get(comm, &n, &m), MPI_ERR_TOPOLOGY);
    CHECK_FAILS(MPI_Graph_get(comm, 1, 1, a, a), MPI_ERR_TOPOLOGY);
    CHECK_FAILS(MPI_Graph_neighbors_count(comm, 0, &n), MPI_ERR_TOPOLOGY);
    CHECK_FAILS(MPI_Graph_neighbors(comm, 0, 1, a), MPI_ERR_TOPOLOGY);
}

static void not_distributed(MPI_Comm comm) {
    int n, m, w, a[1];
    CHECK_FAILS(MPI_Dist_graph_neighbors_count(comm, &n, &m, &w), MPI_ERR_TOPOLOGY);
    CHECK_FAILS(MPI_Dist_graph_neighbors(comm, 1, a, MPI_UNWEIGHTED, 1, a, MPI_UNWEIGHTED), MPI_ERR_TOPOLOGY);
}

static void graphs(MPI_Comm graph) {
    int falling[2] = {2, 1}, below[1] = {-1}, one[1] = {1}, far[1] = {check_size}, self[1] = {0}, n, room[1];
    CHECK_FAILS(MPI_Graph_create(MPI_COMM_WORLD, check_size + 1, one, self, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Graph_create(MPI_COMM_WORLD, -1, one, self, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Graph_create(MPI_COMM_WORLD, 1, below, self, 0, &made), MPI_ERR_ARG);
    if (check_size > 1) CHECK_FAILS(MPI_Graph_create(MPI_COMM_WORLD, 2, falling, self, 1, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Graph_create(MPI_COMM_WORLD, 1, one, far, 0, &made), MPI_ERR_RANK);
    CHECK_FAILS(MPI_Graph_map(MPI_COMM_WORLD, 1, one, far, &n), MPI_ERR_RANK);
    CHECK_FAILS(MPI_Graph_create(MPI_COMM_WORLD, 1, NULL, NULL, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Graph_neighbors_count(graph, check_size, &n), MPI_ERR_RANK);
    CHECK_FAILS(MPI_Graph_neighbors(graph, -1, 1, room), MPI_ERR_RANK);
    CHECK_FAILS(MPI_Graph_neighbors(graph, 0, -1, room), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Graph_neighbors(graph, check_size, 1, room), MPI_ERR_RANK);
    CHECK_FAILS(MPI_Graph_neighbors_count(graph, -1, &n), MPI_ERR_RANK);
    CHECK_FAILS(MPI_Graph_get(graph, -1, 1, room, room), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Graph_get(graph, 1, -1, room, room), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Graph_create(MPI_COMM_WORLD, 1, one, NULL, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Graph_create(MPI_COMM_WORLD, 1, one, below, 0, &made), MPI_ERR_RANK);
    CHECK_FAILS(MPI_Graph_create(MPI_COMM_NULL, 1, one, self, 0, &made), MPI_ERR_COMM);
    CHECK_FAILS(MPI_Graph_map(MPI_COMM_WORLD, check_size + 1, one, self, &n), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Graph_map(MPI_COMM_WORLD, -1, one, self, &n), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Graph_map(MPI_COMM_WORLD, 1, below, self, &n), MPI_ERR_ARG);
    /* an empty graph has no members */
    OK(MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 1, &made));
    CHECK(made == MPI_COMM_NULL);
}

static void distributed(MPI_Comm dist) {
    int far[1] = {check_size}, one[1] = {1}, self[1] = {check_rank}, minus[1] = {-1}, many[2] = {2147483647, 2}, twice[2] = {check_rank, check_rank};
    CHECK_FAILS(MPI_Dist_graph_neighbors(dist, -1, far, MPI_UNWEIGHTED, 1, far, MPI_UNWEIGHTED), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Dist_graph_neighbors(dist, 1, far, MPI_UNWEIGHTED, -1, far, MPI_UNWEIGHTED), MPI_ERR_ARG);
    far[0] = check_size;
    CHECK_FAILS(MPI_Dist_graph_create_adjacent(MPI_COMM_NULL, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_COMM);
    CHECK_FAILS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_UNWEIGHTED, -1, self, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_UNWEIGHTED, 1, far, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_RANK);
    CHECK_FAILS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, minus, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_RANK);
    CHECK_FAILS(MPI_Dist_graph_create(MPI_COMM_NULL, 0, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_COMM);
    CHECK_FAILS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, NULL, one, self, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, self, NULL, self, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, self, one, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, self, one, self, minus, MPI_INFO_NULL, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, self, one, self, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Dist_graph_create(MPI_COMM_WORLD, 2, twice, many, self, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, far, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_RANK);
    CHECK_FAILS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, -1, self, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, self, MPI_WEIGHTS_EMPTY, 1, self, one, MPI_INFO_NULL, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, self, minus, 1, self, one, MPI_INFO_NULL, 0, &made), MPI_ERR_ARG);
    /* a loop that only one of its ends knows of may be made, but nothing goes along it; with KW_CHECK it is not made */
    if (is_checked()) {
        CHECK_FAILS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, self, one, 0, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &made), MPI_ERR_TOPOLOGY);
    } else {
        OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, self, one, 0, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &made));
        OK(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN));
        CHECK_FAILS(MPI_Neighbor_alltoall(self, 1, MPI_INT, far, 1, MPI_INT, made), MPI_ERR_TOPOLOGY);
        OK(MPI_Comm_free(&made));
    }
    CHECK_FAILS(MPI_Dist_graph_create(MPI_COMM_WORLD, -1, self, one, self, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, self, minus, self, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_ARG);
    CHECK_FAILS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, far, one, self, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_RANK);
    CHECK_FAILS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, self, one, far, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_RANK);
}

static void between(void) {
    int dims[1] = {1}, periods[1] = {0}, n;
    MPI_Comm half, inter;
    if (check_size < 2) return;
    OK(MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - check_rank % 2, 5, &inter));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    CHECK_FAILS(MPI_Cart_create(inter, 1, dims, periods, 0, &made), MPI_ERR_COMM);
    CHECK_FAILS(MPI_Graph_create(inter, 0, NULL, NULL, 0, &made), MPI_ERR_COMM);
    CHECK_FAILS(MPI_Dist_graph_create_adjacent(inter, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_COMM);
    OK(MPI_Topo_test(inter, &n));
    CHECK_EQ(n, MPI_UNDEFINED);
    CHECK_FAILS(MPI_Neighbor_alltoall(&n, 0, MPI_INT, &n, 0, MPI_INT, inter), MPI_ERR_TOPOLOGY);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

/* Duplicates of every sort keep the topology; parts do not. */
static void duplicates(MPI_Comm comm, int kind) {
    MPI_Comm dup[4], part;
    MPI_Request requests[2];
    int i, n;
    OK(MPI_Comm_dup(comm, &dup[0]));
    OK(MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &dup[1]));
    OK(MPI_Comm_idup(comm, &dup[2], &requests[0]));
    OK(MPI_Comm_idup_with_info(comm, MPI_INFO_NULL, &dup[3], &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (i = 0; i < 4; i++) {
        int out[2] = {check_rank, check_rank}, in[2] = {-1, -1};
        OK(MPI_Topo_test(dup[i], &n));
        CHECK_EQ(n, kind);
        OK(MPI_Comm_compare(comm, dup[i], &n));
        CHECK_EQ(n, MPI_CONGRUENT);
        OK(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, dup[i]));
        CHECK_EQ(in[0], kind == MPI_CART && check_rank == 0 ? -1 : kind == MPI_CART ? check_rank - 1 : check_rank);
        OK(MPI_Comm_free(&dup[i]));
    }
    OK(MPI_Comm_split(comm, 0, 0, &part));
    OK(MPI_Topo_test(part, &n));
    CHECK_EQ(n, MPI_UNDEFINED);
    OK(MPI_Comm_free(&part));
}

int main(int argc, char **argv) {
    int dims[1], periods[1] = {0}, index[64], edges[64], self[1], r;
    MPI_Comm line, loops, dist;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    dims[0] = check_size;
    self[0] = check_rank;
    for (r = 0; r < check_size; r++) {
        index[r] = r + 1;
        edges[r] = r;
    }
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &line));
    OK(MPI_Graph_create(MPI_COMM_WORLD, check_size, index, edges, 0, &loops));
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, self, MPI_UNWEIGHTED, 1, self, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &dist));
    OK(MPI_Comm_set_errhandler(line, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(loops, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(dist, MPI_ERRORS_RETURN));
    if (STRICT) {
        grids(line);
        graphs(loops);
        distributed(dist);
        between();
    }
    kinds(MPI_COMM_WORLD);
    kinds(loops);
    kinds(dist);
    not_a_graph(line);
    not_a_graph(dist);
    not_a_graph(MPI_COMM_WORLD);
    not_distributed(line);
    not_distributed(loops);
    not_distributed(MPI_COMM_WORLD);
    duplicates(line, MPI_CART);
    duplicates(loops, MPI_GRAPH);
    duplicates(dist, MPI_DIST_GRAPH);
    OK(MPI_Comm_free(&line));
    OK(MPI_Comm_free(&loops));
    OK(MPI_Comm_free(&dist));
    return check_end();
}
