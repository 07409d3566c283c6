/* heat2d_netcdf: the heat equation on a square plate, cut into tiles, whose ranks write one netCDF file together.

   mpicc -O2 -o heat2d_netcdf heat2d_netcdf.c && mpiexec -n 4 ./heat2d_netcdf heat2d.nc && ncdump -h heat2d.nc

   Every tile is a part of each row of the plate, so that neighbouring bytes of the file come from different ranks. A
   view says where: the file type is the tile's place in the plate, and since file types follow one another, each
   collective write adds the next frame. netCDF's classic format has big-endian numbers of fixed sizes, which is what
   the data representation external32 is. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 256, FRAMES = 5, STEPS = 100 };

static MPI_Comm plate;
static int rank;

/* A tile: its first row and column in the plate, how many there are, and its neighbours. */
struct tile {
    int first[2], count[2];
    int up, down, left, right;
};

static struct tile my_tile(void)
{
    struct tile tile;
    int dims[2] = {0, 0}, periods[2] = {0, 0}, at[2], size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &plate);
    MPI_Comm_set_errhandler(plate, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_rank(plate, &rank);
    MPI_Cart_coords(plate, rank, 2, at);
    MPI_Cart_shift(plate, 0, 1, &tile.up, &tile.down);
    MPI_Cart_shift(plate, 1, 1, &tile.left, &tile.right);
    for (int d = 0; d < 2; d++) {
        tile.first[d] = N * at[d] / dims[d];
        tile.count[d] = N * (at[d] + 1) / dims[d] - tile.first[d];
    }
    return tile;
}

/* Rows and columns 1, ... are the tile's, those around them the neighbours'. */
static void step(const struct tile *tile, double *now, double *next, MPI_Datatype column)
{
    int rows = tile->count[0], columns = tile->count[1], width = columns + 2;
    MPI_Sendrecv(now + width + 1, columns, MPI_DOUBLE, tile->up, 0, now + (rows + 1) * width + 1, columns, MPI_DOUBLE, tile->down, 0,
                 plate, MPI_STATUS_IGNORE);
    MPI_Sendrecv(now + rows * width + 1, columns, MPI_DOUBLE, tile->down, 1, now + 1, columns, MPI_DOUBLE, tile->up, 1, plate,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(now + width + 1, 1, column, tile->left, 2, now + width + columns + 1, 1, column, tile->right, 2, plate,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(now + width + columns, 1, column, tile->right, 3, now + width, 1, column, tile->left, 3, plate, MPI_STATUS_IGNORE);
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++) {
            double *at = now + i * width + j;
            int row = tile->first[0] + i - 1, col = tile->first[1] + j - 1;
            int kept = row == 0 || row == N - 1 || col == 0 || col == N - 1;
            next[i * width + j] = kept ? *at : 0.25 * (at[-width] + at[width] + at[-1] + at[1]);
        }
}

static char header[256];
static size_t length;

static void word(uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        header[length++] = (char)(value >> shift);
}

static void name(const char *text)
{
    size_t n = strlen(text);
    word((uint32_t)n);
    memcpy(header + length, text, n);
    length += (n + 3) / 4 * 4;
}

/* double temperature(time, row, column), in netCDF's classic format. */
static void make_header(void)
{
    static const struct {
        const char *name;
        uint32_t length;
    } dimensions[] = {{"time", FRAMES}, {"row", N}, {"column", N}};
    memcpy(header, "CDF\1", 4);
    length = 4;
    word(0);           /* no records */
    word(10), word(3); /* dimensions */
    for (int d = 0; d < 3; d++)
        name(dimensions[d].name), word(dimensions[d].length);
    word(0), word(0);  /* no attributes */
    word(11), word(1); /* variables */
    name("temperature");
    word(3), word(0), word(1), word(2); /* its dimensions */
    word(0), word(0);                   /* no attributes */
    word(6);                            /* double */
    word(FRAMES * N * N * 8);
    word((uint32_t)length + 4); /* where it begins: here */
}

int main(int argc, char **argv)
{
    int whole[2] = {N, N};
    MPI_Init(&argc, &argv);
    if (argc != 2) {
        fprintf(stderr, "heat2d_netcdf: say which file to write\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    struct tile tile = my_tile();
    int rows = tile.count[0], width = tile.count[1] + 2;
    MPI_Datatype column, place, inner;
    MPI_Type_vector(rows, 1, width, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Type_create_subarray(2, whole, tile.count, tile.first, MPI_ORDER_C, MPI_DOUBLE, &place);
    MPI_Type_commit(&place);
    MPI_Type_create_subarray(2, (int[2]){rows + 2, width}, tile.count, (int[2]){1, 1}, MPI_ORDER_C, MPI_DOUBLE, &inner);
    MPI_Type_commit(&inner);

    double *now = calloc((size_t)(rows + 2) * width, sizeof *now), *next = calloc((size_t)(rows + 2) * width, sizeof *next);
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j < width - 1; j++)
            now[i * width + j] = tile.first[1] + j - 1 == 0 ? 100 : 0;

    MPI_File file;
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL); /* of files that are opened from now on */
    MPI_File_open(plate, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, 0);
    make_header();
    if (rank == 0)
        MPI_File_write_at(file, 0, header, (int)length, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_set_view(file, (MPI_Offset)length, MPI_DOUBLE, place, "external32", MPI_INFO_NULL);
    for (int frame = 0; frame < FRAMES; frame++) {
        MPI_File_write_all(file, now, 1, inner, MPI_STATUS_IGNORE);
        for (int i = 0; i < STEPS; i++) {
            step(&tile, now, next, column);
            double *swapped = now;
            now = next;
            next = swapped;
        }
    }
    MPI_File_close(&file);
    if (rank == 0)
        printf("%s: %d frames of %d x %d temperatures\n", argv[1], FRAMES, N, N);
    MPI_Type_free(&column);
    MPI_Type_free(&place);
    MPI_Type_free(&inner);
    MPI_Comm_free(&plate);
    free(now);
    free(next);
    MPI_Finalize();
    return 0;
}
