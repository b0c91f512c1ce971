/* A job of NCCL as programs write it, with a library that has no NCCL behind it: LIBRARY RANK NRANKS FILE [die]. */
#include <dlfcn.h>
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
static int rank, nranks;

static void *found(void *library, const char *name) {
    void *function = dlsym(library, name);
    if (function == NULL) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return function;
}

static const char *last_error(void) {
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

static void *buffer(float first, int count) {
    uint64_t at;
    float *values = malloc(sizeof(float) * (size_t)count);
    for (int i = 0; i < count; ++i) values[i] = first + (float)(i % 5);
    CUDA(cuMemAlloc_v2, (uint64_t *, size_t), &at, sizeof(float) * (size_t)count);
    CUDA(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), at, values, sizeof(float) * (size_t)count);
    free(values);
    return (void *)(uintptr_t)at;
}

static void has(const char *what, void *at, int from, int count, float first, float times) {
    float values[8 * COUNT];
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

static Id meet(const char *file) {
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

/* Rank 1 dies; the others hear of it from another call, and by the communicator. */
static int die(void *comm, void *from, void *to, void *stream) {
    NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    if (rank == 1) {
        usleep(300000);
        raise(SIGKILL);
    }
    NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
    int state = 0;
    while (state == 0) {
        usleep(10000);
        NCCL(ncclCommGetAsyncError, (void *, int *), comm, &state);
    }
    if (state != 6 || strstr(last_error(), "rank 1") == NULL) {
        fprintf(stderr, "rank %d: the state is %d: %s\n", rank, state, last_error());
        return 1;
    }
    IS(6, nccl, ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
    NCCL(ncclCommAbort, (void *), comm);
    printf("%s\n", strstr(last_error(), "signal 9") != NULL ? "signal 9" : "ended");
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    rank = atoi(argv[2]);
    nranks = atoi(argv[3]);
    nccl = dlopen(argv[1], RTLD_NOW);
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (nccl == NULL || driver == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void *context, *stream, *other, *comm = NULL, *part = NULL;
    int device, number, state;
    CUDA(cuInit, (unsigned), 0);
    CUDA(cuDeviceGet, (int *, int), &device, rank);
    CUDA(cuDevicePrimaryCtxRetain, (void **, int), &context, device);
    CUDA(cuCtxSetCurrent, (void *), context);
    CUDA(cuStreamCreate, (void **, unsigned), &stream, 1);
    CUDA(cuStreamCreate, (void **, unsigned), &other, 1);
    NCCL(ncclGetVersion, (int *), &number);
    if (number < 23000) return 3;

    const Id id = meet(argv[4]);
    IS(4, nccl, ncclCommInitRank, (void **, int, Id, int), &comm, nranks, id, nranks);
    IS(4, nccl, ncclCommInitRank, (void **, int, Id, int), NULL, nranks, id, rank);
    NCCL(ncclGroupStart, (void));
    IS(5, nccl, ncclCommInitRank, (void **, int, Id, int), &comm, nranks, id, rank);
    IS(5, nccl, ncclGroupEnd, (void));
    NCCL(ncclCommInitRank, (void **, int, Id, int), &comm, nranks, id, rank);
    NCCL(ncclCommCount, (void *, int *), comm, &number);
    if (number != nranks) return 4;
    NCCL(ncclCommUserRank, (void *, int *), comm, &number);
    if (number != rank) return 5;
    NCCL(ncclCommCuDevice, (void *, int *), comm, &number);
    if (number != rank) return 6;

    void *const from = buffer((float)(rank + 1), COUNT), *const to = buffer(-1, COUNT);
    if (argc > 5) return die(comm, from, to, stream);
    void *const wide = buffer(-1, nranks * COUNT), *const rows = buffer((float)(10 * rank), nranks * COUNT);
    const float sum = (float)(nranks * (nranks + 1) / 2), n = (float)nranks;
    for (int i = 0; i < 3; ++i) NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    has("AllReduce", to, 0, COUNT, sum, n);
    NCCL(ncclCommGetAsyncError, (void *, int *), comm, &state);
    if (state != 0) return 7;

    /* A group over two streams, in which a wrong operation is an error at the call and at the end. */
    NCCL(ncclGroupStart, (void));
    NCCL(ncclGroupStart, (void));
    NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, MAX, comm, stream);
    NCCL(ncclGroupEnd, (void));
    NCCL(ncclAllGather, COPIED, from, wide, COUNT, F32, comm, other);
    NCCL(ncclGroupEnd, (void));
    CUDA(cuStreamSynchronize, (void *), stream);
    CUDA(cuStreamSynchronize, (void *), other);
    has("AllReduce, max", to, 0, COUNT, n, 1);
    for (int r = 0; r < nranks; ++r) has("AllGather", wide, r * COUNT, COUNT, (float)(r + 1), 1);
    NCCL(ncclGroupStart, (void));
    IS(4, nccl, ncclAllReduce, REDUCE, from, to, COUNT, 99, SUM, comm, stream);
    IS(4, nccl, ncclGroupEnd, (void));
    IS(5, nccl, ncclGroupEnd, (void));

    NCCL(ncclReduceScatter, REDUCE, rows, to, COUNT, F32, SUM, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    has("ReduceScatter", to, 0, COUNT, 10 * n * (n - 1) / 2, n);
    NCCL(ncclBroadcast, COPIED_ROOT, from, to, COUNT, F32, 1, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    has("Broadcast", to, 0, COUNT, 2, 1);
    NCCL(ncclReduce, ROOTED, from, to, COUNT, F32, AVG, 2, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    has("Reduce", to, 0, COUNT, rank == 2 ? sum / n : 2, 1);
    NCCL(ncclAlltoAll, COPIED, wide, rows, COUNT, F32, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    for (int r = 0; r < nranks; ++r) has("AlltoAll", rows, r * COUNT, COUNT, (float)(rank + 1), 1);
    /* In place, and nothing. */
    NCCL(ncclAllReduce, REDUCE, from, from, COUNT, F32, SUM, comm, stream);
    NCCL(ncclAllReduce, REDUCE, NULL, NULL, 0, F32, SUM, comm, stream);
    CUDA(cuStreamSynchronize, (void *), stream);
    has("AllReduce in place", from, 0, COUNT, sum, n);

    IS(4, nccl, ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, NULL, stream);
    IS(4, nccl, ncclBroadcast, COPIED_ROOT, from, to, COUNT, F32, nranks, comm, stream);
    IS(4, nccl, ncclAllReduce, REDUCE, (char *)from + 1, to, COUNT, F32, SUM, comm, stream);
    IS(5, nccl, ncclSend, (const void *, size_t, int, int, void *, void *), from, COUNT, F32, 0, comm, stream);
    if (strstr(last_error(), "ncclSend") == NULL) return 8;
    IS(5, nccl, ncclMemAlloc, (void **, size_t), &part, 100);

    NCCL(ncclCommSplit, (void *, int, int, void **, void *), comm, rank == 0 ? -1 : 0, -rank, &part, NULL);
    if ((part == NULL) != (rank == 0)) return 9;
    if (part != NULL) {
        void *const mine = buffer((float)rank, COUNT);
        NCCL(ncclAllReduce, REDUCE, mine, to, COUNT, F32, SUM, part, stream);
        CUDA(cuStreamSynchronize, (void *), stream);
        has("AllReduce of a part", to, 0, COUNT, sum - n, n - 1);
        NCCL(ncclCommDestroy, (void *), part);
    }
    NCCL(ncclCommFinalize, (void *), comm);
    NCCL(ncclCommDestroy, (void *), comm);
    IS(4, nccl, ncclCommDestroy, (void *), comm);
    NCCL(ncclCommDestroy, (void *), NULL);
    printf("rank %d is done\n", rank);
    return 0;
}
