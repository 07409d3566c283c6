// run: n=2 timeout=60
// Derived datatypes in point-to-point messages: gaps stay untouched, sender and receiver may describe the data
// differently, at sizes of every protocol.
#include "check.h"

#define GAP 0x5a5a5a5a

static void vectors(int n) {
    MPI_Datatype column, loose;
    MPI_Status s;
    int i, *a = malloc(sizeof(int) * (n * 4 + 4)), *b = malloc(sizeof(int) * n);
    MPI_Type_vector(n, 1, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Type_create_resized(MPI_INT, 0, 8, &loose);
    MPI_Type_commit(&loose);
    for (i = 0; i < n * 4; i++) a[i] = check_rank == 0 ? i : GAP;
    if (check_rank == 0) {
        OK(MPI_Send(a, 1, column, 1, 1, MPI_COMM_WORLD));
        OK(MPI_Send(a, 1, column, 1, 2, MPI_COMM_WORLD));
        OK(MPI_Send(a, n, loose, 1, 3, MPI_COMM_WORLD));
        OK(MPI_Send(a, n, MPI_INT, 1, 4, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(b, n, MPI_INT, 0, 1, MPI_COMM_WORLD, &s));
        CHECK_EQ(count_of(&s, MPI_INT), n);
        for (i = 0; i < n; i++) if (b[i] != 4 * i) { CHECK_EQ(b[i], 4 * i); break; }
        OK(MPI_Recv(a, 1, column, 0, 2, MPI_COMM_WORLD, &s));
        CHECK_EQ(count_of(&s, column), 1);
        for (i = 0; i < n * 4 - 3; i++)
            if (a[i] != (i % 4 == 0 ? i : GAP)) { CHECK_EQ(a[i], i % 4 == 0 ? i : GAP); break; }
        OK(MPI_Recv(b, n, MPI_INT, 0, 3, MPI_COMM_WORLD, &s));
        for (i = 0; i < n; i++) if (b[i] != 2 * i) { CHECK_EQ(b[i], 2 * i); break; }
        for (i = 0; i < n * 4; i++) a[i] = GAP;
        MPI_Request r;
        OK(MPI_Irecv(a, n, loose, 0, 4, MPI_COMM_WORLD, &r));
        OK(MPI_Wait(&r, &s));
        CHECK_EQ(count_of(&s, loose), n);
        for (i = 0; i < 2 * n; i++)
            if (a[i] != (i % 2 == 0 ? i / 2 : GAP)) { CHECK_EQ(a[i], i % 2 == 0 ? i / 2 : GAP); break; }
    }
    MPI_Type_free(&column);
    MPI_Type_free(&loose);
    free(a);
    free(b);
}

struct record {
    char c;
    double d;
    int i[3];
    short s;
};

static void structs(int n) {
    struct record *r = malloc(n * sizeof *r), probe;
    MPI_Aint at[4], base;
    int len[] = {1, 1, 3, 1}, k;
    MPI_Datatype of[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_SHORT}, raw, type;
    MPI_Get_address(&probe, &base);
    MPI_Get_address(&probe.c, &at[0]);
    MPI_Get_address(&probe.d, &at[1]);
    MPI_Get_address(&probe.i, &at[2]);
    MPI_Get_address(&probe.s, &at[3]);
    for (k = 0; k < 4; k++) at[k] -= base;
    MPI_Type_create_struct(4, len, at, of, &raw);
    MPI_Type_create_resized(raw, 0, sizeof *r, &type);
    MPI_Type_commit(&type);
    memset(r, 0x77, n * sizeof *r);
    if (check_rank == 0) {
        for (k = 0; k < n; k++) {
            r[k].c = (char)k, r[k].d = k * 0.5, r[k].s = (short)(3 * k);
            r[k].i[0] = k, r[k].i[1] = -k, r[k].i[2] = k * k;
        }
        MPI_Request q;
        OK(MPI_Isend(r, n, type, 1, 1, MPI_COMM_WORLD, &q));
        // Freeing the type does not disturb what is under way.
        MPI_Type_free(&type);
        OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
    } else {
        MPI_Status s;
        OK(MPI_Recv(r, n, type, 0, 1, MPI_COMM_WORLD, &s));
        CHECK_EQ(count_of(&s, type), n);
        int elements;
        OK(MPI_Get_elements(&s, type, &elements));
        CHECK_EQ(elements, 6 * n);
        for (k = 0; k < n; k++) {
            int good = r[k].c == (char)k && r[k].d == k * 0.5 && r[k].s == (short)(3 * k) && r[k].i[0] == k &&
                       r[k].i[1] == -k && r[k].i[2] == k * k && ((char *)&r[k])[1] == 0x77;
            if (!good) { CHECK_EQ(k, -1); break; }
        }
        MPI_Type_free(&type);
    }
    MPI_Type_free(&raw);
    free(r);
}

// Every other byte, far beyond what goes at once: on the receiver's side, on the sender's, on both.
static void single_bytes(int n, int scattered_from, int scattered_to) {
    int scattered = check_rank == 0 ? scattered_from : scattered_to, step = scattered ? 2 : 1, k, wrong = 0;
    char *b = malloc(2 * (size_t)n);
    MPI_Datatype type;
    MPI_Type_vector(n, 1, step, MPI_CHAR, &type);
    MPI_Type_commit(&type);
    memset(b, 0x55, 2 * (size_t)n);
    if (check_rank == 0) {
        for (k = 0; k < n; k++) b[step * k] = (char)(k * 7 + k / 251);
        OK(MPI_Send(b, 1, type, 1, 1, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(b, 1, type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (k = 0; k < n; k++) wrong += b[step * k] != (char)(k * 7 + k / 251);
        for (k = 0; scattered && k < n; k++) wrong += b[2 * k + 1] != 0x55;
        CHECK_EQ(wrong, 0);
    }
    MPI_Type_free(&type);
    free(b);
}

// A message shorter than the receive, that ends inside an element.
static void partial(void) {
    MPI_Datatype pair;
    int v[6] = {GAP, GAP, GAP, GAP, GAP, GAP}, count, elements;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    if (check_rank == 0) {
        int w[] = {1, 2, 3};
        OK(MPI_Send(w, 3, MPI_INT, 1, 1, MPI_COMM_WORLD));
    } else {
        MPI_Status s;
        OK(MPI_Recv(v, 3, pair, 0, 1, MPI_COMM_WORLD, &s));
        MPI_Get_count(&s, pair, &count);
        CHECK_EQ(count, MPI_UNDEFINED);
        MPI_Get_elements(&s, pair, &elements);
        CHECK_EQ(elements, 3);
        CHECK(v[2] == 3 && v[3] == GAP);
    }
    MPI_Type_free(&pair);
}

// Absolute addresses.
static void bottom(void) {
    int a = check_rank == 0 ? 11 : 0, b = check_rank == 0 ? 22 : 0, len[] = {1, 1};
    MPI_Aint at[2];
    MPI_Datatype both;
    MPI_Get_address(&a, &at[0]);
    MPI_Get_address(&b, &at[1]);
    MPI_Type_create_hindexed(2, len, at, MPI_INT, &both);
    MPI_Type_commit(&both);
    if (check_rank == 0)
        OK(MPI_Ssend(MPI_BOTTOM, 1, both, 1, 1, MPI_COMM_WORLD));
    else
        OK(MPI_Recv(MPI_BOTTOM, 1, both, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(a == 11 && b == 22);
    MPI_Type_free(&both);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    int n[] = {1, 7, 250, 3000, 20000, 300000}, i;
    for (i = 0; i < 4; i++) single_bytes(1234567, i & 1, i >> 1);
    for (i = 0; i < 6; i++) {
        vectors(n[i]);
        structs(n[i] / 4 + 1);
    }
    partial();
    bottom();
    return check_end();
}
