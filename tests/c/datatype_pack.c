// run: n=1 timeout=60
// Pack and unpack datatypes; every process's share of a distributed array (MPI 5.0, 5.1.4, 5.2).
#include "check.h"

enum { N = 4096 };
static int source[N], target[N];
static char packed[8 * N];

/* Packs one element of `type` from `source`, whose elements hold their index; returns how many ints there were. */
static int pack(MPI_Datatype type, int *out)
{
    int position = 0, size;
    MPI_Pack_size(1, type, MPI_COMM_WORLD, &size);
    CHECK(size <= (int)sizeof packed);
    MPI_Pack(source, 1, type, packed, sizeof packed, &position, MPI_COMM_WORLD);
    memcpy(out, packed, position);
    return position / (int)sizeof(int);
}

/* Unpacks what `pack` packed: only elements of `type` may change. */
static void round_trip(MPI_Datatype type)
{
    int there[N], position = 0, n = pack(type, there), found = 0;
    memset(target, -1, sizeof target);
    MPI_Unpack(packed, n * (int)sizeof(int), &position, target, 1, type, MPI_COMM_WORLD);
    CHECK_EQ(position, n * sizeof(int));
    for (int i = 0; i < N; i++) {
        CHECK(target[i] == -1 || target[i] == i);
        found += target[i] == i;
    }
    CHECK_EQ(found, n);
}

static void orders(void)
{
    int got[N], sizes[] = {4, 6}, subsizes[] = {2, 3}, starts[] = {1, 2};
    int expected_c[] = {8, 9, 10, 14, 15, 16}, expected_f[] = {9, 10, 13, 14, 17, 18};
    int lens[] = {2, 1}, at[] = {7, 3}, expected_indexed[] = {7, 8, 3};
    MPI_Datatype type;
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type);
    MPI_Type_commit(&type);
    CHECK_EQ(pack(type, got), 6);
    CHECK(!memcmp(got, expected_c, sizeof expected_c));
    round_trip(type);
    MPI_Type_free(&type);

    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_INT, &type);
    MPI_Type_commit(&type);
    CHECK_EQ(pack(type, got), 6);
    CHECK(!memcmp(got, expected_f, sizeof expected_f));
    round_trip(type);
    MPI_Type_free(&type);

    MPI_Type_indexed(2, lens, at, MPI_INT, &type);
    MPI_Type_commit(&type);
    CHECK_EQ(pack(type, got), 3);
    CHECK(!memcmp(got, expected_indexed, sizeof expected_indexed));
    round_trip(type);
    MPI_Type_free(&type);
}

/* A matrix packed by columns through a vector that is resized, then nested. */
static void transpose(void)
{
    MPI_Datatype column, spaced, matrix;
    int got[N];
    MPI_Type_vector(5, 1, 7, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &spaced);
    MPI_Type_contiguous(7, spaced, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Type_free(&column);
    MPI_Type_free(&spaced);
    CHECK_EQ(pack(matrix, got), 35);
    for (int i = 0; i < 35; i++)
        CHECK_EQ(got[i], i % 5 * 7 + i / 5);
    round_trip(matrix);
    MPI_Type_free(&matrix);
}

/* All shares together cover the array once. */
static void shares(int order, const int *distribs, const int *dargs)
{
    int gsizes[] = {7, 10, 5}, psizes[] = {2, 3, 1}, seen[350] = {0};
    for (int rank = 0; rank < 6; rank++) {
        MPI_Datatype type;
        MPI_Aint lb, extent;
        int got[N], n;
        MPI_Type_create_darray(6, rank, 3, gsizes, distribs, dargs, psizes, order, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Type_get_extent(type, &lb, &extent);
        CHECK_EQ(lb, 0);
        CHECK_EQ(extent, 350 * sizeof(int));
        n = pack(type, got);
        for (int i = 0; i < n; i++) {
            CHECK(got[i] >= 0 && got[i] < 350 && (i == 0 || got[i] > got[i - 1]));
            seen[got[i]]++;
        }
        round_trip(type);
        MPI_Type_free(&type);
    }
    for (int i = 0; i < 350; i++)
        CHECK_EQ(seen[i], 1);
}

static void darrays(void)
{
    int orders[] = {MPI_ORDER_C, MPI_ORDER_FORTRAN};
    int distribs[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
    int dargs[] = {MPI_DISTRIBUTE_DFLT_DARG, 2, MPI_DISTRIBUTE_DFLT_DARG};
    int others[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK};
    int other_dargs[] = {MPI_DISTRIBUTE_DFLT_DARG, 4, 5};
    for (int i = 0; i < 2; i++) {
        shares(orders[i], distribs, dargs);
        shares(orders[i], others, other_dargs);
    }
}

static void several(void)
{
    double d[2] = {1.5, -2.5}, e[2] = {0, 0};
    int i = 42, j = 0, position = 0, end;
    MPI_Pack(d, 2, MPI_DOUBLE, packed, 100, &position, MPI_COMM_WORLD);
    MPI_Pack(&i, 1, MPI_INT, packed, 100, &position, MPI_COMM_WORLD);
    end = position;
    position = 0;
    MPI_Unpack(packed, end, &position, e, 2, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Unpack(packed, end, &position, &j, 1, MPI_INT, MPI_COMM_WORLD);
    CHECK_EQ(position, end);
    CHECK(d[0] == e[0] && d[1] == e[1] && i == j);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    for (int i = 0; i < N; i++)
        source[i] = i;
    orders();
    transpose();
    darrays();
    several();
    return check_end();
}
