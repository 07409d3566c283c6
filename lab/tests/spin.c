/* A program whose time is known: it prints the processor time of a fixed computation as the
 * programs of bench/ do, repeated SLOWER times (environment, default 1) as often. Processor
 * time, because the machines that tests run on have other things to do. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCHES 15

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double batch(long steps)
{
    struct timespec t0, t1;
    volatile double x = 1;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
    for (long i = 0; i < steps; i++)
        x = x * 0.999999 + 1e-6;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
    return (t1.tv_sec - t0.tv_sec) * 1e6 + (t1.tv_nsec - t0.tv_nsec) * 1e-3;
}

int main(void)
{
    const char *slower = getenv("SLOWER");
    double us[BATCHES];
    for (int b = 0; b < BATCHES; b++)
        us[b] = batch((long)(150000 * (slower ? atof(slower) : 1)));
    qsort(us, BATCHES, sizeof us[0], by_value);
    printf("{\"bench\": \"spin\", \"us\": {\"min\": %f, \"median\": %f, \"low\": %f, \"high\": %f, \"batches\": []}}\n", us[0], us[BATCHES / 2],
           us[2], us[BATCHES - 3]);
    return 0;
}
