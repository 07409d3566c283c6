// run: n=1 abi=one
/* What a program has told malloc before MPI_Init holds: KW_KEEP_FREED changes nothing. */
#include "check.h"
#ifdef __GLIBC__
#include <malloc.h>
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* mallinfo2 is of glibc 2.33 */
#endif

#define BYTES 8000000

int main(int argc, char **argv) {
#ifdef __GLIBC__
    struct mallinfo before, after;
    void *block;
    mallopt(M_MMAP_THRESHOLD, BYTES / 2);
#endif
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
#ifdef __GLIBC__
    before = mallinfo();
    block = malloc(BYTES);
    after = mallinfo();
    CHECK(block != NULL);
    CHECK(after.hblks == before.hblks + 1);
    free(block);
#endif
    return check_end();
}
