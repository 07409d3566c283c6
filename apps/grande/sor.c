/* Java Grande's SOR: 100 iterations of successive over-relaxation on N by N, the points of one colour of a chequered board
 * after those of the other. Ranks have blocks of rows and pass the rows at their edges on. Known: the sum of the inner points. */
#include "grande.h"

#define ITERATIONS 100
#define OMEGA 1.25

static int n, low, high; /* inner rows low to high - 1 are this rank's */
static double *grid;     /* rows low - 1 to high */
static double *row(int i) { return grid + (size_t)(i - low + 1) * n; }

static void pass_edges(void)
{
    int above = rank ? rank - 1 : MPI_PROC_NULL, below = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(row(low), n, MPI_DOUBLE, above, 0, row(high), n, MPI_DOUBLE, below, 0, all, MPI_STATUS_IGNORE);
    MPI_Sendrecv(row(high - 1), n, MPI_DOUBLE, below, 1, row(low - 1), n, MPI_DOUBLE, above, 1, all, MPI_STATUS_IGNORE);
}

static void relax(int i, int colour)
{
    const double over = OMEGA * 0.25, rest = 1 - OMEGA, *up = row(i - 1), *down = row(i + 1);
    double *here = row(i);
    for (int j = 1 + (i + 1 + colour) % 2; j < n - 1; j += 2)
        here[j] = over * (up[j] + down[j] + here[j - 1] + here[j + 1]) + rest * here[j];
}

static int is_right(double total)
{
    static const double known[] = {0.498574406322512, 1.1234778980135105, 1.9954895063582696};
    return fabs(total - known[which]) < 1e-12;
}

int main(int argc, char **argv)
{
    static const int sizes[] = {1000, 1500, 2000};
    begin(&argc, &argv, "sor");
    n = sizes[which], low = 1 + first_of(n - 2, rank), high = 1 + first_of(n - 2, rank + 1);
    grid = memory((size_t)(high - low + 2) * n * sizeof *grid);
    start_random(10101010);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double value = next_double() * 1e-6;
            if (i >= low - 1 && i <= high)
                row(i)[j] = value;
        }
    double start = now_together();
    for (int p = 0; p < 2 * ITERATIONS; p++) {
        for (int i = low; i < high; i++)
            relax(i, p % 2);
        pass_edges();
    }
    double took = slowest_since(start), sum = 0, total;
    for (int i = low; i < high; i++)
        for (int j = 1; j < n - 1; j++)
            sum += row(i)[j];
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, all);
    return finish(took, 6.0 * (n - 2.0) * (n - 2.0) * ITERATIONS, rank != 0 || is_right(total));
}
