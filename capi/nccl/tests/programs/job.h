/* What the ranks of a job of NCCL do, as programs write it. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char bytes[128];
} Id;

static void *driver, *nccl;
static _Thread_local int rank;
static int nranks;

static inline void *found(void *library, const char *name) {
    void *function = dlsym(library, name);
    if (function == NULL) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return function;
}

static inline const char *last_error(void) {
    const char *(*function)(void *);
    *(void **)&function = found(nccl, "ncclGetLastError");
    return function(NULL);
}

/* Calls a function, whose code must be this one. */
#define IS(CODE, LIBRARY, NAME, TYPES, ...)                                                                            \
    do {                                                                                                               \
        int (*function) TYPES;                                                                                         \
        *(void **)&function = found(LIBRARY, #NAME);                                                                   \
        const int code = function(__VA_ARGS__);                                                                        \
        if (code != (CODE)) {                                                                                          \
            fprintf(stderr, "rank %d line %d: %s is %d: %s\n", rank, __LINE__, #NAME, code, last_error());             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define CUDA(NAME, TYPES, ...) IS(0, driver, NAME, TYPES, __VA_ARGS__)
#define NCCL(NAME, TYPES, ...) IS(0, nccl, NAME, TYPES, __VA_ARGS__)

enum { COUNT = 500, F32 = 7, SUM = 0, MAX = 2, AVG = 4 };
#define REDUCE (const void *, void *, size_t, int, int, void *, void *)
#define ROOTED (const void *, void *, size_t, int, int, int, void *, void *)
#define COPIED (const void *, void *, size_t, int, void *, void *)
#define COPIED_ROOT (const void *, void *, size_t, int, int, void *, void *)

/* ncclCollConfig_t, and as NCCL_COLLCONFIG_INITIALIZER has it. */
typedef struct {
    size_t size;
    unsigned magic, version;
    void *extensions;
    int least, most, nvls, cluster;
    const char *selection;
    int forces, policy;
    uint64_t tag;
    void *launched;
} Config;
#define UNSET (-2147483647 - 1)
#define CONFIG {sizeof(Config), 0xcafebeef, 23203, NULL, UNSET, UNSET, UNSET, UNSET, NULL, 1, UNSET, 0, NULL}
#define REDUCE_CONFIG (const void *, void *, size_t, int, int, void *, void *, const Config *)

static inline void *buffer(float first, int count) {
    uint64_t at;
    float *values = malloc(sizeof(float) * (size_t)count);
    for (int i = 0; i < count; ++i) values[i] = first + (float)(i % 5);
    CUDA(cuMemAlloc_v2, (uint64_t *, size_t), &at, sizeof(float) * (size_t)count);
    CUDA(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), at, values, sizeof(float) * (size_t)count);
    free(values);
    return (void *)(uintptr_t)at;
}

static inline void has(const char *what, void *at, int from, int count, float first, float times) {
    float values[16 * COUNT];
    CUDA(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), values, (uint64_t)(uintptr_t)at + sizeof(float) * (size_t)from,
         sizeof(float) * (size_t)count);
    for (int i = 0; i < count; ++i) {
        const float expected = first + times * (float)(i % 5);
        if (values[i] != expected) {
            fprintf(stderr, "rank %d, %s: element %d is %g, and not %g\n", rank, what, i, (double)values[i], (double)expected);
            exit(1);
        }
    }
}

/* Ends the capture of a stream, and returns what runs the graph. */
static inline void *captured(void *stream) {
    void *graph, *runs;
    CUDA(cuStreamEndCapture, (void *, void **), stream, &graph);
    CUDA(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long), &runs, graph, 0);
    CUDA(cuGraphDestroy, (void *), graph);
    return runs;
}

/* Launches a graph on a buffer of zeros. */
static inline void launch_on_zeros(void *runs, void *to, void *stream) {
    CUDA(cuMemsetD8Async, (uint64_t, unsigned char, size_t, void *), (uint64_t)(uintptr_t)to, 0, sizeof(float) * COUNT, stream);
    CUDA(cuGraphLaunch, (void *, void *), runs, stream);
}

static inline Id meet(const char *file) {
    Id id;
    if (rank == 0) {
        NCCL(ncclGetUniqueId, (Id *), &id);
        char part[4096];
        snprintf(part, sizeof part, "%s.part", file);
        FILE *out = fopen(part, "wb");
        fwrite(&id, sizeof id, 1, out);
        fclose(out);
        rename(part, file);
        return id;
    }
    for (;;) {
        FILE *in = fopen(file, "rb");
        if (in != NULL) {
            const size_t read = fread(&id, sizeof id, 1, in);
            fclose(in);
            if (read == 1) return id;
        }
        usleep(1000);
    }
}

/* Opens the library, the driver and the device of this number. */
static inline void begin(const char *library, int device) {
    void *context;
    nccl = dlopen(library, RTLD_NOW);
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (nccl == NULL || driver == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    CUDA(cuInit, (unsigned), 0);
    CUDA(cuDevicePrimaryCtxRetain, (void **, int), &context, device);
    CUDA(cuCtxSetCurrent, (void *), context);
}
