// run: n=1 timeout=60
// external32 (MPI 5.0, 5.3 and 14.5.2). MPICH 5.0.2 ends in MPI_Pack_external_size when it meets a struct, so
// those are STRICT.
#include "check.h"

static char packed[32768];

static void plain(void)
{
    unsigned char expected[] = {0, 0, 0, 1, 255, 255, 255, 254};
    int in[] = {1, -2}, out[2] = {0, 0};
    MPI_Aint position = 0;
    MPI_Pack_external("external32", in, 2, MPI_INT, packed, sizeof packed, &position);
    CHECK_EQ(position, 8);
    CHECK(!memcmp(packed, expected, 8));
    position = 0;
    MPI_Unpack_external("external32", packed, 8, &position, out, 2, MPI_INT);
    CHECK(out[0] == 1 && out[1] == -2);
}

#if STRICT
static void external(void)
{
    struct { short s; int i; double d; } in = {-2, 0x01020304, 1.0}, out = {0, 0, 0};
    unsigned char expected[] = {0xff, 0xfe, 1, 2, 3, 4, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0};
    int lens[] = {1, 1, 1};
    MPI_Aint at[3], base, size, position = 0;
    MPI_Datatype types[] = {MPI_SHORT, MPI_INT, MPI_DOUBLE}, type;
    MPI_Get_address(&in, &base);
    MPI_Get_address(&in.s, &at[0]);
    MPI_Get_address(&in.i, &at[1]);
    MPI_Get_address(&in.d, &at[2]);
    for (int i = 0; i < 3; i++)
        at[i] = MPI_Aint_diff(at[i], base);
    MPI_Type_create_struct(3, lens, at, types, &type);
    MPI_Type_commit(&type);
    MPI_Pack_external_size("external32", 1, type, &size);
    CHECK_EQ(size, 14);
    MPI_Pack_external("external32", &in, 1, type, packed, 14, &position);
    CHECK_EQ(position, 14);
    CHECK(!memcmp(packed, expected, 14));
    position = 0;
    MPI_Unpack_external("external32", packed, 14, &position, &out, 1, type);
    CHECK(out.s == in.s && out.i == in.i && out.d == in.d);
    MPI_Type_free(&type);
}

/* Many elements, so that conversion happens in pieces. */
static void long_external(void)
{
    enum { M = 3000 };
    static struct { int i; float f; } in[M], out[M];
    int lens[] = {1, 1};
    MPI_Aint at[] = {0, 4}, position = 0;
    MPI_Datatype types[] = {MPI_INT, MPI_FLOAT}, type;
    MPI_Type_create_struct(2, lens, at, types, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < M; i++) {
        in[i].i = i * 7919;
        in[i].f = i * 0.5f;
    }
    MPI_Pack_external("external32", in, M, type, packed, sizeof packed, &position);
    CHECK_EQ(position, 8 * M);
    position = 0;
    MPI_Unpack_external("external32", packed, 8 * M, &position, out, M, type);
    CHECK(!memcmp(in, out, sizeof in));
    MPI_Type_free(&type);
}

#endif

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    plain();
#if STRICT
    external();
    long_external();
#endif
    return check_end();
}
