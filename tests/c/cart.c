/* Grids: making, asking, shifting, slicing; MPI_Dims_create. */
// run: n=1,4,6 paths=one
#include "check.h"

int main(int argc, char **argv) {
    int dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2], d[2], p[2], n, rank, src, dst;
    MPI_Comm grid, row;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    OK(MPI_Topo_test(MPI_COMM_WORLD, &n));
    CHECK_EQ(n, MPI_UNDEFINED);
    OK(MPI_Dims_create(check_size, 2, dims));
    CHECK_EQ(dims[0] * dims[1], check_size);
    CHECK(dims[0] >= dims[1]);
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid));
    OK(MPI_Topo_test(grid, &n));
    CHECK_EQ(n, MPI_CART);
    OK(MPI_Cartdim_get(grid, &n));
    CHECK_EQ(n, 2);
    OK(MPI_Cart_get(grid, 2, d, p, coords));
    CHECK(d[0] == dims[0] && d[1] == dims[1] && p[0] == 1 && p[1] == 0);
    CHECK_EQ(coords[0] * dims[1] + coords[1], check_rank);
    OK(MPI_Cart_rank(grid, coords, &rank));
    CHECK_EQ(rank, check_rank);
    coords[0] -= dims[0];
    OK(MPI_Cart_rank(grid, coords, &rank));
    CHECK_EQ(rank, check_rank);
    OK(MPI_Cart_coords(grid, check_size - 1, 2, coords));
    CHECK(coords[0] == dims[0] - 1 && coords[1] == dims[1] - 1);
    OK(MPI_Cart_shift(grid, 0, 1, &src, &dst));
    CHECK_EQ(dst, (check_rank + dims[1]) % check_size);
    CHECK_EQ(src, (check_rank + check_size - dims[1]) % check_size);
    OK(MPI_Cart_shift(grid, 1, 1, &src, &dst));
    CHECK_EQ(dst, check_rank % dims[1] == dims[1] - 1 ? MPI_PROC_NULL : check_rank + 1);
    int keep[2] = {0, 1}, size;
    OK(MPI_Cart_sub(grid, keep, &row));
    OK(MPI_Comm_size(row, &size));
    CHECK_EQ(size, dims[1]);
    OK(MPI_Comm_rank(row, &rank));
    CHECK_EQ(rank, check_rank % dims[1]);
    OK(MPI_Cart_get(row, 1, d, p, coords));
    CHECK(d[0] == dims[1] && p[0] == 0 && coords[0] == rank);
    OK(MPI_Comm_free(&row));
    OK(MPI_Comm_dup(grid, &row));
    OK(MPI_Topo_test(row, &n));
    CHECK_EQ(n, MPI_CART);
    OK(MPI_Comm_free(&row));
    OK(MPI_Comm_free(&grid));
    int one[1] = {1}, open[1] = {0};
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, one, open, 1, &grid));
    CHECK((grid != MPI_COMM_NULL) == (check_rank == 0));
    if (grid != MPI_COMM_NULL) OK(MPI_Comm_free(&grid));
    CHECK_CLASS(MPI_Cartdim_get(MPI_COMM_WORLD, &n), MPI_ERR_TOPOLOGY);
    int large[1] = {check_size + 1};
    CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, large, open, 0, &grid) != MPI_SUCCESS);
    return check_end();
}
