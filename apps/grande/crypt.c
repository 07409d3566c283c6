/* Java Grande's Crypt: N bytes are enciphered by IDEA and deciphered. Rank 0 has the text; each rank gets a part of it, and
 * gives it back. Known: IDEA's published vector, and that what comes back is the text. */
#include "grande.h"

#define KEYS 52
#define BLOCK 8

static uint32_t mul(uint32_t a, uint32_t b)
{
    if (a == 0)
        return (1 - b) & 0xffff;
    if (b == 0)
        return (1 - a) & 0xffff;
    uint32_t p = a * b;
    b = p & 0xffff, a = p >> 16;
    return (b - a + (b < a)) & 0xffff;
}

/* The inverse of a number modulo 2^16 + 1, where 0 stands for 2^16. */
static uint32_t inverse(uint32_t x)
{
    int64_t a = x ? x : 0x10000, b = 0x10001, u = 1, v = 0;
    while (b) {
        int64_t q = a / b, t = a % b;
        a = b, b = t;
        t = u - q * v, u = v, v = t;
    }
    return (uint32_t)((u % 0x10001 + 0x10001) % 0x10001) & 0xffff;
}

static void encryption_keys(const uint16_t key[8], uint32_t z[KEYS])
{
    for (int i = 0; i < 8; i++)
        z[i] = key[i];
    for (int i = 8; i < KEYS; i++) {
        int at = i & 7;
        uint32_t a = at < 7 ? z[i - 7] : z[i - 15], b = at < 6 ? z[i - 6] : z[i - 14];
        z[i] = (a << 9 | b >> 7) & 0xffff;
    }
}

static void decryption_keys(const uint32_t z[KEYS], uint32_t d[KEYS])
{
    for (int round = 0; round <= 8; round++) {
        const uint32_t *from = z + 6 * (8 - round);
        uint32_t *to = d + 6 * round;
        int swap = round > 0 && round < 8;
        to[0] = inverse(from[0]);
        to[1] = -from[swap ? 2 : 1] & 0xffff;
        to[2] = -from[swap ? 1 : 2] & 0xffff;
        to[3] = inverse(from[3]);
        if (round < 8)
            to[4] = from[-2], to[5] = from[-1];
    }
}

static uint32_t word(const unsigned char *p) { return (uint32_t)p[0] << 8 | p[1]; }
static void put_word(unsigned char *p, uint32_t w) { p[0] = w >> 8, p[1] = w; }

static void cipher(const unsigned char *from, unsigned char *to, int bytes, const uint32_t *keys)
{
    for (int at = 0; at < bytes; at += BLOCK) {
        uint32_t x1 = word(from + at), x2 = word(from + at + 2), x3 = word(from + at + 4), x4 = word(from + at + 6);
        const uint32_t *k = keys;
        for (int round = 0; round < 8; round++, k += 6) {
            x1 = mul(x1, k[0]), x2 = (x2 + k[1]) & 0xffff, x3 = (x3 + k[2]) & 0xffff, x4 = mul(x4, k[3]);
            uint32_t t2 = mul(x1 ^ x3, k[4]), t1 = mul((t2 + (x2 ^ x4)) & 0xffff, k[5]);
            t2 = (t1 + t2) & 0xffff;
            x1 ^= t1, x4 ^= t2;
            t2 ^= x2, x2 = x3 ^ t1, x3 = t2;
        }
        put_word(to + at, mul(x1, k[0])), put_word(to + at + 2, x3 + k[1]);
        put_word(to + at + 4, x2 + k[2]), put_word(to + at + 6, mul(x4, k[3]));
    }
}

static int knows_the_vector(void)
{
    const uint16_t key[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const unsigned char text[BLOCK] = {0, 0, 0, 1, 0, 2, 0, 3}, known[BLOCK] = {0x11, 0xfb, 0xed, 0x2b, 0x01, 0x98, 0x6d, 0xe5};
    unsigned char got[BLOCK];
    uint32_t z[KEYS];
    encryption_keys(key, z);
    cipher(text, got, BLOCK, z);
    return memcmp(got, known, BLOCK) == 0;
}

int main(int argc, char **argv)
{
    static const int sizes[] = {3000000, 20000000, 50000000};
    begin(&argc, &argv, "crypt");
    int n = sizes[which];
    uint16_t key[8];
    uint32_t z[KEYS], d[KEYS];
    int *counts = memory(size * sizeof *counts), *places = memory(size * sizeof *places);
    for (int r = 0; r < size; r++)
        places[r] = first_of(n / BLOCK, r) * BLOCK, counts[r] = first_of(n / BLOCK, r + 1) * BLOCK - places[r];
    int count = counts[rank];
    unsigned char *text = memory(rank ? 0 : n), *back = memory(rank ? 0 : n);
    unsigned char *mine = memory(count), *ciphered = memory(count), *plain = memory(count);
    start_random(136506717);
    for (int i = 0; i < 8; i++)
        key[i] = (uint16_t)next_int();
    for (int i = 0; rank == 0 && i < n; i++)
        text[i] = (unsigned char)i;
    encryption_keys(key, z);
    decryption_keys(z, d);
    double start = now_together();
    MPI_Scatterv(text, counts, places, MPI_BYTE, mine, count, MPI_BYTE, 0, all);
    cipher(mine, ciphered, count, z);
    cipher(ciphered, plain, count, d);
    MPI_Gatherv(plain, count, MPI_BYTE, back, counts, places, MPI_BYTE, 0, all);
    double took = slowest_since(start);
    return finish(took, 2.0 * n, rank != 0 || (memcmp(text, back, n) == 0 && knows_the_vector()));
}
