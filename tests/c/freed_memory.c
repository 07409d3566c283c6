// run: n=2
/* What a program frees and asks for again costs no new pages (KW_KEEP_FREED). */
#include "check.h"
#include <sys/resource.h>

#define BLOCKS 8
#define BYTES 120000 /* below what malloc asks the system for block by block */
#define ROUNDS 20
#define FIRST 5

static long page_faults(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_minflt;
}

/* Some blocks, written and freed. */
static void work(void) {
    char *volatile block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = malloc(BYTES);
        CHECK(block[i] != NULL);
        for (size_t at = 0; block[i] && at < BYTES; at += 1000) ((volatile char *)block[i])[at] = 1;
    }
    for (int i = 0; i < BLOCKS; i++) free(block[i]);
}

int main(int argc, char **argv) {
    long before = 0, pages;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    for (int round = 0; round < ROUNDS; round++) {
        if (round == FIRST) before = page_faults();
        work();
    }
    pages = page_faults() - before;
#ifdef __GLIBC__
    /* 240 pages a round where they are given back. */
    if (STRICT) CHECK(pages < 1000);
#endif
    return check_end();
}
