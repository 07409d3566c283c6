/* HDF5's parallel interface in C: contiguous, chunked and compressed datasets, written
 * independently and together, in blocks, strides and single points; read back by other ranks than
 * those that wrote, together and independently, and at last by rank 0 without MPI. */
#include "verify.h"
#include <hdf5.h>

#define ROWS 48
#define COLUMNS 60

static double value(long row, long column) { return (double)(row * 1000 + column); }

static hid_t transfer(int together)
{
    hid_t how = H5Pcreate(H5P_DATASET_XFER);
    must(H5Pset_dxpl_mpio(how, together ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT) >= 0, "H5Pset_dxpl_mpio");
    return how;
}

static hid_t dataset(hid_t file, const char *name, hsize_t rows, hsize_t columns, hsize_t chunk, int compressed)
{
    hsize_t sizes[2] = {rows, columns}, chunks[2] = {chunk, chunk};
    hid_t space = H5Screate_simple(2, sizes, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    if (chunk)
        H5Pset_chunk(how, 2, chunks);
    if (compressed)
        H5Pset_deflate(how, 4);
    hid_t made = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    must(made >= 0, name);
    H5Pclose(how);
    H5Sclose(space);
    return made;
}

/* Rows start, start + stride, ... of a dataset, all columns from `first` on. */
static void move(hid_t set, const char *name, int writes, int together, hsize_t start, hsize_t stride, hsize_t rows,
                 hsize_t first, hsize_t columns)
{
    hsize_t at[2] = {start, first}, step[2] = {stride, 1}, count[2] = {rows, columns};
    hid_t space = H5Dget_space(set), memory = H5Screate_simple(2, count, NULL), how = transfer(together);
    double *data = malloc(rows * columns * sizeof *data + 1);
    must(H5Sselect_hyperslab(space, H5S_SELECT_SET, at, step, count, NULL) >= 0, "H5Sselect_hyperslab");
    for (hsize_t i = 0; i < rows * columns; i++)
        data[i] = writes ? value(start + i / columns * stride, first + i % columns) : -1;
    if (writes)
        must(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, how, data) >= 0, name);
    else
        must(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, how, data) >= 0, name);
    for (hsize_t i = 0; !writes && i < rows * columns; i++)
        same(data[i], value(start + i / columns * stride, first + i % columns), name, i);
    free(data);
    H5Pclose(how);
    H5Sclose(memory);
    H5Sclose(space);
}

/* Points that lie anywhere, each rank its own. */
static void points(hid_t set, int writes)
{
    hsize_t where[20][2], count = 20;
    double data[20];
    for (int i = 0; i < 20; i++) {
        where[i][0] = (hsize_t)(rank + i * size) % (hsize_t)(ROWS * size);
        where[i][1] = (hsize_t)(i * 7 + 3) % COLUMNS;
        data[i] = writes ? value(where[i][0], where[i][1]) : -1;
    }
    hid_t space = H5Dget_space(set), memory = H5Screate_simple(1, &count, NULL), how = transfer(1);
    must(H5Sselect_elements(space, H5S_SELECT_SET, 20, &where[0][0]) >= 0, "H5Sselect_elements");
    must((writes ? H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, how, data)
                 : H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, how, data)) >= 0,
         "points");
    for (int i = 0; !writes && i < 20; i++)
        same(data[i], value(where[i][0], where[i][1]), "points", i);
    H5Pclose(how);
    H5Sclose(memory);
    H5Sclose(space);
}

static const char *names[] = {"blocks", "rows", "chunks", "compressed", "points"};

static void write_all(hid_t file)
{
    hsize_t all = (hsize_t)ROWS * size, mine = (hsize_t)rank * ROWS;
    hid_t sets[5];
    for (int i = 0; i < 5; i++)
        sets[i] = dataset(file, names[i], all, COLUMNS, i == 2 || i == 3 ? 16 : 0, i == 3);
    move(sets[0], names[0], 1, 0, mine, 1, ROWS, 0, COLUMNS);
    move(sets[1], names[1], 1, 1, rank, size, ROWS, 0, COLUMNS);
    /* halves of columns, so that chunks are shared by ranks */
    move(sets[2], names[2], 1, 1, rank, size, ROWS, 0, COLUMNS / 2);
    move(sets[2], names[2], 1, 1, mine, 1, ROWS, COLUMNS / 2, COLUMNS / 2);
    move(sets[3], names[3], 1, 1, mine, 1, ROWS, 0, COLUMNS);
    points(sets[4], 1);
    must(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0, "H5Fflush");
    for (int i = 0; i < 5; i++)
        H5Dclose(sets[i]);
}

static void read_all(hid_t file, int together)
{
    int other = (rank + 1) % size;
    for (int i = 0; i < 4; i++) {
        hid_t set = H5Dopen2(file, names[i], H5P_DEFAULT);
        must(set >= 0, names[i]);
        move(set, names[i], 0, together, (hsize_t)other * ROWS, 1, ROWS, 0, COLUMNS);
        move(set, names[i], 0, together, other, size, ROWS, 5, 9);
        H5Dclose(set);
    }
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    must(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0, "H5Pset_fapl_mpio");
    H5Pset_coll_metadata_write(access, 1);
    H5Pset_all_coll_metadata_ops(access, 1);
    hid_t file = H5Fcreate("parallel.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    must(file >= 0, "H5Fcreate");
    write_all(file);
    must(H5Fclose(file) >= 0, "H5Fclose");
    file = H5Fopen("parallel.h5", H5F_ACC_RDWR, access);
    must(file >= 0, "H5Fopen");
    read_all(file, 1);
    read_all(file, 0);
    hid_t set = H5Dopen2(file, "points", H5P_DEFAULT);
    points(set, 0);
    H5Dclose(set);
    must(H5Fclose(file) >= 0, "H5Fclose");
    H5Pclose(access);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        file = H5Fopen("parallel.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
        must(file >= 0, "H5Fopen without MPI");
        for (int i = 0; i < 4; i++) {
            double *all = malloc(sizeof *all * ROWS * size * COLUMNS);
            set = H5Dopen2(file, names[i], H5P_DEFAULT);
            must(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0, names[i]);
            for (long at = 0; at < (long)ROWS * size * COLUMNS; at++)
                same(all[at], value(at / COLUMNS, at % COLUMNS), names[i], at);
            H5Dclose(set);
            free(all);
        }
        H5Fclose(file);
    }
    return finish();
}
