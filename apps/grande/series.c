/* Java Grande's Series: the first N Fourier coefficients of (x + 1)^x on [0, 2], by the trapezoid rule with 1000 intervals. Each
 * rank has a part of the coefficients; rank 0 gathers them. Known: the first four pairs. */
#include "grande.h"

#define INTERVALS 1000

static double function(double x, double omega, int select)
{
    double f = pow(x + 1, x);
    return select == 0 ? f : select == 1 ? f * cos(omega * x) : f * sin(omega * x);
}

static double trapezoid(double from, double to, double omega, int select)
{
    double x = from, dx = (to - from) / INTERVALS, sum = function(from, omega, select) / 2;
    for (int i = 1; i < INTERVALS - 1; i++) { // the benchmark leaves the last point out, and its results show it
        x += dx;
        sum += function(x, omega, select);
    }
    return (sum + function(to, omega, select) / 2) * dx;
}

static int is_right(const double *a, const double *b)
{
    static const double known[4][2] = {{2.8729524964837996, 0},
                                       {1.1161046676147888, -1.8819691893398025},
                                       {0.34429060398168704, -1.1645642623320958},
                                       {0.15238898702519288, -0.8143461113044298}};
    int right = 1;
    for (int i = 0; i < 4; i++)
        right &= fabs(a[i] - known[i][0]) < 1e-12 && fabs(b[i] - known[i][1]) < 1e-12;
    return right;
}

int main(int argc, char **argv)
{
    static const int sizes[] = {10000, 100000, 1000000};
    begin(&argc, &argv, "series");
    int n = sizes[which], first = first_of(n, rank), count = first_of(n, rank + 1) - first;
    double *a = memory(n * sizeof *a), *b = memory(n * sizeof *b);
    int *counts = memory(size * sizeof *counts), *places = memory(size * sizeof *places);
    for (int r = 0; r < size; r++)
        places[r] = first_of(n, r), counts[r] = first_of(n, r + 1) - places[r];
    double start = now_together(), omega = 3.1415926535897932;
    for (int i = first; i < first + count; i++) {
        a[i] = i ? trapezoid(0, 2, omega * i, 1) : trapezoid(0, 2, 0, 0) / 2;
        b[i] = i ? trapezoid(0, 2, omega * i, 2) : 0;
    }
    MPI_Gatherv(rank ? a + first : MPI_IN_PLACE, count, MPI_DOUBLE, a, counts, places, MPI_DOUBLE, 0, all);
    MPI_Gatherv(rank ? b + first : MPI_IN_PLACE, count, MPI_DOUBLE, b, counts, places, MPI_DOUBLE, 0, all);
    double took = slowest_since(start);
    return finish(took, 2.0 * n * INTERVALS, rank != 0 || is_right(a, b));
}
