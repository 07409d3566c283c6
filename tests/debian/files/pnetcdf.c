/* PnetCDF: fixed and record variables, whole parts, strides and single values, nonblocking requests
 * that are waited for together, independent access, a second definition mode that moves data. */
#include "verify.h"
#include <pnetcdf.h>

#define ROWS 30
#define COLUMNS 40

static void nc(int code, const char *what)
{
    if (code != NC_NOERR)
        fprintf(stderr, "rank %d: %s\n", rank, ncmpi_strerror(code));
    must(code == NC_NOERR, what);
}

static double value(long row, long column) { return (double)(row * 1000 + column); }

/* Rows start, start + stride, ... as doubles. */
static double *rows_of(long start, long stride)
{
    double *data = malloc(sizeof *data * ROWS * COLUMNS);
    for (long i = 0; i < ROWS * COLUMNS; i++)
        data[i] = value(start + i / COLUMNS * stride, i % COLUMNS);
    return data;
}

static void check(const double *data, long start, long stride, const char *what)
{
    for (long i = 0; i < ROWS * COLUMNS; i++)
        same(data[i], value(start + i / COLUMNS * stride, i % COLUMNS), what, i);
}

static MPI_Offset count[2] = {ROWS, COLUMNS};

static void write_all(int file, const int *variables)
{
    MPI_Offset mine[2] = {(MPI_Offset)rank * ROWS, 0}, turn[2] = {rank, 0}, stride[2] = {size, 1};
    int requests[2], states[2];
    double *part = rows_of(rank * ROWS, 1), *turns = rows_of(rank, size);
    nc(ncmpi_put_vara_double_all(file, variables[0], mine, count, part), "ncmpi_put_vara_double_all");
    nc(ncmpi_put_vars_double_all(file, variables[1], turn, count, stride, turns), "ncmpi_put_vars_double_all");
    nc(ncmpi_iput_vara_double(file, variables[2], mine, count, part, &requests[0]), "ncmpi_iput_vara_double");
    nc(ncmpi_iput_vars_double(file, variables[3], turn, count, stride, turns, &requests[1]), "ncmpi_iput_vars_double");
    nc(ncmpi_wait_all(file, 2, requests, states), "ncmpi_wait_all");
    nc(states[0], "the first request");
    nc(states[1], "the second request");
    nc(ncmpi_begin_indep_data(file), "ncmpi_begin_indep_data");
    for (MPI_Offset i = 0; i < 10; i++) {
        MPI_Offset at = rank + i * size;
        double one = value(7, at);
        nc(ncmpi_put_var1_double(file, variables[4], &at, &one), "ncmpi_put_var1_double");
    }
    nc(ncmpi_end_indep_data(file), "ncmpi_end_indep_data");
    free(part);
    free(turns);
}

static void read_all(int file)
{
    const char *names[] = {"fixed", "turns", "record", "records"};
    int other = (rank + 1) % size, id;
    MPI_Offset start[2] = {(MPI_Offset)other * ROWS, 0}, turn[2] = {other, 0}, stride[2] = {size, 1};
    double *data = malloc(sizeof *data * ROWS * COLUMNS);
    for (int i = 0; i < 4; i++) {
        nc(ncmpi_inq_varid(file, names[i], &id), names[i]);
        nc(ncmpi_get_vara_double_all(file, id, start, count, data), "ncmpi_get_vara_double_all");
        check(data, other * ROWS, 1, names[i]);
        nc(ncmpi_get_vars_double_all(file, id, turn, count, stride, data), "ncmpi_get_vars_double_all");
        check(data, other, size, names[i]);
    }
    free(data);
    nc(ncmpi_inq_varid(file, "ones", &id), "ones");
    double *ones = malloc(sizeof *ones * 10 * size);
    nc(ncmpi_get_var_double_all(file, id, ones), "ncmpi_get_var_double_all");
    for (int i = 0; i < 10 * size; i++)
        same(ones[i], value(7, i), "ones", i);
    free(ones);
}

int main(int argc, char **argv)
{
    int file, fixed[2], record[2], ones, variables[5], late;
    begin(argc, argv);
    nc(ncmpi_create(MPI_COMM_WORLD, "parallel.nc", NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), "ncmpi_create");
    nc(ncmpi_def_dim(file, "row", (MPI_Offset)ROWS * size, &fixed[0]), "ncmpi_def_dim");
    nc(ncmpi_def_dim(file, "column", COLUMNS, &fixed[1]), "ncmpi_def_dim");
    nc(ncmpi_def_dim(file, "time", NC_UNLIMITED, &record[0]), "ncmpi_def_dim");
    nc(ncmpi_def_dim(file, "one", (MPI_Offset)10 * size, &ones), "ncmpi_def_dim");
    record[1] = fixed[1];
    nc(ncmpi_def_var(file, "fixed", NC_DOUBLE, 2, fixed, &variables[0]), "ncmpi_def_var");
    nc(ncmpi_def_var(file, "turns", NC_FLOAT, 2, fixed, &variables[1]), "ncmpi_def_var");
    nc(ncmpi_def_var(file, "record", NC_DOUBLE, 2, record, &variables[2]), "ncmpi_def_var");
    nc(ncmpi_def_var(file, "records", NC_INT, 2, record, &variables[3]), "ncmpi_def_var");
    nc(ncmpi_def_var(file, "ones", NC_DOUBLE, 1, &ones, &variables[4]), "ncmpi_def_var");
    nc(ncmpi_put_att_text(file, NC_GLOBAL, "title", 4, "test"), "ncmpi_put_att_text");
    nc(ncmpi_enddef(file), "ncmpi_enddef");
    write_all(file, variables);
    /* a larger header moves what was written */
    nc(ncmpi_redef(file), "ncmpi_redef");
    nc(ncmpi_def_var(file, "late", NC_DOUBLE, 2, fixed, &late), "ncmpi_def_var");
    nc(ncmpi_put_att_text(file, NC_GLOBAL, "history", 27, "a header that became larger"), "ncmpi_put_att_text");
    nc(ncmpi_enddef(file), "ncmpi_enddef");
    read_all(file);
    nc(ncmpi_close(file), "ncmpi_close");
    nc(ncmpi_open(MPI_COMM_WORLD, "parallel.nc", NC_NOWRITE, MPI_INFO_NULL, &file), "ncmpi_open");
    read_all(file);
    nc(ncmpi_close(file), "ncmpi_close");
    return finish();
}
