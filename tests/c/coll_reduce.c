// run: n=1,2,3,4,7,8 timeout=120
/* Reductions: predefined and user-defined operations, in the order of ranks where they do not commute, every root,
 * MPI_IN_PLACE, scans (MPI 5.0, 6.9 to 6.11). Any number of processes. */
#include "check.h"
#include <complex.h>

static int rank, size;

static void sums(int n)
{
    long long *in = malloc((n + 1) * sizeof *in), *out = malloc((n + 1) * sizeof *out);
    long long ranks = (long long)size * (size - 1) / 2;
    for (int root = 0; root < size; root++)
        for (int in_place = 0; in_place < 2; in_place++) {
            int here = in_place && rank == root, bad = 0;
            for (int i = 0; i < n; i++) {
                in[i] = rank + (long long)i * 3;
                out[i] = here ? in[i] : -1;
            }
            out[n] = -7;
            MPI_Reduce(here ? MPI_IN_PLACE : in, out, n, MPI_LONG_LONG, MPI_SUM, root, MPI_COMM_WORLD);
            for (int i = 0; rank == root && i < n; i++)
                bad += out[i] != ranks + (long long)size * i * 3;
            CHECK_EQ(bad, 0);
            CHECK_EQ(out[n], -7);
        }
    for (int in_place = 0; in_place < 2; in_place++) {
        int bad = 0;
        for (int i = 0; i < n; i++) {
            in[i] = rank + (long long)i * 3;
            out[i] = in_place ? in[i] : -1;
        }
        MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, n, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++)
            bad += out[i] != ranks + (long long)size * i * 3;
        CHECK_EQ(bad, 0);
        CHECK_EQ(out[n], -7);
    }
    free(in), free(out);
}

static void extremes(void)
{
    struct { double value; int at; } in[2] = {{rank % 3, rank}, {-(rank % 4), rank}}, out[2];
    struct { long double value; int at; } lin = {rank == size / 2 ? 5.5L : 1.0L, rank}, lout;
    MPI_Allreduce(in, out, 2, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    CHECK_EQ(out[0].value, size > 2 ? 2 : size - 1);
    CHECK_EQ(out[0].at, size > 2 ? 2 : size - 1);
    CHECK_EQ(out[1].at, 0);
    MPI_Allreduce(in, out, 2, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
    CHECK_EQ(out[0].at, 0);
    CHECK_EQ(out[1].at, size > 3 ? 3 : size - 1);
    MPI_Allreduce(&lin, &lout, 1, MPI_LONG_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    CHECK(lout.value == 5.5L);
    CHECK_EQ(lout.at, size / 2);
    long double x = 1.0L + rank, y, z = 0;
    MPI_Allreduce(&x, &y, 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        z += 1.0L + r;
    CHECK(y == z);
    double complex c = I, product, expected = 1;
    MPI_Allreduce(&c, &product, 1, MPI_C_DOUBLE_COMPLEX, MPI_PROD, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        expected *= I;
    CHECK(product == expected);
    unsigned char bits = 1 << (rank % 8), all;
    MPI_Allreduce(&bits, &all, 1, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    CHECK_EQ(all, size >= 8 ? 255 : (1 << size) - 1);
    _Bool yes = rank != 0, both, either;
    MPI_Allreduce(&yes, &both, 1, MPI_C_BOOL, MPI_LAND, MPI_COMM_WORLD);
    MPI_Allreduce(&yes, &either, 1, MPI_C_BOOL, MPI_LOR, MPI_COMM_WORLD);
    CHECK_EQ(both, 0);
    CHECK_EQ(either, size > 1);
}

/* x -> a x + b: composing such maps does not commute. The function calls MPI, which it may. */
typedef struct { unsigned a, b; } Map;

static void compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
    Map *f = in, *g = inout;
    int bytes = 0;
    MPI_Type_size(*type, &bytes);
    CHECK_EQ(bytes, 2 * sizeof(unsigned));
    for (int i = 0; i < *n; i++) {
        Map h = {f[i].a * g[i].a, f[i].b * g[i].a + g[i].b};
        g[i] = h;
    }
}

static Map map_of(int r, int i) { return (Map){2 * r + 3, r * 7 + i}; }

static Map fold(int from, int to, int i)
{
    Map all = map_of(from, i);
    for (int r = from + 1; r < to; r++) {
        Map g = map_of(r, i);
        all = (Map){all.a * g.a, all.b * g.a + g.b};
    }
    return all;
}

static int astray(const Map *p, int n, int from, int to, int first)
{
    int bad = 0;
    for (int i = 0; i < n; i++) {
        Map want = fold(from, to, first + i);
        bad += p[i].a != want.a || p[i].b != want.b;
    }
    return bad;
}

static void in_order(MPI_Op op, MPI_Datatype type, int n)
{
    Map *in = malloc(n * size * sizeof *in), *out = malloc(n * size * sizeof *out);
    for (int i = 0; i < n; i++)
        in[i] = map_of(rank, i);
    for (int root = 0; root < size; root++) {
        memset(out, 0, n * sizeof *out);
        MPI_Reduce(in, out, n, type, op, root, MPI_COMM_WORLD);
        if (rank == root)
            CHECK_EQ(astray(out, n, 0, size, 0), 0);
        memcpy(out, in, n * sizeof *out);
        MPI_Reduce(rank == root ? MPI_IN_PLACE : in, out, n, type, op, root, MPI_COMM_WORLD);
        if (rank == root)
            CHECK_EQ(astray(out, n, 0, size, 0), 0);
    }
    MPI_Allreduce(in, out, n, type, op, MPI_COMM_WORLD);
    CHECK_EQ(astray(out, n, 0, size, 0), 0);
    memcpy(out, in, n * sizeof *out);
    MPI_Allreduce(MPI_IN_PLACE, out, n, type, op, MPI_COMM_WORLD);
    CHECK_EQ(astray(out, n, 0, size, 0), 0);
    MPI_Scan(in, out, n, type, op, MPI_COMM_WORLD);
    CHECK_EQ(astray(out, n, 0, rank + 1, 0), 0);
    memcpy(out, in, n * sizeof *out);
    MPI_Scan(MPI_IN_PLACE, out, n, type, op, MPI_COMM_WORLD);
    CHECK_EQ(astray(out, n, 0, rank + 1, 0), 0);
    MPI_Exscan(in, out, n, type, op, MPI_COMM_WORLD);
    if (rank > 0)
        CHECK_EQ(astray(out, n, 0, rank, 0), 0);
    memcpy(out, in, n * sizeof *out);
    MPI_Exscan(MPI_IN_PLACE, out, n, type, op, MPI_COMM_WORLD);
    if (rank > 0)
        CHECK_EQ(astray(out, n, 0, rank, 0), 0);
    for (int i = 0; i < n * size; i++)
        in[i] = map_of(rank, i);
    memset(out, 0, n * size * sizeof *out);
    MPI_Reduce_scatter_block(in, out, n, type, op, MPI_COMM_WORLD);
    CHECK_EQ(astray(out, n, 0, size, n * rank), 0);
    memcpy(out, in, n * size * sizeof *out);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, out, n, type, op, MPI_COMM_WORLD);
    CHECK_EQ(astray(out, n, 0, size, n * rank), 0);
    free(in), free(out);
}

static void user_operations(void)
{
    /* The second member comes first in a message. */
    const int lens[] = {1, 1}, at[] = {1, 0};
    MPI_Datatype type;
    MPI_Op op;
    int commutes = -1;
    MPI_Type_indexed(2, lens, at, MPI_UNSIGNED, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(compose, 0, &op);
    MPI_Op_commutative(op, &commutes);
    CHECK_EQ(commutes, 0);
    in_order(op, type, 1);
    in_order(op, type, 37);
    in_order(op, type, 3000);
    Map a[2] = {map_of(1, 0), map_of(1, 1)}, b[2] = {map_of(2, 0), map_of(2, 1)};
    MPI_Reduce_local(a, b, 2, type, op);
    CHECK_EQ(astray(b, 2, 1, 3, 0), 0);
    MPI_Op_free(&op);
    CHECK(op == MPI_OP_NULL);
    MPI_Type_free(&type);
}

static void reduce_scatter(void)
{
    int *counts = malloc(size * sizeof *counts), total = 0, mine = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = (r * 3 + 2) % 5 * 50;
        mine += r < rank ? counts[r] : 0;
        total += counts[r];
    }
    double *in = malloc((total + 1) * sizeof *in), *out = malloc((total + 1) * sizeof *out);
    for (int in_place = 0; in_place < 2; in_place++) {
        for (int i = 0; i < total; i++)
            in[i] = out[i] = rank + i;
        MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : in, out, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < counts[rank]; i++)
            CHECK_EQ(out[i], size * (size - 1) / 2 + size * (mine + i));
    }
    free(in), free(out), free(counts);
}

int main(int argc, char **argv)
{
    const int sizes[] = {0, 1, 2, 5, 129, 2000, 50001};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 7; i++)
        sums(sizes[i]);
    extremes();
    user_operations();
    reduce_scatter();
    return check_result();
}
