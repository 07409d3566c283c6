/* Java Grande's SparseMatmult: 200 times y += A x, with A a sparse matrix of N by N, given as rows, columns and values. Ranks have
 * parts of the values; after each product y is added up everywhere. Known: the sum of y at the rows of the values. */
#include "grande.h"

#define ITERATIONS 200

static int is_right(double total)
{
    static const double known[] = {75.02484945753453, 150.0130719633895, 749.5245870753752};
    return fabs(total - known[which]) < 1e-10;
}

int main(int argc, char **argv)
{
    static const int sizes[] = {50000, 100000, 500000}, values[] = {250000, 500000, 2500000};
    begin(&argc, &argv, "sparsematmult");
    int n = sizes[which], nz = values[which], first = first_of(nz, rank), last = first_of(nz, rank + 1);
    double *x = memory(n * sizeof *x), *y = memory(n * sizeof *y), *sum = memory(n * sizeof *sum), *val = memory(nz * sizeof *val);
    int *row = memory(nz * sizeof *row), *col = memory(nz * sizeof *col);
    start_random(10101010);
    for (int i = 0; i < n; i++)
        x[i] = next_double() * 1e-6, y[i] = sum[i] = 0;
    for (int i = 0; i < nz; i++) {
        row[i] = abs(next_int()) % n;
        col[i] = abs(next_int()) % n;
        val[i] = next_double();
    }
    double start = now_together(), total = 0;
    for (int turn = 0; turn < ITERATIONS; turn++) {
        for (int i = first; i < last; i++)
            y[row[i]] += x[col[i]] * val[i];
        if (size > 1)
            MPI_Allreduce(y, sum, n, MPI_DOUBLE, MPI_SUM, all);
    }
    double took = slowest_since(start);
    for (int i = 0; i < nz; i++)
        total += size > 1 ? sum[row[i]] : y[row[i]];
    return finish(took, 2.0 * nz * ITERATIONS, is_right(total));
}
