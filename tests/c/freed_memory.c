// run: n=2 paths=one abi=one
/* What a program frees and asks for again costs no new pages (KW_KEEP_FREED). */
#include "check.h"
#include <sys/resource.h>

#define BLOCKS 8
#define SHORT 120000  /* below what malloc asks the system for block by block */
#define LONG 6000000  /* above all that it begins with */
#define ROUNDS 20
#define FIRST 5

static long page_faults(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_minflt;
}

/* Some blocks, written and freed. */
static void work(size_t bytes) {
    char *volatile block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = malloc(bytes);
        CHECK(block[i] != NULL);
        for (size_t at = 0; block[i] && at < bytes; at += 1000) ((volatile char *)block[i])[at] = 1;
    }
    for (int i = 0; i < BLOCKS; i++) free(block[i]);
}

/* New pages of all rounds but the first. */
static long pages(size_t bytes) {
    long before = 0;
    for (int round = 0; round < ROUNDS; round++) {
        if (round == FIRST) before = page_faults();
        work(bytes);
    }
    return page_faults() - before;
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    long few = pages(SHORT), many = pages(LONG);
#ifdef __GLIBC__
    /* 240 and 12,000 pages a round where they are given back. */
    if (STRICT) {
        CHECK(few < 1000);
        CHECK(many < 1000);
    }
#else
    (void)few, (void)many;
#endif
    return check_end();
}
