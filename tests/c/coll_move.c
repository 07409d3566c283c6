// run: n=1,2,3,4,7,8 timeout=120
/* Collectives that move data: every root, several sizes, MPI_IN_PLACE, unequal blocks, derived datatypes on one side
 * (MPI 5.0, 6.3 to 6.8). Any number of processes. */
#include "check.h"

static int rank, size;

/* Element i of what rank r contributes. */
static int value(int r, int i) { return r * 100003 + i * 7 + 1; }

static int *ints(long n)
{
    int *p = malloc((n + 1) * sizeof *p);
    for (long i = 0; i <= n; i++)
        p[i] = -1;
    return p;
}

static int wrong(const int *p, int n, int r, int from)
{
    int bad = 0;
    for (int i = 0; i < n; i++)
        bad += p[i] != value(r, from + i);
    return bad;
}

static void put(int *p, int n, int r, int from)
{
    for (int i = 0; i < n; i++)
        p[i] = value(r, from + i);
}

static void barrier(void)
{
    for (int i = 0; i < 20; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_SELF);
}

static void bcast(int n)
{
    int *p = ints(n);
    for (int root = 0; root < size; root++) {
        memset(p, 0, n * sizeof *p);
        if (rank == root)
            put(p, n, root, 0);
        MPI_Bcast(p, n, MPI_INT, root, MPI_COMM_WORLD);
        CHECK_EQ(wrong(p, n, root, 0), 0);
        CHECK_EQ(p[n], -1);
    }
    free(p);
}

/* The root describes its data as one element of a strided datatype, the others as plain integers. */
static void bcast_typed(int n)
{
    MPI_Datatype every_other;
    int *p = ints(2 * n);
    MPI_Type_vector(n, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    for (int root = 0; root < size; root++) {
        if (rank == root) {
            for (int i = 0; i < n; i++)
                p[2 * i] = value(root, i);
            MPI_Bcast(p, 1, every_other, root, MPI_COMM_WORLD);
        } else {
            MPI_Bcast(p, n, MPI_INT, root, MPI_COMM_WORLD);
            CHECK_EQ(wrong(p, n, root, 0), 0);
        }
    }
    MPI_Type_free(&every_other);
    free(p);
}

static void gather_scatter(int n)
{
    int *mine = ints(n), *all = ints((long)n * size);
    for (int root = 0; root < size; root++)
        for (int in_place = 0; in_place < 2; in_place++) {
            int here = in_place && rank == root;
            put(mine, n, rank, 0);
            memset(all, 0, (long)n * size * sizeof *all);
            if (here)
                put(all + (long)n * rank, n, rank, 0);
            MPI_Gather(here ? MPI_IN_PLACE : mine, n, MPI_INT, all, n, MPI_INT, root, MPI_COMM_WORLD);
            for (int r = 0; rank == root && r < size; r++)
                CHECK_EQ(wrong(all + (long)n * r, n, r, 0), 0);
            for (int r = 0; rank == root && r < size; r++)
                put(all + (long)n * r, n, root, r);
            memset(mine, 0, n * sizeof *mine);
            MPI_Scatter(all, n, MPI_INT, here ? MPI_IN_PLACE : mine, n, MPI_INT, root, MPI_COMM_WORLD);
            if (!here)
                CHECK_EQ(wrong(mine, n, root, rank), 0);
            CHECK_EQ(all[(long)n * size], -1);
            CHECK_EQ(mine[n], -1);
        }
    free(mine);
    free(all);
}

static void gatherv_scatterv(void)
{
    int *counts = ints(size), *at = ints(size), total = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = (r * 5) % 7;
        at[r] = total + 2 * r;
        total += counts[r];
    }
    long room = total + 2 * size;
    int *mine = ints(8), *all = ints(room);
    for (int root = 0; root < size; root++) {
        put(mine, counts[rank], rank, 0);
        for (long i = 0; i < room; i++)
            all[i] = -1;
        MPI_Gatherv(mine, counts[rank], MPI_INT, all, counts, at, MPI_INT, root, MPI_COMM_WORLD);
        for (int r = 0; rank == root && r < size; r++) {
            CHECK_EQ(wrong(all + at[r], counts[r], r, 0), 0);
            CHECK_EQ(all[at[r] + counts[r]], -1);
            put(all + at[r], counts[r], root, r);
        }
        memset(mine, 0, 8 * sizeof *mine);
        MPI_Scatterv(all, counts, at, MPI_INT, mine, counts[rank], MPI_INT, root, MPI_COMM_WORLD);
        CHECK_EQ(wrong(mine, counts[rank], root, rank), 0);
        CHECK_EQ(mine[counts[rank]], 0);
    }
    free(mine), free(all), free(counts), free(at);
}

static void allgather(int n)
{
    int *mine = ints(n), *all = ints((long)n * size);
    for (int in_place = 0; in_place < 2; in_place++) {
        memset(all, 0, (long)n * size * sizeof *all);
        put(mine, n, rank, 0);
        if (in_place)
            put(all + (long)n * rank, n, rank, 0);
        MPI_Allgather(in_place ? MPI_IN_PLACE : mine, n, MPI_INT, all, n, MPI_INT, MPI_COMM_WORLD);
        for (int r = 0; r < size; r++)
            CHECK_EQ(wrong(all + (long)n * r, n, r, 0), 0);
        CHECK_EQ(all[(long)n * size], -1);
    }
    free(mine), free(all);
}

static void allgatherv(void)
{
    int *counts = ints(size), *at = ints(size), room = 0, mine[8];
    for (int r = size - 1; r >= 0; r--) {
        counts[r] = (r * 3 + 1) % 4;
        at[r] = room;
        room += counts[r] + 1;
    }
    for (int in_place = 0; in_place < 2; in_place++) {
        int *all = ints(room);
        put(mine, counts[rank], rank, 0);
        if (in_place)
            put(all + at[rank], counts[rank], rank, 0);
        MPI_Allgatherv(in_place ? MPI_IN_PLACE : mine, counts[rank], MPI_INT, all, counts, at, MPI_INT, MPI_COMM_WORLD);
        for (int r = 0; r < size; r++) {
            CHECK_EQ(wrong(all + at[r], counts[r], r, 0), 0);
            CHECK_EQ(all[at[r] + counts[r]], -1);
        }
        free(all);
    }
    free(counts), free(at);
}

static void alltoall(int n)
{
    int *out = ints((long)n * size), *in = ints((long)n * size);
    for (int in_place = 0; in_place < 2; in_place++) {
        for (int r = 0; r < size; r++)
            put((in_place ? in : out) + (long)n * r, n, rank, r * 11);
        MPI_Alltoall(in_place ? MPI_IN_PLACE : out, n, MPI_INT, in, n, MPI_INT, MPI_COMM_WORLD);
        for (int r = 0; r < size; r++)
            CHECK_EQ(wrong(in + (long)n * r, n, r, rank * 11), 0);
        CHECK_EQ(in[(long)n * size], -1);
    }
    free(out), free(in);
}

/* How many integers go from one rank to another. */
static int amount(int from, int to) { return (from + 2 * to) % 5; }

static void alltoallv(void)
{
    int *sc = ints(size), *rc = ints(size), *at = ints(size), *out = ints(6 * size), *in = ints(6 * size);
    for (int r = 0; r < size; r++) {
        sc[r] = amount(rank, r);
        rc[r] = amount(r, rank);
        at[r] = 6 * (size - 1 - r);
        put(out + at[r], sc[r], rank, r);
    }
    MPI_Alltoallv(out, sc, at, MPI_INT, in, rc, at, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) {
        CHECK_EQ(wrong(in + at[r], rc[r], r, rank), 0);
        CHECK_EQ(in[at[r] + rc[r]], -1);
    }
    free(sc), free(rc), free(at), free(out), free(in);
}

/* Rank r gets its part as one element of a datatype of its own. */
static void alltoallw(void)
{
    int *one = ints(size), *so = ints(size), *ro = ints(size), *out = ints(12L * size), *in = ints(12L * size);
    int *rc = ints(size);
    MPI_Datatype *st = malloc(size * sizeof *st), *rt = malloc(size * sizeof *rt);
    for (int r = 0; r < size; r++) {
        one[r] = 1;
        rc[r] = amount(r, rank);
        so[r] = ro[r] = 12 * r * (int)sizeof(int);
        MPI_Type_vector(amount(rank, r), 1, 2, MPI_INT, &st[r]);
        MPI_Type_commit(&st[r]);
        rt[r] = MPI_INT;
        for (int i = 0; i < amount(rank, r); i++)
            out[12 * r + 2 * i] = value(rank, r + i);
    }
    MPI_Alltoallw(out, one, so, st, in, rc, ro, rt, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) {
        CHECK_EQ(wrong(in + 12 * r, rc[r], r, rank), 0);
        CHECK_EQ(in[12 * r + rc[r]], -1);
        MPI_Type_free(&st[r]);
    }
    for (int r = 0; r < size; r++) {
        rt[r] = MPI_INT;
        rc[r] = 3;
        put(in + 12 * r, 3, rank, r * 5);
    }
    MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, in, rc, ro, rt, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        CHECK_EQ(wrong(in + 12 * r, 3, r, rank * 5), 0);
    free(one), free(so), free(ro), free(out), free(in), free(rc), free(st), free(rt);
}

/* A gather whose root receives columns of a matrix. */
static void gather_columns(void)
{
    enum { ROWS = 5 };
    MPI_Datatype column, narrow;
    int mine[ROWS], *matrix = ints((long)ROWS * size);
    MPI_Type_vector(ROWS, 1, size, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &narrow);
    MPI_Type_commit(&narrow);
    put(mine, ROWS, rank, 0);
    for (int root = 0; root < size; root++) {
        memset(matrix, 0, (long)ROWS * size * sizeof *matrix);
        MPI_Gather(mine, ROWS, MPI_INT, matrix, 1, narrow, root, MPI_COMM_WORLD);
        for (int r = 0; rank == root && r < size; r++)
            for (int i = 0; i < ROWS; i++)
                CHECK_EQ(matrix[i * size + r], value(r, i));
    }
    MPI_Allgather(mine, ROWS, MPI_INT, matrix, 1, narrow, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < ROWS; i++)
            CHECK_EQ(matrix[i * size + r], value(r, i));
    MPI_Type_free(&column);
    MPI_Type_free(&narrow);
    free(matrix);
}

int main(int argc, char **argv)
{
    const int sizes[] = {0, 1, 3, 100, 3001, 70000};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    barrier();
    for (int i = 0; i < 6; i++)
        bcast(sizes[i]);
    bcast_typed(17);
    bcast_typed(40000);
    for (int i = 0; i < 5; i++) {
        gather_scatter(sizes[i]);
        allgather(sizes[i]);
        alltoall(sizes[i]);
    }
    allgather(70000);
    gatherv_scatterv();
    allgatherv();
    alltoallv();
    alltoallw();
    gather_columns();
    return check_result();
}
