// A library that says that it was loaded, and into whose program.
#include <stdio.h>
#include <unistd.h>

__attribute__((constructor)) static void loaded(void) {
    fprintf(stderr, "LOADED by uid %d with the rights of %d\n", (int)getuid(), (int)geteuid());
}
