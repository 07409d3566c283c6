// run: n=3,4 timeout=120 hosts=2 abi=one
/* As rma_post.c, with ranks on two hosts: some memory is in reach, some is not, and with three ranks one is alone on its host. */
#include "rma_post.c"
