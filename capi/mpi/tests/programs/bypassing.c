/* A program that opens MPI's library itself and asks it for the functions, as an interpreter's bindings may: none of its
 * calls comes to a preloaded library. */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>

typedef int Init(int *, char ***);
typedef int Barrier(MPI_Comm);
typedef int Finalize(void);

/* C does not convert an address of data to a function. */
static void find(void *library, const char *name, void *function) {
    void *at = dlsym(library, name);
    if (!at) fail("MPI has no %s", name);
    memcpy(function, &at, sizeof at);
}

int main(int argc, char **argv) {
    Init *named = PMPI_Init, *init;
    Barrier *barrier;
    Finalize *finalize;
    void *at;
    Dl_info found;
    memcpy(&at, &named, sizeof at);
    if (!dladdr(at, &found)) fail("MPI's library is not found");
    void *library = dlopen(found.dli_fname, RTLD_LAZY);
    if (!library) fail("%s", dlerror());
    find(library, "MPI_Init", &init);
    find(library, "MPI_Barrier", &barrier);
    find(library, "MPI_Finalize", &finalize);
    at_most(seconds_of(argc, argv, 60));
    if (init(&argc, &argv) || barrier(MPI_COMM_WORLD) || finalize()) fail("MPI refuses a call");
    return 0;
}
