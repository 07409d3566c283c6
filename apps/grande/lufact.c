/* Java Grande's LUFact: the Linpack benchmark's factorization and solution of a system of N equations, by columns. Ranks have
 * columns in turn; the owner of a column finds its pivot and broadcasts it. Known: a bound of the normalized residual. */
#include "grande.h"

static int n;
static double **columns; /* this rank's, NULL elsewhere */

/* The matrix of the benchmark, and the right-hand side that has ones as its solution. */
static void generate(double *b, int mine_only)
{
    int init = 1325;
    memset(b, 0, n * sizeof *b);
    for (int j = 0; j < n; j++) {
        double *to = !mine_only || j % size == rank ? columns[j] : NULL;
        for (int i = 0; i < n; i++) {
            init = 3125 * init % 65536;
            double value = (init - 32768.0) / 16384.0;
            if (to)
                to[i] = value;
            b[i] += value;
        }
    }
}

static int largest(const double *c, int from)
{
    int at = from;
    for (int i = from + 1; i < n; i++)
        if (fabs(c[i]) > fabs(c[at]))
            at = i;
    return at;
}

static void factor(int *pivots, double *work)
{
    for (int k = 0; k < n - 1; k++) {
        int owner = k % size, l;
        double *c = owner == rank ? columns[k] : work;
        if (owner == rank) {
            l = largest(c, k);
            double t = c[l];
            c[l] = c[k], c[k] = t;
            for (int i = k + 1; i < n; i++)
                c[i] *= -1 / t;
            c[n] = l;
        }
        MPI_Bcast(c + k, n + 1 - k, MPI_DOUBLE, owner, all);
        l = pivots[k] = (int)c[n];
        for (int j = k + 1 + (rank + size - (k + 1) % size) % size; j < n; j += size) {
            double *d = columns[j], t = d[l];
            d[l] = d[k], d[k] = t;
            for (int i = k + 1; i < n; i++)
                d[i] += t * c[i];
        }
    }
}

/* All columns come to rank 0, which solves. */
static void solve(double *b, const int *pivots, double *work)
{
    for (int k = 0; k < n; k++) {
        double *c = columns[k];
        if (k % size && rank == 0)
            MPI_Recv(c = columns[k] = memory((n + 1) * sizeof *c), n, MPI_DOUBLE, k % size, k, all, MPI_STATUS_IGNORE);
        else if (k % size == rank && rank)
            MPI_Send(c, n, MPI_DOUBLE, 0, k, all);
    }
    (void)work;
    for (int k = 0; rank == 0 && k < n - 1; k++) {
        int l = pivots[k];
        double t = b[l];
        b[l] = b[k], b[k] = t;
        for (int i = k + 1; i < n; i++)
            b[i] += t * columns[k][i];
    }
    for (int k = n - 1; rank == 0 && k >= 0; k--) {
        b[k] /= columns[k][k];
        for (int i = 0; i < k; i++)
            b[i] -= b[k] * columns[k][i];
    }
}

/* The residual, normalized as Linpack does, below the bound of the size. */
static int is_right(const double *x)
{
    static const double bound[] = {6, 12, 20};
    double *b = memory(n * sizeof *b), residual = 0, norm_x = 0, norm_a = 0;
    generate(b, 0);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            b[i] -= columns[j][i] * x[j];
            norm_a = fmax(norm_a, fabs(columns[j][i]));
        }
    for (int i = 0; i < n; i++)
        residual = fmax(residual, fabs(b[i])), norm_x = fmax(norm_x, fabs(x[i]));
    return residual / (n * norm_a * norm_x * 0x1p-52) <= bound[which];
}

int main(int argc, char **argv)
{
    static const int sizes[] = {500, 1000, 2000};
    begin(&argc, &argv, "lufact");
    n = sizes[which];
    columns = memory(n * sizeof *columns);
    double *b = memory(n * sizeof *b), *work = memory((n + 1) * sizeof *work);
    int *pivots = memory(n * sizeof *pivots);
    for (int j = 0; j < n; j++)
        columns[j] = j % size == rank ? memory((n + 1) * sizeof **columns) : NULL;
    generate(b, 1);
    double start = now_together();
    factor(pivots, work);
    solve(b, pivots, work);
    double took = slowest_since(start);
    return finish(took, 2.0 * n * n * n / 3 + 2.0 * n * n, rank != 0 || is_right(b));
}
