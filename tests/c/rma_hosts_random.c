// run: n=3,4 timeout=120 hosts=2 abi=one
/* As rma_random.c, with ranks on two hosts. */
#include "rma_random.c"
