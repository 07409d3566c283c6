/* The predefined operations and datatypes (MPI 5.0, 6.9.2 and 6.9.4): which operation is defined for which datatype, and what
 * plain C makes of it. The including file says what is done with each datatype, and with an operation that it is not for. */
#ifndef OP_KINDS_H
#define OP_KINDS_H
#include "check.h"
#include <complex.h>
#include <limits.h>
#include <wchar.h>

enum { N = 37 }; /* more than a vector, and a rest */
enum Op { MAX, MIN, SUM, PROD, LAND, BAND, LOR, BOR, LXOR, BXOR, MAXLOC, MINLOC, REPLACE, NO_OP, OPS };
/* Groups of the standard: C integer, Fortran integer, floating point, logical, complex, byte, multi-language, pairs, none. */
enum Group { CINT, FINT, FLOATS, LOGICAL, COMPLEX, BYTE, LANG, PAIR, NONE };

static MPI_Op ops[OPS];
static const char *op_names[OPS] = {"MPI_MAX", "MPI_MIN", "MPI_SUM", "MPI_PROD", "MPI_LAND", "MPI_BAND", "MPI_LOR", "MPI_BOR",
                                    "MPI_LXOR", "MPI_BXOR", "MPI_MAXLOC", "MPI_MINLOC", "MPI_REPLACE", "MPI_NO_OP"};

#define BIT(g) (1 << (g))
static const int allowed[OPS] = {
    [MAX] = BIT(CINT) | BIT(FINT) | BIT(FLOATS) | BIT(LANG),
    [MIN] = BIT(CINT) | BIT(FINT) | BIT(FLOATS) | BIT(LANG),
    [SUM] = BIT(CINT) | BIT(FINT) | BIT(FLOATS) | BIT(COMPLEX) | BIT(LANG),
    [PROD] = BIT(CINT) | BIT(FINT) | BIT(FLOATS) | BIT(COMPLEX) | BIT(LANG),
    [LAND] = BIT(CINT) | BIT(LOGICAL), [LOR] = BIT(CINT) | BIT(LOGICAL), [LXOR] = BIT(CINT) | BIT(LOGICAL),
    [BAND] = BIT(CINT) | BIT(FINT) | BIT(BYTE) | BIT(LANG),
    [BOR] = BIT(CINT) | BIT(FINT) | BIT(BYTE) | BIT(LANG),
    [BXOR] = BIT(CINT) | BIT(FINT) | BIT(BYTE) | BIT(LANG),
    [MAXLOC] = BIT(PAIR), [MINLOC] = BIT(PAIR),
};
/* Libraries may also do these: the same kernels serve all integers of a width. */
static const int extra[OPS] = {
    [LAND] = BIT(FINT) | BIT(LANG), [LOR] = BIT(FINT) | BIT(LANG), [LXOR] = BIT(FINT) | BIT(LANG),
    [BAND] = BIT(LOGICAL), [BOR] = BIT(LOGICAL), [BXOR] = BIT(LOGICAL),
};

typedef struct {
    const char *name;
    enum Group group;
    size_t size;
    void (*make)(void *, int, uint64_t *);             /* element i from a random number */
    void (*combine)(enum Op, const void *, void *, int); /* inout[i] = in[i] op inout[i] */
    int (*equal)(const void *, const void *, int);
} Kind;

#define COMMON(K, T)                                                                                      \
    static int equal_##K(const void *a, const void *b, int i) { return ((T *)a)[i] == ((T *)b)[i]; }
#define BODY(K, T, CASES)                                                                                 \
    static void combine_##K(enum Op op, const void *in, void *inout, int i) {                            \
        T a = ((T *)in)[i], b = ((T *)inout)[i], r = b;                                                   \
        switch (op) { CASES default: break; }                                                             \
        ((T *)inout)[i] = r;                                                                              \
    }
#define ORDER case MAX: r = a > b ? a : b; break; case MIN: r = a < b ? a : b; break;
#define LOGIC case LAND: r = a && b; break; case LOR: r = a || b; break; case LXOR: r = !a != !b; break;
#define BITS case BAND: r = a & b; break; case BOR: r = a | b; break; case BXOR: r = a ^ b; break;
#define SUMS(U) case SUM: r = (U)a + (U)b; break; case PROD: r = (U)a * (U)b; break;

/* Integers: sums and products wrap, in the unsigned type. */
#define INTEGER(K, T, U)                                                                                  \
    static void make_##K(void *p, int i, uint64_t *s) { ((T *)p)[i] = i % 5 ? (T)rnd(s) : 0; }            \
    COMMON(K, T)                                                                                          \
    BODY(K, T, ORDER LOGIC BITS SUMS(U))
/* Small whole numbers: exact in every format. */
#define FLOATING(K, T)                                                                                    \
    static void make_##K(void *p, int i, uint64_t *s) { ((T *)p)[i] = (T)((int)(rnd(s) % 17) - 8); }      \
    COMMON(K, T)                                                                                          \
    BODY(K, T, ORDER SUMS(T))
#define COMPLEXES(K, T)                                                                                   \
    static void make_##K(void *p, int i, uint64_t *s) {                                                   \
        ((T *)p)[i] = (T)((int)(rnd(s) % 9) - 4 + ((int)(rnd(s) % 9) - 4) * I);                           \
    }                                                                                                     \
    COMMON(K, T)                                                                                          \
    BODY(K, T, SUMS(T))
#define TRUTH(K, T)                                                                                       \
    static void make_##K(void *p, int i, uint64_t *s) { ((T *)p)[i] = rnd(s) % 2; }                       \
    COMMON(K, T)                                                                                          \
    BODY(K, T, LOGIC BITS)
/* The greater (smaller) value with its index; of equal values the lower index. */
#define PAIRS(K, V, X)                                                                                    \
    typedef struct { V v; X i; } K;                                                                       \
    static void make_##K(void *p, int i, uint64_t *s) {                                                   \
        ((K *)p)[i].v = (V)((int)(rnd(s) % 4) - 2);                                                       \
        ((K *)p)[i].i = (X)(rnd(s) % 100);                                                                \
    }                                                                                                     \
    static int equal_##K(const void *a, const void *b, int i) {                                           \
        return ((K *)a)[i].v == ((K *)b)[i].v && ((K *)a)[i].i == ((K *)b)[i].i;                          \
    }                                                                                                     \
    static void combine_##K(enum Op op, const void *in, void *inout, int i) {                             \
        K a = ((K *)in)[i], *b = (K *)inout + i;                                                          \
        int wins = op == MAXLOC ? a.v > b->v : a.v < b->v;                                                \
        if (wins || (a.v == b->v && a.i < b->i)) *b = a;                                                  \
    }

INTEGER(i8, int8_t, uint8_t) INTEGER(i16, int16_t, uint32_t) INTEGER(i32, int32_t, uint32_t) INTEGER(i64, int64_t, uint64_t)
INTEGER(u8, uint8_t, uint8_t) INTEGER(u16, uint16_t, uint32_t) INTEGER(u32, uint32_t, uint32_t) INTEGER(u64, uint64_t, uint64_t)
INTEGER(i128, __int128, unsigned __int128)
FLOATING(f16, _Float16) FLOATING(f32, float) FLOATING(f64, double) FLOATING(fl, long double) FLOATING(f128, _Float128)
COMPLEXES(c16, _Complex _Float16) COMPLEXES(c32, float complex) COMPLEXES(c64, double complex)
COMPLEXES(cl, long double complex) COMPLEXES(c128, _Complex _Float128)
TRUTH(b8, _Bool) TRUTH(l8, int8_t) TRUTH(l16, int16_t) TRUTH(l32, int32_t) TRUTH(l64, int64_t) TRUTH(l128, __int128)
PAIRS(float_int, float, int) PAIRS(double_int, double, int) PAIRS(long_int, long, int) PAIRS(two_int, int, int)
PAIRS(short_int, short, int) PAIRS(ld_int, long double, int) PAIRS(two_float, float, float) PAIRS(two_double, double, double)

/* Defined by the including file. */
static void all_ops(const Kind *k, MPI_Datatype type);
static void forbidden(const char *name, MPI_Datatype type, enum Op op);

#define TYPE(handle, group, K, T) { static const Kind k = {#handle, group, sizeof(T), make_##K, combine_##K, equal_##K}; all_ops(&k, handle); }
#define REFUSED(handle) for (int op = 0; STRICT && op < REPLACE; op++) forbidden(#handle, handle, op);

static void types(void) {
    TYPE(MPI_INT, CINT, i32, int) TYPE(MPI_LONG, CINT, i64, long) TYPE(MPI_SHORT, CINT, i16, short)
    TYPE(MPI_UNSIGNED_SHORT, CINT, u16, short) TYPE(MPI_UNSIGNED, CINT, u32, int) TYPE(MPI_UNSIGNED_LONG, CINT, u64, long)
    TYPE(MPI_LONG_LONG_INT, CINT, i64, long long) TYPE(MPI_LONG_LONG, CINT, i64, long long)
    TYPE(MPI_UNSIGNED_LONG_LONG, CINT, u64, long long) TYPE(MPI_SIGNED_CHAR, CINT, i8, char) TYPE(MPI_UNSIGNED_CHAR, CINT, u8, char)
    TYPE(MPI_INT8_T, CINT, i8, int8_t) TYPE(MPI_INT16_T, CINT, i16, int16_t) TYPE(MPI_INT32_T, CINT, i32, int32_t)
    TYPE(MPI_INT64_T, CINT, i64, int64_t) TYPE(MPI_UINT8_T, CINT, u8, uint8_t) TYPE(MPI_UINT16_T, CINT, u16, uint16_t)
    TYPE(MPI_UINT32_T, CINT, u32, uint32_t) TYPE(MPI_UINT64_T, CINT, u64, uint64_t)
    TYPE(MPI_INTEGER, FINT, i32, int) TYPE(MPI_INTEGER1, FINT, i8, int8_t) TYPE(MPI_INTEGER2, FINT, i16, int16_t)
    TYPE(MPI_INTEGER4, FINT, i32, int32_t) TYPE(MPI_INTEGER8, FINT, i64, int64_t)
    TYPE(MPI_FLOAT, FLOATS, f32, float) TYPE(MPI_DOUBLE, FLOATS, f64, double) TYPE(MPI_LONG_DOUBLE, FLOATS, fl, long double)
    TYPE(MPI_REAL, FLOATS, f32, float) TYPE(MPI_DOUBLE_PRECISION, FLOATS, f64, double)
    TYPE(MPI_REAL4, FLOATS, f32, float) TYPE(MPI_REAL8, FLOATS, f64, double)
    TYPE(MPI_LOGICAL, LOGICAL, l32, int) TYPE(MPI_C_BOOL, LOGICAL, b8, _Bool) TYPE(MPI_CXX_BOOL, LOGICAL, b8, _Bool)
    TYPE(MPI_COMPLEX, COMPLEX, c32, float complex) TYPE(MPI_C_COMPLEX, COMPLEX, c32, float complex)
    TYPE(MPI_C_FLOAT_COMPLEX, COMPLEX, c32, float complex) TYPE(MPI_C_DOUBLE_COMPLEX, COMPLEX, c64, double complex)
    TYPE(MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX, cl, long double complex) TYPE(MPI_DOUBLE_COMPLEX, COMPLEX, c64, double complex)
    TYPE(MPI_CXX_FLOAT_COMPLEX, COMPLEX, c32, float complex) TYPE(MPI_CXX_DOUBLE_COMPLEX, COMPLEX, c64, double complex)
    TYPE(MPI_CXX_LONG_DOUBLE_COMPLEX, COMPLEX, cl, long double complex)
    TYPE(MPI_COMPLEX8, COMPLEX, c32, float complex) TYPE(MPI_COMPLEX16, COMPLEX, c64, double complex)
    TYPE(MPI_BYTE, BYTE, u8, char)
    TYPE(MPI_AINT, LANG, i64, MPI_Aint) TYPE(MPI_OFFSET, LANG, i64, MPI_Offset) TYPE(MPI_COUNT, LANG, i64, MPI_Count)
    TYPE(MPI_FLOAT_INT, PAIR, float_int, float_int) TYPE(MPI_DOUBLE_INT, PAIR, double_int, double_int)
    TYPE(MPI_LONG_INT, PAIR, long_int, long_int) TYPE(MPI_2INT, PAIR, two_int, two_int)
    TYPE(MPI_SHORT_INT, PAIR, short_int, short_int) TYPE(MPI_LONG_DOUBLE_INT, PAIR, ld_int, ld_int)
    TYPE(MPI_2INTEGER, PAIR, two_int, two_int) TYPE(MPI_2REAL, PAIR, two_float, two_float)
    TYPE(MPI_2DOUBLE_PRECISION, PAIR, two_double, two_double)
    REFUSED(MPI_WCHAR)
    if (getenv("KW_CHECK")) REFUSED(MPI_CHAR)
    else if (CHAR_MIN < 0) TYPE(MPI_CHAR, CINT, i8, char) // not by the standard: see lenient.c
    else TYPE(MPI_CHAR, CINT, u8, char) // ARM's has no sign
#if STRICT /* Not every library has these. */
    TYPE(MPI_INTEGER16, FINT, i128, __int128) TYPE(MPI_REAL2, FLOATS, f16, _Float16) TYPE(MPI_REAL16, FLOATS, f128, _Float128)
    TYPE(MPI_LOGICAL1, LOGICAL, l8, int8_t) TYPE(MPI_LOGICAL2, LOGICAL, l16, int16_t) TYPE(MPI_LOGICAL4, LOGICAL, l32, int32_t)
    TYPE(MPI_LOGICAL8, LOGICAL, l64, int64_t)
#ifdef MPI_LOGICAL16 // Open MPI has none
    TYPE(MPI_LOGICAL16, LOGICAL, l128, __int128)
#endif
    TYPE(MPI_COMPLEX4, COMPLEX, c16, _Complex _Float16) TYPE(MPI_COMPLEX32, COMPLEX, c128, _Complex _Float128)
#endif
}

static void ops_begin(void) {
    MPI_Op all[] = {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_BAND, MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MAXLOC,
                    MPI_MINLOC, MPI_REPLACE, MPI_NO_OP};
    memcpy(ops, all, sizeof all);
}
#endif
