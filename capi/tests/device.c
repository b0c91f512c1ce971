/* A rank with a GPU of its own: calls on memory of the GPU, in the order of a stream, and replayed by a graph. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "roundelay.h"

enum { COUNT = 1000, THREAD_LOCAL = 1 };

/* The functions of the driver that this program calls. */
static void *driver;

static void *found(const char *name) {
    void *function = dlsym(driver, name);
    if (function == NULL) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return function;
}

#define CALL(NAME, TYPES, ...)                                                                                          \
    do {                                                                                                               \
        int (*function) TYPES;                                                                                         \
        *(void **)&function = found(#NAME);                                                                            \
        const int code = function(__VA_ARGS__);                                                                        \
        if (code != 0) {                                                                                               \
            fprintf(stderr, "%s is %d\n", #NAME, code);                                                                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define OURS(CALLED)                                                                                                   \
    do {                                                                                                               \
        if ((CALLED) != ROUNDELAY_SUCCESS) {                                                                           \
            fprintf(stderr, "%s\n", roundelay_last_error());                                                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define IS(CODE, CALLED)                                                                                               \
    do {                                                                                                               \
        const int code = (CALLED);                                                                                     \
        if (code != (CODE)) {                                                                                          \
            fprintf(stderr, "%s is %d, and not %d: %s\n", #CALLED, code, CODE, roundelay_last_error());                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static uint32_t rank, nranks;

/* Whether each element of the buffer is the sum of what all ranks gave, plus `more`. */
static void has_the_sum(uint64_t at, float more) {
    float values[COUNT];
    CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), values, at, sizeof values);
    for (int i = 0; i < COUNT; ++i) {
        const float sum = (float)(nranks * (nranks + 1) / 2) + (float)nranks * (float)(i % 7) + more;
        if (values[i] != sum) {
            fprintf(stderr, "rank %u: element %d is %g, and not %g\n", rank, i, (double)values[i], (double)sum);
            exit(1);
        }
    }
}

int main(void) {
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void *context, *stream, *graph, *replayed;
    int device;
    roundelay_world_t world;
    OURS(roundelay_init_from_env(NULL, &world));
    OURS(roundelay_rank(world, &rank));
    OURS(roundelay_nranks(world, &nranks));
    CALL(cuInit, (unsigned), 0);
    CALL(cuDeviceGet, (int *, int), &device, (int)rank);
    CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, device);
    CALL(cuCtxSetCurrent, (void *), context);
    CALL(cuStreamCreate, (void **, unsigned), &stream, 1);
    uint64_t input, output;
    CALL(cuMemAlloc_v2, (uint64_t *, size_t), &input, sizeof(float[COUNT]));
    CALL(cuMemAlloc_v2, (uint64_t *, size_t), &output, sizeof(float[COUNT]));
    float values[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        values[i] = (float)(rank + 1) + (float)(i % 7);
    }
    CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), input, values, sizeof values);

    void *const from = (void *)(uintptr_t)input, *const to = (void *)(uintptr_t)output;
    IS(406, roundelay_call_on_stream(world, ROUNDELAY_ALL_REDUCE, from, to, COUNT, ROUNDELAY_FLOAT32, ROUNDELAY_SUM, 0, stream));
    OURS(roundelay_on_device(world, rank));
#define REDUCE(FROM, TO)                                                                                               \
    roundelay_call_on_stream(world, ROUNDELAY_ALL_REDUCE, FROM, TO, COUNT, ROUNDELAY_FLOAT32, ROUNDELAY_SUM, 0, stream)
    for (int i = 0; i < 5; ++i) {
        OURS(REDUCE(from, to));
    }
    OURS(roundelay_device_wait(world));
    has_the_sum(output, 0);

    /* In place, and captured. */
    CALL(cuStreamBeginCapture_v2, (void *, int), stream, THREAD_LOCAL);
    OURS(REDUCE(from, from));
    CALL(cuStreamEndCapture, (void *, void **), stream, &graph);
    CALL(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long), &replayed, graph, 0);
    CALL(cuGraphLaunch, (void *, void *), replayed, stream);
    CALL(cuStreamSynchronize, (void *), stream);
    OURS(roundelay_device_wait(world));
    has_the_sum(input, 0);

    /* Every collective has its lengths, and wrong arguments are refused. */
    OURS(roundelay_call_on_stream(world, ROUNDELAY_BROADCAST, from, to, COUNT, ROUNDELAY_FLOAT32, ROUNDELAY_SUM, 1, stream));
    OURS(roundelay_device_wait(world));
    has_the_sum(output, 0);
    IS(404, REDUCE((char *)from + 2, to));
    IS(411, roundelay_call_on_stream(world, ROUNDELAY_BROADCAST, from, to, COUNT, ROUNDELAY_FLOAT32, ROUNDELAY_SUM, 9, stream));
    IS(406, roundelay_call_on_stream(world, 99, from, to, COUNT, ROUNDELAY_FLOAT32, ROUNDELAY_SUM, 0, stream));
    IS(431, roundelay_call_on_stream(world, ROUNDELAY_ALL_REDUCE, from, to, COUNT, ROUNDELAY_FLOAT32, ROUNDELAY_BXOR, 0, stream));
    IS(406, roundelay_device_wait(12345));

    /* Memory that all ranks map; another algorithm, and a promise that it breaks, from the next call on. */
    void *lent = NULL;
    OURS(roundelay_device_alloc(world, sizeof values, &lent));
    CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), (uint64_t)(uintptr_t)lent, values, sizeof values);
    OURS(roundelay_use(world, "RingAllReduce", NULL, ROUNDELAY_ALL_REDUCE, 0, UINT64_MAX));
    for (int i = 0; i < 4; ++i) {
        OURS(REDUCE(lent, to));
        OURS(roundelay_device_wait(world));
        has_the_sum(output, 0);
    }
    OURS(roundelay_promise(world, "all"));
    IS(317, REDUCE(lent, to));
    OURS(roundelay_free(lent));
    IS(406, roundelay_free(lent));
    IS(406, roundelay_device_alloc(12345, 8, &lent));
    IS(406, roundelay_device_alloc(world, 8, NULL));
    IS(419, roundelay_device_alloc(world, (uint64_t)1 << 50, &lent));
    OURS(roundelay_finalize(world));
    printf("rank %u is done\n", rank);
    return 0;
}
