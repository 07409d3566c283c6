// run: n=1,2,3 timeout=60
// Messages between different datatypes of one signature, short and long; elements of partial
// receives (MPI 5.0, 3.2.5, 5.1.11). Each process sends to its right neighbour, alone to itself.
#include "check.h"

static int rank, left, right;

/* Exchanges one buffer for another; returns the status of the receive. */
static MPI_Status exchange(const void *out, int n, MPI_Datatype out_type, void *in, int m,
                           MPI_Datatype in_type)
{
    MPI_Status status;
    MPI_Sendrecv(out, n, out_type, right, 7, in, m, in_type, left, 7, MPI_COMM_WORLD, &status);
    return status;
}

/* A matrix goes out by columns, comes in by rows and the other way round. */
static void transpose(int n)
{
    double *a = malloc(sizeof(double) * n * n), *b = malloc(sizeof(double) * n * n);
    MPI_Datatype column, columns;
    MPI_Status status;
    int count, wrong = 0;
    MPI_Type_vector(n, 1, n, MPI_DOUBLE, &column);
    MPI_Type_create_resized(column, 0, sizeof(double), &columns);
    MPI_Type_commit(&columns);
    for (int i = 0; i < n * n; i++)
        a[i] = rank * 1e6 + i;
    status = exchange(a, n, columns, b, n * n, MPI_DOUBLE);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    CHECK_EQ(count, n * n);
    for (int i = 0; i < n * n; i++)
        wrong += b[i] != left * 1e6 + i % n * n + i / n;
    CHECK_EQ(wrong, 0);

    memset(b, 0, sizeof(double) * n * n);
    status = exchange(a, n * n, MPI_DOUBLE, b, n, columns);
    MPI_Get_count(&status, columns, &count);
    CHECK_EQ(count, n);
    for (int i = 0; i < n * n; i++)
        wrong += b[i] != left * 1e6 + i % n * n + i / n;
    CHECK_EQ(wrong, 0);

    memset(b, 0, sizeof(double) * n * n);
    exchange(a, n, columns, b, n, columns);
    for (int i = 0; i < n * n; i++)
        wrong += b[i] != left * 1e6 + i;
    CHECK_EQ(wrong, 0);
    MPI_Type_free(&column);
    MPI_Type_free(&columns);
    free(a);
    free(b);
}

/* Records with a hole; the hole must stay as it is. */
static void records(int n)
{
    struct record { int i; double d; char c[3]; } *a, *b;
    int lens[] = {1, 1, 3}, count, wrong = 0;
    MPI_Aint at[] = {0, 8, 16};
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR}, type;
    MPI_Status status;
    a = calloc(n, sizeof *a);
    b = malloc(n * sizeof *b);
    memset(b, 0x77, n * sizeof *b);
    MPI_Type_create_struct(3, lens, at, types, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < n; i++) {
        a[i].i = i + rank;
        a[i].d = i * 0.5;
        memcpy(a[i].c, "abc", 3);
    }
    status = exchange(a, n, type, b, n, type);
    MPI_Get_elements(&status, type, &count);
    CHECK_EQ(count, 5 * n);
    for (int i = 0; i < n; i++) {
        wrong += b[i].i != i + left || b[i].d != i * 0.5 || memcmp(b[i].c, "abc", 3);
        wrong += ((char *)&b[i])[4] != 0x77 || ((char *)&b[i])[23] != 0x77;
    }
    CHECK_EQ(wrong, 0);
    MPI_Type_free(&type);
    free(a);
    free(b);
}

/* Three ints arrive where pairs are expected. */
static void partial(void)
{
    int three[3] = {1, 2, 3}, room[8] = {0}, count;
    MPI_Datatype pair;
    MPI_Status status;
    MPI_Count long_count;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    status = exchange(three, 3, MPI_INT, room, 4, pair);
    MPI_Get_count(&status, pair, &count);
    CHECK_EQ(count, MPI_UNDEFINED);
    MPI_Get_elements(&status, pair, &count);
    CHECK_EQ(count, 3);
    MPI_Get_elements_x(&status, pair, &long_count);
    CHECK_EQ(long_count, 3);
    CHECK(room[2] == 3 && room[3] == 0);
    MPI_Status_set_elements(&status, pair, 5);
    MPI_Get_elements(&status, pair, &count);
    CHECK_EQ(count, 5);
    MPI_Type_free(&pair);
}

/* Absolute addresses with MPI_BOTTOM; a datatype freed while it is in use. */
static void absolute(void)
{
    int x = rank, a = -1, lens[] = {1, 1};
    double y = rank + 0.5, b = 0;
    MPI_Aint at[2];
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE}, out, in;
    MPI_Request request;
    MPI_Get_address(&x, &at[0]);
    MPI_Get_address(&y, &at[1]);
    MPI_Type_create_struct(2, lens, at, types, &out);
    MPI_Type_commit(&out);
    MPI_Get_address(&a, &at[0]);
    MPI_Get_address(&b, &at[1]);
    MPI_Type_create_struct(2, lens, at, types, &in);
    MPI_Type_commit(&in);
    MPI_Irecv(MPI_BOTTOM, 1, in, left, 9, MPI_COMM_WORLD, &request);
    MPI_Type_free(&in);
    MPI_Send(MPI_BOTTOM, 1, out, right, 9, MPI_COMM_WORLD);
    MPI_Type_free(&out);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(a == left && b == left + 0.5);
}

/* Packed data travels as MPI_PACKED and is received as what it was. */
static void packed(void)
{
    char room[64];
    int x = rank + 3, got[2] = {0, 0}, position = 0;
    MPI_Pack(&x, 1, MPI_INT, room, sizeof room, &position, MPI_COMM_WORLD);
    MPI_Pack(&rank, 1, MPI_INT, room, sizeof room, &position, MPI_COMM_WORLD);
    exchange(room, position, MPI_PACKED, got, 2, MPI_INT);
    CHECK(got[0] == left + 3 && got[1] == left);
}

int main(int argc, char **argv)
{
    int size;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    transpose(3);
    transpose(40);
    transpose(700);
    records(4);
    records(5000);
    records(200000);
    partial();
    absolute();
    packed();
    return check_end();
}
