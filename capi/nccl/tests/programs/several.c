/* Ranks of one process: LIBRARY NRANKS DEVICES. They have the devices in turn. Prints how the ranks were made. */
#include "job.h"

enum { RANKS = 8 };
static void *comms[RANKS], *contexts[RANKS], *streams[RANKS], *from[RANKS], *to[RANKS];
static Id id;

static void on(int device) {
    CUDA(cuCtxSetCurrent, (void *), contexts[device]);
}

/* The thread is on the device on which it was. */
static void is_on(int device) {
    void *context;
    CUDA(cuCtxGetCurrent, (void **), &context);
    if (context != contexts[device]) {
        fprintf(stderr, "the thread is on another device than %d\n", device);
        exit(1);
    }
}

static void check(const char *how) {
    for (int i = 0; i < nranks; ++i) {
        on(i);
        CUDA(cuStreamSynchronize, (void *), streams[i]);
        has(how, to[i], 0, COUNT, (float)(nranks * (nranks + 1) / 2), (float)nranks);
        CUDA(cuMemsetD8Async, (uint64_t, unsigned char, size_t, void *), (uint64_t)(uintptr_t)to[i], 0, sizeof(float) * COUNT, streams[i]);
    }
    for (int i = 0; i < nranks; ++i) {
        NCCL(ncclCommUserRank, (void *, int *), comms[i], &rank);
        if (rank != i) exit(4);
        NCCL(ncclCommFinalize, (void *), comms[i]);
    }
    for (int i = 0; i < nranks; ++i) NCCL(ncclCommDestroy, (void *), comms[i]);
    printf("%s\n", how);
}

static void reduce_all(void) {
    on(0);
    NCCL(ncclGroupStart, (void));
    for (int i = 0; i < nranks; ++i) NCCL(ncclAllReduce, REDUCE, from[i], to[i], COUNT, F32, SUM, comms[i], streams[i]);
    NCCL(ncclGroupEnd, (void));
    is_on(0);
}

static void *in_thread(void *at) {
    rank = (int)(intptr_t)at;
    on(rank);
    NCCL(ncclCommInitRank, (void **, int, Id, int), &comms[rank], nranks, id, rank);
    is_on(rank);
    NCCL(ncclAllReduce, REDUCE, from[rank], to[rank], COUNT, F32, SUM, comms[rank], streams[rank]);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[RANKS];
    if (argc != 4) return 2;
    nranks = atoi(argv[2]);
    int devices[RANKS];
    for (int i = 0; i < nranks; ++i) devices[i] = i % atoi(argv[3]);
    begin(argv[1], 0);
    for (int i = 0; i < nranks; ++i) {
        CUDA(cuDevicePrimaryCtxRetain, (void **, int), &contexts[i], devices[i]);
        on(i);
        CUDA(cuStreamCreate, (void **, unsigned), &streams[i], 1);
        from[i] = buffer((float)(i + 1), COUNT);
        to[i] = buffer(0, COUNT);
    }
    on(0);
    NCCL(ncclCommInitAll, (void **, int, const int *), comms, nranks, devices);
    reduce_all();
    check("all");

    NCCL(ncclGetUniqueId, (Id *), &id);
    NCCL(ncclGroupStart, (void));
    for (int i = 0; i < nranks; ++i) {
        on(i);
        NCCL(ncclCommInitRank, (void **, int, Id, int), &comms[i], nranks, id, i);
    }
    NCCL(ncclGroupEnd, (void));
    reduce_all();
    /* The parts of a split, and what is left of a shrink, are made in a group, too. */
    void *parts[RANKS];
    NCCL(ncclGroupStart, (void));
    for (int i = 0; i < nranks; ++i) {
        NCCL(ncclCommSplit, (void *, int, int, void **, void *), comms[i], 0, -i, &parts[i], NULL);
    }
    NCCL(ncclGroupEnd, (void));
    for (int i = 0; i < nranks; ++i) {
        NCCL(ncclCommUserRank, (void *, int *), parts[i], &rank);
        if (rank != nranks - 1 - i) return 5;
    }
    for (int i = 0; i < nranks; ++i) NCCL(ncclCommDestroy, (void *), parts[i]);
    check("group");

    NCCL(ncclGetUniqueId, (Id *), &id);
    for (int i = 0; i < nranks; ++i) pthread_create(&threads[i], NULL, in_thread, (void *)(intptr_t)i);
    for (int i = 0; i < nranks; ++i) pthread_join(threads[i], NULL);
    check("threads");
    return 0;
}
