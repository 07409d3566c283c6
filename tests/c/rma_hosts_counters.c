// run: n=3,4 timeout=120 hosts=2
/* As rma_counters.c, with ranks on two hosts: some combine in shared memory, the others by messages, with the same elements. */
#include "rma_counters.c"
