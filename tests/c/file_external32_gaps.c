// run: n=1,2,4 timeout=60
/* Views and buffers with gaps in external32, where MPI_LONG has 4 bytes and not 8 (MPI 5.0, 14.3): displacements that count
 * extents count those in the file, displacements in bytes are those in the file. It was refused. */
#include "file.h"

enum { ROUNDS = 5 };

static MPI_File fh;
static const char *name;

/* The 4-byte number, in the file's order, at position `at` of the file. */
static int number_at(long at) {
    unsigned char raw[4] = {0};
    CHECK_EQ(file_raw(fh, name, at, raw, 4), 4);
    return (int)((unsigned)raw[0] << 24 | raw[1] << 16 | raw[2] << 8 | raw[3]);
}

static void view(long at, MPI_Datatype etype, MPI_Datatype filetype) {
    OK(MPI_File_set_view(fh, at, etype, filetype, "external32", MPI_INFO_NULL));
}

/* Writes `n` longs of this rank through the view, reads them back, in a buffer with gaps, too. */
static void there_and_back(int n, int seed) {
    long out[16], in[16], wide[32];
    MPI_Datatype spread;
    MPI_Status status;
    int i;
    for (i = 0; i < n; i++) out[i] = seed + check_rank * 100 + i, in[i] = -1;
    OK(MPI_File_write_at_all(fh, 0, out, n, MPI_LONG, &status));
    CHECK_EQ(count_of(&status, MPI_LONG), n);
    OK(MPI_File_read_at_all(fh, 0, in, n, MPI_LONG, &status));
    CHECK_EQ(count_of(&status, MPI_LONG), n);
    for (i = 0; i < n; i++) CHECK_EQ(in[i], out[i]);
    OK(MPI_Type_vector(n, 1, 2, MPI_LONG, &spread));
    OK(MPI_Type_commit(&spread));
    for (i = 0; i < 32; i++) wide[i] = -7;
    OK(MPI_File_read_at(fh, 0, wide, 1, spread, &status));
    for (i = 0; i < 2 * n; i++) CHECK_EQ(wide[i], i % 2 ? -7 : out[i / 2]);
    OK(MPI_Type_free(&spread));
}

/* Longs of the ranks in turn: each constructor that counts extents. */
static void in_turns(void) {
    int at = check_rank, one = 1, sizes[2] = {ROUNDS, check_size}, sub[2] = {ROUNDS, 1}, starts[2] = {0, check_rank};
    int places[ROUNDS], ones[ROUNDS], i, kind;
    MPI_Datatype inner, types[5];
    for (i = 0; i < ROUNDS; i++) places[i] = i * check_size + at, ones[i] = one;
    OK(MPI_Type_create_subarray(2, sizes, sub, starts, MPI_ORDER_C, MPI_LONG, &types[0]));
    OK(MPI_Type_indexed(ROUNDS, ones, places, MPI_LONG, &types[1]));
    OK(MPI_Type_create_indexed_block(ROUNDS, 1, places, MPI_LONG, &types[2]));
    OK(MPI_Type_contiguous(1, MPI_LONG, &inner));
    OK(MPI_Type_dup(types[2], &types[3]));
    OK(MPI_Type_indexed_c(ROUNDS, (MPI_Count[]){1, 1, 1, 1, 1},
                          (MPI_Count[]){places[0], places[1], places[2], places[3], places[4]}, inner, &types[4]));
    OK(MPI_Type_free(&inner));
    for (kind = 0; kind < 5; kind++) {
        MPI_Aint extent = -1;
        OK(MPI_Type_commit(&types[kind]));
        view(16, MPI_LONG, types[kind]);
        there_and_back(ROUNDS, 1000 * kind);
        for (i = 0; i < ROUNDS; i++)
            CHECK_EQ(number_at(16 + 4 * (i * check_size + check_rank)), 1000 * kind + check_rank * 100 + i);
        OK(MPI_File_get_type_extent(fh, types[kind], &extent));
        if (kind == 0) CHECK_EQ(extent, 4 * ROUNDS * check_size);
        MPI_Barrier(check_comm);
        OK(MPI_Type_free(&types[kind]));
    }
}

/* Displacements in bytes are those in the file. */
static void in_bytes(void) {
    int lens[2] = {1, 1};
    MPI_Aint at[2] = {0, 6};
    MPI_Datatype kinds[2] = {MPI_LONG, MPI_SHORT}, both, turn;
    struct { long a; short b; } out = {check_rank + 50, 77}, in = {0, 0};
    MPI_Aint in_memory[2] = {0, sizeof(long)};
    MPI_Datatype memory;
    MPI_Aint extent = -1;
    OK(MPI_Type_create_struct(2, lens, at, kinds, &both));
    OK(MPI_Type_create_resized(both, 0, 10 * check_size, &turn));
    OK(MPI_Type_commit(&turn));
    OK(MPI_Type_create_struct(2, lens, in_memory, kinds, &memory));
    OK(MPI_Type_commit(&memory));
    view(10 * check_rank, MPI_BYTE, turn);
    OK(MPI_File_get_type_extent(fh, turn, &extent));
    CHECK_EQ(extent, 10 * check_size);
    OK(MPI_File_get_type_extent(fh, both, &extent));
    CHECK_EQ(extent, 8);
    OK(MPI_File_get_type_extent(fh, MPI_LONG, &extent));
    CHECK_EQ(extent, 4);
    OK(MPI_File_write_all(fh, &out, 1, memory, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all(fh, 0, &in, 1, memory, MPI_STATUS_IGNORE));
    CHECK_EQ(in.a, out.a);
    CHECK_EQ(in.b, 77);
    CHECK_EQ(number_at(10 * check_rank), check_rank + 50);
    OK(MPI_Type_free(&both));
    OK(MPI_Type_free(&turn));
    OK(MPI_Type_free(&memory));
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    fh = file_open(0);
    name = file_name;
    in_turns();
    in_bytes();
    file_close(&fh);
    return check_end();
}
