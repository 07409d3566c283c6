/* lenient.c with KW_CHECK: what is accepted there is refused. */
// run: n=2 paths=one
#define CHECKED 1
#include "lenient.c"
