// run: n=1 timeout=60
// Sizes, extents and true extents of predefined and derived datatypes (MPI 5.0, 5.1).
#include "check.h"
#include <stddef.h>

struct bounds {
    int size;
    MPI_Aint lb, extent, true_lb, true_extent;
};

static struct bounds of(MPI_Datatype type)
{
    struct bounds b;
    MPI_Type_size(type, &b.size);
    MPI_Type_get_extent(type, &b.lb, &b.extent);
    MPI_Type_get_true_extent(type, &b.true_lb, &b.true_extent);
    return b;
}

#define CHECK_BOUNDS(type, size_, lb_, extent_, true_lb_, true_extent_)        \
    do {                                                                       \
        struct bounds b = of(type);                                            \
        CHECK_EQ(b.size, size_);                                               \
        CHECK_EQ(b.lb, lb_);                                                   \
        CHECK_EQ(b.extent, extent_);                                           \
        CHECK_EQ(b.true_lb, true_lb_);                                         \
        CHECK_EQ(b.true_extent, true_extent_);                                 \
    } while (0)

static void predefined(void)
{
    struct { double d; int i; } double_int;
    struct { short s; int i; } short_int;
    struct { long double d; int i; } long_double_int;
    CHECK_BOUNDS(MPI_CHAR, 1, 0, 1, 0, 1);
    CHECK_BOUNDS(MPI_INT, sizeof(int), 0, sizeof(int), 0, sizeof(int));
    CHECK_BOUNDS(MPI_LONG, sizeof(long), 0, sizeof(long), 0, sizeof(long));
    CHECK_BOUNDS(MPI_WCHAR, 4, 0, 4, 0, 4);
    CHECK_BOUNDS(MPI_C_BOOL, 1, 0, 1, 0, 1);
    CHECK_BOUNDS(MPI_C_DOUBLE_COMPLEX, 16, 0, 16, 0, 16);
    CHECK_BOUNDS(MPI_AINT, sizeof(MPI_Aint), 0, sizeof(MPI_Aint), 0, sizeof(MPI_Aint));
    CHECK_BOUNDS(MPI_2INT, 8, 0, 8, 0, 8);
    CHECK_BOUNDS(MPI_DOUBLE_INT, 12, 0, sizeof double_int, 0, 12);
    CHECK_BOUNDS(MPI_SHORT_INT, 6, 0, sizeof short_int, 0, 8);
    CHECK_BOUNDS(MPI_LONG_DOUBLE_INT, sizeof(long double) + 4, 0, sizeof long_double_int, 0,
                 sizeof(long double) + 4);
}

static void strided(void)
{
    MPI_Datatype type, again;
    MPI_Type_contiguous(5, MPI_INT, &type);
    CHECK_BOUNDS(type, 20, 0, 20, 0, 20);
    MPI_Type_free(&type);
    CHECK(type == MPI_DATATYPE_NULL);

    MPI_Type_vector(3, 2, 4, MPI_INT, &type);
    CHECK_BOUNDS(type, 24, 0, 40, 0, 40);
    MPI_Type_contiguous(2, type, &again);
    CHECK_BOUNDS(again, 48, 0, 80, 0, 80);
    MPI_Type_free(&again);
    MPI_Type_free(&type);

    MPI_Type_vector(3, 1, -2, MPI_INT, &type);
    CHECK_BOUNDS(type, 12, -16, 20, -16, 20);
    MPI_Type_free(&type);

    MPI_Type_create_hvector(2, 2, 12, MPI_INT, &type);
    CHECK_BOUNDS(type, 16, 0, 20, 0, 20);
    MPI_Type_free(&type);

    MPI_Type_contiguous(0, MPI_INT, &type);
    CHECK_BOUNDS(type, 0, 0, 0, 0, 0);
    MPI_Type_free(&type);
}

static void indexed(void)
{
    int lens[] = {2, 0, 1}, at[] = {4, 100, -1};
    MPI_Aint bytes[] = {8, 1000, 40};
    MPI_Datatype type;
    MPI_Type_indexed(3, lens, at, MPI_INT, &type);
    CHECK_BOUNDS(type, 12, -4, 28, -4, 28);
    MPI_Type_free(&type);
    MPI_Type_create_hindexed(3, lens, bytes, MPI_INT, &type);
    CHECK_BOUNDS(type, 12, 8, 36, 8, 36);
    MPI_Type_free(&type);
    MPI_Type_create_indexed_block(3, 2, at, MPI_DOUBLE, &type);
    CHECK_BOUNDS(type, 48, -8, 824, -8, 824);
    MPI_Type_free(&type);
    MPI_Type_create_hindexed_block(2, 1, bytes, MPI_DOUBLE, &type);
    CHECK_BOUNDS(type, 16, 8, 1000, 8, 1000);
    MPI_Type_free(&type);
}

static void structs(void)
{
    struct record { double d; char c; } example;
    int lens[] = {1, 1};
    MPI_Aint at[] = {0, 8};
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_CHAR}, type, wide, outer;
    MPI_Type_create_struct(2, lens, at, types, &type);
    CHECK_BOUNDS(type, 9, 0, sizeof example, 0, 9);

    /* Bounds set by hand hide those of the data. */
    MPI_Type_create_resized(type, -4, 100, &wide);
    CHECK_BOUNDS(wide, 9, -4, 100, 0, 9);
#if STRICT
    /* They hide them also in what is built from it. MPICH 5.0.2 counts the second member. */
    types[0] = wide;
    types[1] = MPI_INT;
    at[1] = 200;
    MPI_Type_create_struct(2, lens, at, types, &outer);
    CHECK_BOUNDS(outer, 13, -4, 100, 0, 204);
    MPI_Type_free(&outer);
#endif
    MPI_Type_create_resized(wide, 0, 16, &outer);
    CHECK_BOUNDS(outer, 9, 0, 16, 0, 9);
    MPI_Type_free(&outer);
    MPI_Type_contiguous(3, wide, &outer);
    CHECK_BOUNDS(outer, 27, -4, 300, 0, 209);
    MPI_Type_free(&outer);
    MPI_Type_free(&wide);
    MPI_Type_free(&type);
}

static void arrays(void)
{
    int sizes[] = {4, 6}, subsizes[] = {2, 3}, starts[] = {1, 2};
    MPI_Datatype type;
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type);
    CHECK_BOUNDS(type, 24, 0, 96, 32, 36);
    MPI_Type_free(&type);
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_INT, &type);
    CHECK_BOUNDS(type, 24, 0, 96, 36, 40);
    MPI_Type_free(&type);
}

static void large(void)
{
    MPI_Datatype type;
    MPI_Count size, lb, extent;
    int small;
    MPI_Type_vector(1 << 30, 1, 2, MPI_DOUBLE, &type);
    MPI_Type_size_c(type, &size);
    CHECK_EQ(size, 1LL << 33);
    MPI_Type_get_extent_c(type, &lb, &extent);
    CHECK_EQ(extent, (1LL << 34) - 8);
    MPI_Type_size(type, &small);
    CHECK_EQ(small, MPI_UNDEFINED);
    MPI_Type_free(&type);
    MPI_Type_contiguous_c(1LL << 40, MPI_CHAR, &type);
    MPI_Type_size_c(type, &size);
    CHECK_EQ(size, 1LL << 40);
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    predefined();
    strided();
    indexed();
    structs();
    arrays();
    large();
    return check_end();
}
