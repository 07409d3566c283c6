// run: n=1 timeout=60
// How datatypes were made, what they are called, Fortran's kinds, errors (MPI 5.0, 5.1.13, 7.8,
// 19.1.9).
#include "check.h"

static void envelope(MPI_Datatype type, int ni, int na, int nd, int combiner)
{
    int got[4];
    MPI_Type_get_envelope(type, &got[0], &got[1], &got[2], &got[3]);
    CHECK_EQ(got[0], ni);
    CHECK_EQ(got[1], na);
    CHECK_EQ(got[2], nd);
    CHECK_EQ(got[3], combiner);
}

static void contents(void)
{
    int lens[] = {2, 1}, ints[8], at[] = {7, 3};
    MPI_Aint bytes[] = {0, 16}, addresses[4];
    MPI_Datatype inner, types[2], type, parts[2];
    envelope(MPI_INT, 0, 0, 0, MPI_COMBINER_NAMED);

    MPI_Type_vector(3, 2, 4, MPI_INT, &inner);
    envelope(inner, 3, 0, 1, MPI_COMBINER_VECTOR);
    MPI_Type_get_contents(inner, 3, 0, 1, ints, addresses, parts);
    CHECK(ints[0] == 3 && ints[1] == 2 && ints[2] == 4 && parts[0] == MPI_INT);

    MPI_Type_indexed(2, lens, at, MPI_INT, &type);
    envelope(type, 5, 0, 1, MPI_COMBINER_INDEXED);
    MPI_Type_get_contents(type, 5, 0, 1, ints, addresses, parts);
    CHECK(ints[0] == 2 && ints[1] == 2 && ints[2] == 1 && ints[3] == 7 && ints[4] == 3);
    MPI_Type_free(&type);

    types[0] = inner;
    types[1] = MPI_DOUBLE;
    MPI_Type_create_struct(2, lens, bytes, types, &type);
    MPI_Type_free(&inner);
    envelope(type, 3, 2, 2, MPI_COMBINER_STRUCT);
    MPI_Type_get_contents(type, 3, 2, 2, ints, addresses, parts);
    CHECK(ints[0] == 2 && ints[1] == 2 && ints[2] == 1);
    CHECK(addresses[0] == 0 && addresses[1] == 16 && parts[1] == MPI_DOUBLE);
    /* The old datatype was freed, but its equivalent comes back. */
    envelope(parts[0], 3, 0, 1, MPI_COMBINER_VECTOR);
    MPI_Type_free(&parts[0]);

    MPI_Type_dup(type, &inner);
    envelope(inner, 0, 0, 1, MPI_COMBINER_DUP);
    MPI_Type_free(&inner);
    MPI_Type_create_resized(type, -8, 64, &inner);
    envelope(inner, 0, 2, 1, MPI_COMBINER_RESIZED);
    MPI_Type_free(&inner);
    MPI_Type_free(&type);
}

static void large_contents(void)
{
    MPI_Count n[4], counts[3];
    int combiner;
    MPI_Datatype type, part;
    MPI_Type_vector_c(3, 2, 1LL << 33, MPI_INT, &type);
    MPI_Type_get_envelope_c(type, &n[0], &n[1], &n[2], &n[3], &combiner);
    CHECK(n[0] == 0 && n[1] == 0 && n[2] == 3 && n[3] == 1 && combiner == MPI_COMBINER_VECTOR);
    MPI_Type_get_contents_c(type, 0, 0, 3, 1, NULL, NULL, counts, &part);
    CHECK(counts[0] == 3 && counts[1] == 2 && counts[2] == 1LL << 33 && part == MPI_INT);
    MPI_Type_free(&type);
}

static void names(void)
{
    char name[MPI_MAX_OBJECT_NAME];
    int len;
    MPI_Datatype type;
    MPI_Type_get_name(MPI_LONG_LONG, name, &len); // of names of one handle, the one that MPICH and Open MPI give
    CHECK(strcmp(name, "MPI_LONG_LONG_INT") == 0);
    MPI_Type_get_name(MPI_C_FLOAT_COMPLEX, name, &len);
    CHECK(strcmp(name, "MPI_C_COMPLEX") == 0);
    MPI_Type_get_name(MPI_DOUBLE, name, &len);
    CHECK(!strcmp(name, "MPI_DOUBLE") && len == 10);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_get_name(type, name, &len);
    CHECK(len == 0 && !name[0]);
    MPI_Type_set_name(type, "a pair");
    MPI_Type_get_name(type, name, &len);
    CHECK(!strcmp(name, "a pair") && len == 6);
    MPI_Type_free(&type);
}

static void kinds(void)
{
    MPI_Datatype a, b;
    int size;
    MPI_Type_create_f90_real(15, 300, &a);
    MPI_Type_create_f90_real(15, 300, &b);
    CHECK(a == b);
    MPI_Type_size(a, &size);
    CHECK_EQ(size, 8);
    envelope(a, 2, 0, 0, MPI_COMBINER_F90_REAL);
    MPI_Type_create_f90_integer(9, &a);
    MPI_Type_size(a, &size);
    CHECK_EQ(size, 4);
    MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 16, &a);
    MPI_Type_size(a, &size);
    CHECK_EQ(size, 16);
}

static void errors(void)
{
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int position = 0, value = 0;
    char room[4];
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_FAILS(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_ERR_COUNT);
    CHECK_FAILS(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type), MPI_ERR_TYPE);
    type = MPI_INT;
    CHECK_FAILS(MPI_Type_free(&type), MPI_ERR_TYPE);
    MPI_Type_contiguous(1, MPI_INT, &type);
    CHECK_FAILS(MPI_Pack(&value, 1, type, room, 4, &position, MPI_COMM_WORLD), MPI_ERR_TYPE);
    CHECK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &type) != MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    contents();
    large_contents();
    names();
    kinds();
    errors();
    return check_end();
}
