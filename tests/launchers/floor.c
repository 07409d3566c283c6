/* The least that a rank can do under a PMIx launcher: opens the library that is its argument, PMIx_Init, one PMIx_Fence, PMIx_Finalize.
 * For start-time. Types as the PMIx Standard has them (crates/sys/src/pmix/abi.rs). */
#include <dlfcn.h>
#include <stdio.h>

typedef struct { char space[256]; unsigned rank; } proc;

int main(int argc, char **argv)
{
    void *library = dlopen(argc > 1 ? argv[1] : "libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);
    proc me;
    int status;

    if (!library) {
        fprintf(stderr, "floor: %s\n", dlerror());
        return 1;
    }
    int (*init)(proc *, void *, size_t) = (int (*)(proc *, void *, size_t))dlsym(library, "PMIx_Init");
    int (*fence)(void *, size_t, void *, size_t) = (int (*)(void *, size_t, void *, size_t))dlsym(library, "PMIx_Fence");
    int (*finalize)(void *, size_t) = (int (*)(void *, size_t))dlsym(library, "PMIx_Finalize");
    if (!init || !fence || !finalize)
        return 1;
    status = init(&me, NULL, 0);
    if (!status)
        status = fence(NULL, 0, NULL, 0);
    if (!status)
        status = finalize(NULL, 0);
    return status != 0;
}
