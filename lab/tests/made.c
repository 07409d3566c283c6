/* A program whose time is known: it prints made times as the programs of bench/ do, SLOWER times
 * (environment, default 1) as long. */
#include "noise.h"

#define BATCHES 15

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    const char *slower = getenv("SLOWER");
    double us[BATCHES], all = 300 * (slower ? atof(slower) : 1) * begin();
    for (int b = 0; b < BATCHES; b++)
        us[b] = all * restless();
    qsort(us, BATCHES, sizeof us[0], by_value);
    printf("{\"bench\": \"made\", \"us\": {\"min\": %f, \"median\": %f, \"low\": %f, \"high\": %f, \"batches\": []}}\n", us[0], us[BATCHES / 2],
           us[2], us[BATCHES - 3]);
    return 0;
}
