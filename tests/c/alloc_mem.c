/* MPI_Alloc_mem gives memory that costs nothing until it is touched. */
// run: n=1
#include "check.h"
#include <unistd.h>

static long resident(void) {
    long all = 0, here = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f) {
        if (fscanf(f, "%ld %ld", &all, &here) != 2) here = 0;
        fclose(f);
    }
    return here * sysconf(_SC_PAGESIZE);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    const MPI_Aint long_block = 1000000000;
    char *p, *q;
    long before = resident();
    OK(MPI_Alloc_mem(long_block, MPI_INFO_NULL, &p));
    CHECK(resident() - before < long_block / 10);
    p[0] = p[long_block - 1] = 1;
    CHECK(resident() - before < long_block / 10);
    OK(MPI_Alloc_mem(100, MPI_INFO_NULL, &q));
    CHECK_EQ((uintptr_t)p % 64, 0);
    CHECK_EQ((uintptr_t)q % 64, 0);
    OK(MPI_Free_mem(q));
    OK(MPI_Free_mem(p));
    return check_end();
}
