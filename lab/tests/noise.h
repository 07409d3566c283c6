/* The restlessness of a machine, made: each run has its luck, each batch in it some more, and one in
 * twelve is hit by something outside. The same for the same SEED and number of earlier runs, which the
 * file RUNS counts by its length (both in the environment). */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

/* From 0 to 1 (splitmix64). */
static double drawn(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) * 0x1p-64;
}

/* A factor of this spread on the logarithm, with the tails of a sum of four. */
static double factor(double spread)
{
    return exp(spread * (drawn() + drawn() + drawn() + drawn() - 2));
}

/* The luck of this run. */
static double begin(void)
{
    const char *seed = getenv("SEED"), *runs = getenv("RUNS");
    FILE *file = runs ? fopen(runs, "a") : NULL;
    long before = 0;
    if (file) {
        fputc('.', file);
        before = ftell(file);
        fclose(file);
    }
    state = (seed ? strtoull(seed, NULL, 10) : 0) * 1000003 + (uint64_t)before;
    for (int i = 0; i < 8; i++)
        drawn();
    return factor(0.06);
}

/* What a batch takes longer than it should. */
static double restless(void)
{
    return factor(0.04) * (drawn() < 1.0 / 12 ? 1 + drawn() : 1);
}
