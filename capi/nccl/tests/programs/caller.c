/* Asks for NCCL as a program does, and prints which library it got: `caller HOW PLACE`. With LINKED it is linked to
 * NCCL. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef LINKED
int ncclGetVersion(int *version);
#endif

int main(int count, char **args) {
    int version = 0, (*of)(int *) = NULL;
    Dl_info about;
    if (count == 3) {
        void *library = dlopen(args[2], RTLD_NOW);
        void *found = library ? dlsym(library, "ncclGetVersion") : NULL;
        if (!found) {
            printf("none: %s\n", dlerror());
            return 0;
        }
        memcpy(&of, &found, sizeof of);
    } else {
#ifdef LINKED
        of = ncclGetVersion;
#endif
    }
    void *at;
    memcpy(&at, &of, sizeof at);
    int code = of(&version);
    dladdr(at, &about);
    printf("%s %d %d\n", about.dli_fname, code, version);
    return 0;
}
