/* heat2d: the heat equation on a square plate, cut into strips of rows.

   mpicc -O2 -o heat2d heat2d.c -lm && mpiexec -n 4 ./heat2d heat2d.dat && python3 heat2d_plot.py heat2d.dat heat2d.png

   The left edge and a disc in the middle are kept hot, the other edges cold. Each rank owns a strip of rows and, in every
   step, swaps its outermost rows with its neighbours while it computes the inner ones. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 512, STEPS = 4000, PROGRESS = 40 };

static int rank, size;

/* First row of a rank's strip. */
static int first_row(int r)
{
    return (int)((long)N * r / size);
}

static int kept(int i, int j)
{
    double y = i - N / 2.0, x = j - N / 2.0;
    return j == 0 || j == N - 1 || i == 0 || i == N - 1 || x * x + y * y < N * N / 100.0;
}

static double start_value(int i, int j)
{
    double y = i - N / 2.0, x = j - N / 2.0;
    return j == 0 || x * x + y * y < N * N / 100.0 ? 100.0 : 0.0;
}

/* One row; `i` is its number in the plate. Returns the largest change. */
static double relax_row(int i, const double *above, const double *row, const double *below, double *out)
{
    double change = 0;
    for (int j = 0; j < N; j++) {
        out[j] = kept(i, j) ? row[j] : 0.25 * (above[j] + below[j] + row[j - 1] + row[j + 1]);
        change = fmax(change, fabs(out[j] - row[j]));
    }
    return change;
}

static void write_field(const char *path, const double *mine, int rows)
{
    int *counts = malloc(size * sizeof *counts), *at = malloc(size * sizeof *at);
    double *all = rank == 0 ? malloc(sizeof(double) * N * N) : NULL;
    for (int r = 0; r < size; r++) {
        at[r] = first_row(r) * N;
        counts[r] = first_row(r + 1) * N - at[r];
    }
    MPI_Gatherv(mine, rows * N, MPI_DOUBLE, all, counts, at, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(all, sizeof(double), (size_t)N * N, f) != (size_t)N * N || fclose(f) != 0) {
            perror(path);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    free(all);
    free(at);
    free(counts);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > N) {
        if (rank == 0)
            fprintf(stderr, "heat2d: at most %d ranks\n", N);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }

    int first = first_row(rank), rows = first_row(rank + 1) - first;
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    /* one more row at each end for the neighbours' */
    double *now = calloc((size_t)(rows + 2) * N, sizeof(double));
    double *next = calloc((size_t)(rows + 2) * N, sizeof(double));
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < N; j++)
            now[(i + 1) * N + j] = start_value(first + i, j);

    double start = MPI_Wtime(), change = 0;
    for (int step = 0; step < STEPS; step++) {
        MPI_Request swap[4];
        MPI_Irecv(now, N, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, &swap[0]);
        MPI_Irecv(now + (rows + 1) * N, N, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &swap[1]);
        MPI_Isend(now + N, N, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &swap[2]);
        MPI_Isend(now + rows * N, N, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, &swap[3]);
        double mine = 0;
        for (int i = 2; i < rows; i++)
            mine = fmax(mine, relax_row(first + i - 1, now + (i - 1) * N, now + i * N, now + (i + 1) * N, next + i * N));
        MPI_Waitall(4, swap, MPI_STATUSES_IGNORE);
        mine = fmax(mine, relax_row(first, now, now + N, now + 2 * N, next + N));
        if (rows > 1)
            mine = fmax(mine, relax_row(first + rows - 1, now + (rows - 1) * N, now + rows * N, now + (rows + 1) * N,
                                        next + rows * N));
        double *swapped = now;
        now = next;
        next = swapped;
        if ((step + 1) % (STEPS / PROGRESS) == 0) {
            MPI_Reduce(&mine, &change, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
            if (rank == 0) {
                printf("\rheat2d on %d ranks: %3d %%, largest change %.4f ", size, (step + 1) * 100 / STEPS, change);
                fflush(stdout);
            }
        }
    }
    double seconds = MPI_Wtime() - start;
    if (rank == 0)
        printf("\n%d steps of %d x %d points in %.2f s\n", STEPS, N, N, seconds);
    if (argc > 1)
        write_field(argv[1], now + N, rows);
    free(now);
    free(next);
    MPI_Finalize();
    return 0;
}
