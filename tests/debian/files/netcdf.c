/* netCDF-4 over parallel HDF5: variables that are written together and independently, with an
 * unlimited dimension, and read back by other ranks. */
#include "verify.h"
#include <netcdf.h>
#include <netcdf_par.h>

#define ROWS 24
#define COLUMNS 36
#define TIMES 3

static void nc(int code, const char *what)
{
    if (code != NC_NOERR)
        fprintf(stderr, "rank %d: %s\n", rank, nc_strerror(code));
    must(code == NC_NOERR, what);
}

static double value(long time, long row, long column) { return (double)(time * 1000000 + row * 1000 + column); }

int main(int argc, char **argv)
{
    int file, dimensions[3], field, flat;
    double data[ROWS * COLUMNS];
    begin(argc, argv);
    nc(nc_create_par("parallel.nc", NC_NETCDF4 | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &file), "nc_create_par");
    nc(nc_def_dim(file, "time", NC_UNLIMITED, &dimensions[0]), "nc_def_dim");
    nc(nc_def_dim(file, "row", (size_t)ROWS * size, &dimensions[1]), "nc_def_dim");
    nc(nc_def_dim(file, "column", COLUMNS, &dimensions[2]), "nc_def_dim");
    nc(nc_def_var(file, "field", NC_DOUBLE, 3, dimensions, &field), "nc_def_var");
    nc(nc_def_var(file, "flat", NC_FLOAT, 2, dimensions + 1, &flat), "nc_def_var");
    nc(nc_enddef(file), "nc_enddef");
    nc(nc_var_par_access(file, field, NC_COLLECTIVE), "nc_var_par_access");
    nc(nc_var_par_access(file, flat, NC_INDEPENDENT), "nc_var_par_access");
    for (size_t time = 0; time < TIMES; time++) {
        size_t start[3] = {time, (size_t)rank * ROWS, 0}, count[3] = {1, ROWS, COLUMNS};
        for (long i = 0; i < ROWS * COLUMNS; i++)
            data[i] = value(time, rank * ROWS + i / COLUMNS, i % COLUMNS);
        nc(nc_put_vara_double(file, field, start, count, data), "nc_put_vara_double");
        if (time == 0)
            nc(nc_put_vara_double(file, flat, start + 1, count + 1, data), "nc_put_vara_double");
    }
    nc(nc_close(file), "nc_close");
    nc(nc_open_par("parallel.nc", NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file), "nc_open_par");
    nc(nc_inq_varid(file, "field", &field), "nc_inq_varid");
    nc(nc_inq_varid(file, "flat", &flat), "nc_inq_varid");
    nc(nc_var_par_access(file, field, NC_COLLECTIVE), "nc_var_par_access");
    for (size_t time = 0; time < TIMES; time++) {
        size_t start[3] = {time, rank, 0}, count[3] = {1, ROWS, COLUMNS};
        ptrdiff_t stride[3] = {1, size, 1};
        nc(nc_get_vars_double(file, field, start, count, stride, data), "nc_get_vars_double");
        for (long i = 0; i < ROWS * COLUMNS; i++)
            same(data[i], value(time, rank + i / COLUMNS * size, i % COLUMNS), "field", i);
    }
    size_t start[2] = {(size_t)((rank + 1) % size) * ROWS, 0}, count[2] = {ROWS, COLUMNS};
    nc(nc_get_vara_double(file, flat, start, count, data), "nc_get_vara_double");
    for (long i = 0; i < ROWS * COLUMNS; i++)
        same(data[i], value(0, (long)start[0] + i / COLUMNS, i % COLUMNS), "flat", i);
    nc(nc_close(file), "nc_close");
    return finish();
}
