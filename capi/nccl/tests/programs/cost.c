/* Times a call by the library and by the one behind it, in nanoseconds: `cost LIBRARY BEHIND`. Each time is the least
 * of several runs: of a call, and of a group of one. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { RUNS = 20, CALLS = 20000 };

typedef int (*all_reduce)(const void *, void *, size_t, int, int, void *, void *);
typedef int (*group)(void);

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void *found(void *library, const char *name) {
    return dlsym(library, name);
}

static double least(void *library, int grouped) {
    void *addresses[] = {found(library, "ncclAllReduce"), found(library, "ncclGroupStart"),
                         found(library, "ncclGroupEnd")};
    all_reduce of;
    group start, end;
    memcpy(&of, &addresses[0], sizeof of);
    memcpy(&start, &addresses[1], sizeof start);
    memcpy(&end, &addresses[2], sizeof end);
    char word[8] = {0};
    double least = 1e30;
    for (int run = 0; run < RUNS; ++run) {
        double begun = now();
        for (int call = 0; call < CALLS; ++call) {
            if (grouped) {
                start();
            }
            of(word, word, 1, 7, 0, word, NULL);
            if (grouped) {
                end();
            }
        }
        double time = (now() - begun) / CALLS;
        least = time < least ? time : least;
    }
    return least;
}

int main(int count, char **args) {
    void *ours = count == 3 ? dlopen(args[1], RTLD_NOW) : NULL;
    void *theirs = count == 3 ? dlopen(args[2], RTLD_NOW) : NULL;
    if (!ours || !theirs) {
        printf("cost LIBRARY BEHIND: %s\n", dlerror());
        return 1;
    }
    printf("%.1f %.1f %.1f %.1f\n", least(ours, 0), least(theirs, 0), least(ours, 1), least(theirs, 1));
    return 0;
}
