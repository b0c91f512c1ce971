/* A job over the stand-in for NCCL of over_library.c: LIBRARY RANK NRANKS FOLDER WHAT. Prints who made each operation: `o` is
 * the library, and `t` the stand-in, whose results are marks. */
#include "job.h"

#include <dirent.h>

static void *comm, *stream, *other, *from, *to;
static char makers[64];

static float mark(void) {
    float value;
    memset(&value, 0x42, sizeof value);
    return value;
}

/* Notes who has put the sum of the ranks' `first + i % 5`, or marks, into the buffer. */
static void note(const char *what, void *at, int count, float first, float times) {
    float value;
    CUDA(cuStreamSynchronize, (void *), stream);
    CUDA(cuStreamSynchronize, (void *), other);
    CUDA(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), &value, (uint64_t)(uintptr_t)at, sizeof value);
    const int theirs = value == mark();
    has(what, at, 0, count, theirs ? mark() : first, theirs ? 0 : times);
    strcat(makers, theirs ? "t" : "o");
}

/* An all-reduce among `n` ranks, whose buffers begin with 1, 2, ... */
static void reduce(void *of, int me, int n, int count) {
    void *const mine = buffer((float)(me + 1), count);
    NCCL(ncclAllReduce, REDUCE, mine, to, (size_t)count, F32, SUM, of, stream);
    note("AllReduce", to, count, (float)(n * (n + 1) / 2), (float)n);
    CUDA(cuMemFree_v2, (uint64_t), (uint64_t)(uintptr_t)mine);
}

/* Many all-reduces, and how many of them are ours: of the first 64, of the 24 on trial, and of 12 more. A group of one is
 * NCCL's as long as there is no decision. */
static void compete(void) {
    static const int parts[] = {64, 24, 12};
    char all[64] = "";
    for (int part = 0; part < 3; ++part) {
        int ours = 0;
        for (int i = 0; i < parts[part]; ++i) {
            makers[0] = 0;
            reduce(comm, rank, nranks, COUNT);
            ours += makers[0] == 'o';
        }
        makers[0] = 0;
        NCCL(ncclGroupStart, (void));
        NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
        NCCL(ncclGroupEnd, (void));
        note("AllReduce of a group", to, COUNT, (float)(nranks * (nranks + 1) / 2), (float)nranks);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%d%s ", ours, makers);
    }
    strcpy(makers, all);
}

static void ends(void) {
    int state = -1;
    NCCL(ncclCommGetAsyncError, (void *, int *), comm, &state);
    if (state != 0) {
        fprintf(stderr, "the state is %d: %s\n", state, last_error());
        exit(1);
    }
    NCCL(ncclCommFinalize, (void *), comm);
    NCCL(ncclCommDestroy, (void *), comm);
}

static void take(void) {
    const float sum = (float)(nranks * (nranks + 1) / 2), n = (float)nranks;
    void *const second = buffer(-1, COUNT), *const large = buffer(1, 3 * COUNT);
    void *part = NULL;
    /* One that is selected, one that is too large, and another collective. */
    reduce(comm, rank, nranks, COUNT);
    reduce(comm, rank, nranks, 3 * COUNT);
    NCCL(ncclBroadcast, COPIED_ROOT, from, to, COUNT, F32, 1, comm, stream);
    note("Broadcast", to, COUNT, 2, 1);
    /* A group that is taken, over two streams, and one that goes on whole. */
    NCCL(ncclGroupStart, (void));
    NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
    NCCL(ncclAllReduce, REDUCE, from, second, COUNT, F32, MAX, comm, other);
    NCCL(ncclGroupEnd, (void));
    note("AllReduce of a group", to, COUNT, sum, n);
    note("AllReduce of a group", second, COUNT, n, 1);
    NCCL(ncclGroupStart, (void));
    NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
    NCCL(ncclAllReduce, REDUCE, large, large, 3 * COUNT, F32, SUM, comm, stream);
    NCCL(ncclGroupEnd, (void));
    note("AllReduce of a group", to, COUNT, sum, n);
    note("AllReduce of a group", large, COUNT, sum, n);
    strcat(makers, " ");
    /* What is wrong is for NCCL to refuse. */
    IS(4, nccl, ncclAllReduce, REDUCE, from, to, COUNT, 99, SUM, comm, stream);
    if (strstr(last_error(), "type 99") == NULL) exit(3);
    /* The order on one stream and on two: ours, theirs, ours. */
    for (int two = 0; two < 2; ++two) {
        for (int i = 0; i < 5; ++i) NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
        NCCL(ncclBroadcast, COPIED_ROOT, from, to, COUNT, F32, 1, comm, two ? other : stream);
        NCCL(ncclAllReduce, REDUCE, to, second, COUNT, F32, SUM, comm, stream);
        note("AllReduce of marks", second, COUNT, n * mark(), 0);
    }
    NCCL(ncclAllReduce, REDUCE, NULL, NULL, 0, F32, SUM, comm, stream);
    /* Communicators of others. */
    NCCL(ncclCommSplit, (void *, int, int, void **, void *), comm, rank == 0 ? -1 : 0, -rank, &part, NULL);
    if (part != NULL) {
        reduce(part, nranks - 1 - rank, nranks - 1, COUNT);
        NCCL(ncclCommDestroy, (void *), part);
    }
    if (rank != 0) {
        const int without = 0;
        NCCL(ncclCommShrink, (void *, const int *, int, void **, void *, int), comm, &without, 1, &part, NULL, 0);
        reduce(part, rank - 1, nranks - 1, COUNT);
        NCCL(ncclCommDestroy, (void *), part);
    }
    ends();
}

/* Makes and destroys communicators, and holds no more descriptors than before. */
static int descriptors(void) {
    int count = 0;
    DIR *const all = opendir("/proc/self/fd");
    while (readdir(all) != NULL) ++count;
    closedir(all);
    return count;
}

static void many(const char *folder) {
    ends();
    int before = 0;
    for (int i = 0; i < 100; ++i) {
        char file[4096];
        snprintf(file, sizeof file, "%s/many%d", folder, i);
        NCCL(ncclCommInitRank, (void **, int, Id, int), &comm, nranks, meet(file), rank);
        if (i % 25 == 0) reduce(comm, rank, nranks, COUNT);
        NCCL(ncclCommDestroy, (void *), comm);
        if (i == 0) before = descriptors();
    }
    if (descriptors() > before) {
        fprintf(stderr, "%d descriptors, and %d after a hundred communicators\n", before, descriptors());
        exit(1);
    }
}

/* Configurations of calls: those that ask for nothing, and one that is about NCCL's kernels. */
static void configure(void) {
    const float sum = (float)(nranks * (nranks + 1) / 2), n = (float)nranks;
    Config plain = CONFIG, tuned = CONFIG, old = CONFIG, named = CONFIG, wrong = CONFIG;
    tuned.most = 4;
    /* A version that ends before the field. */
    old.most = 4;
    old.size = 24;
    named.selection = "allreduce:nvls";
    wrong.magic = 1;
    const Config *const all[] = {NULL, &plain, &old, &tuned, &named, &wrong};
    for (int i = 0; i < 6; ++i) {
        NCCL(ncclAllReduceConfig, REDUCE_CONFIG, from, to, COUNT, F32, SUM, comm, stream, all[i]);
        note("AllReduceConfig", to, COUNT, sum, n);
    }
    /* The event of a launch. */
    CUDA(cuEventCreate, (void **, unsigned), &plain.launched, 2);
    NCCL(ncclAllReduceConfig, REDUCE_CONFIG, from, to, COUNT, F32, SUM, comm, stream, &plain);
    CUDA(cuEventSynchronize, (void *), plain.launched);
    note("AllReduceConfig", to, COUNT, sum, n);
}

/* An all-reduce in a graph that is launched twice. */
static void capture(void) {
    CUDA(cuStreamBeginCapture_v2, (void *, int), stream, 0);
    NCCL(ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
    void *const runs = captured(stream);
    for (int i = 0; i < 2; ++i) {
        launch_on_zeros(runs, to, stream);
        note("AllReduce of a graph", to, COUNT, (float)(nranks * (nranks + 1) / 2), (float)nranks);
    }
    CUDA(cuGraphExecDestroy, (void *), runs);
}

/* The first of a shape is NCCL's where a graph captures it, and later ones are not. */
static void graphs(void) {
    capture();
    reduce(comm, rank, nranks, COUNT);
    capture();
    reduce(comm, rank, nranks, COUNT);
    ends();
}

/* Rank 0 revokes, when the others are done: what is under way ends, and what comes is refused. */
static void revoke_comm(const char *folder) {
    int state = 0;
    reduce(comm, rank, nranks, COUNT);
    for (int other = rank == 0 ? 1 : rank; other < (rank == 0 ? nranks : rank + 1); ++other) {
        char file[4096];
        snprintf(file, sizeof file, "%s/done%d", folder, other);
        if (rank != 0) fclose(fopen(file, "w"));
        while (access(file, F_OK) != 0) usleep(1000);
    }
    if (rank == 0) {
        NCCL(ncclCommRevoke, (void *, int), comm, 0);
    } else {
        while (state == 0) {
            usleep(10000);
            NCCL(ncclCommGetAsyncError, (void *, int *), comm, &state);
        }
    }
    IS(rank == 0 ? 5 : 6, nccl, ncclAllReduce, REDUCE, from, to, COUNT, F32, SUM, comm, stream);
    NCCL(ncclCommDestroy, (void *), comm);
}

static void *reduce_alone(void *at) {
    int (*function) REDUCE;
    *(void **)&function = found(nccl, "ncclAllReduce");
    *(int *)at = function(from, to, COUNT, F32, SUM, comm, stream);
    return NULL;
}

/* Rank 0 is in a call to which nobody else comes, and another thread aborts it. */
static void abort_call(void) {
    pthread_t thread;
    int code = -1, state = 0;
    if (rank == 0) {
        pthread_create(&thread, NULL, reduce_alone, &code);
        usleep(300000);
        NCCL(ncclCommGetAsyncError, (void *, int *), comm, &state);
        NCCL(ncclCommAbort, (void *), comm);
        pthread_join(thread, NULL);
        snprintf(makers, sizeof makers, "state %d code %d", state, code);
        return;
    }
    while (state == 0) {
        usleep(10000);
        NCCL(ncclCommGetAsyncError, (void *, int *), comm, &state);
    }
    snprintf(makers, sizeof makers, "state %d", state);
    NCCL(ncclCommAbort, (void *), comm);
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    const char *const what = argv[5];
    char file[4096];
    struct {
        size_t size;
        unsigned magic, version;
        int blocking, rest;
    } config = {24, 0xcafebeef, 21400, strcmp(what, "later") != 0, 0};
    rank = atoi(argv[2]);
    nranks = atoi(argv[3]);
    if (strcmp(what, "blind") == 0 && rank == 1) {
        /* A rank without a GPU, which has nothing to give. */
        nccl = dlopen(argv[1], RTLD_NOW);
        snprintf(file, sizeof file, "%s/id", argv[4]);
        NCCL(ncclCommInitRank, (void **, int, Id, int), &comm, nranks, meet(file), rank);
        for (int i = 0; i < 2; ++i) NCCL(ncclAllReduce, REDUCE, NULL, NULL, 0, F32, SUM, comm, NULL);
        puts("tt");
        return 0;
    }
    begin(argv[1], rank);
    CUDA(cuStreamCreate, (void **, unsigned), &stream, 1);
    CUDA(cuStreamCreate, (void **, unsigned), &other, 1);
    snprintf(file, sizeof file, "%s/id", argv[4]);
    const Id id = meet(file);
    IS(config.blocking ? 0 : 7, nccl, ncclCommInitRankConfig, (void **, int, Id, int, void *), &comm, nranks, id, rank, &config);
    for (int state = 7; state == 7;) NCCL(ncclCommGetAsyncError, (void *, int *), comm, &state);
    from = buffer((float)(rank + 1), COUNT);
    to = buffer(-1, 3 * COUNT);
    if (strcmp(what, "take") == 0) {
        take();
    } else if (strcmp(what, "many") == 0) {
        many(argv[4]);
    } else if (strcmp(what, "compete") == 0) {
        compete();
        ends();
    } else if (strcmp(what, "configure") == 0) {
        configure();
        ends();
    } else if (strcmp(what, "graphs") == 0) {
        graphs();
    } else if (strcmp(what, "revoke") == 0) {
        revoke_comm(argv[4]);
    } else if (strcmp(what, "abort") == 0) {
        abort_call();
    } else {
        reduce(comm, rank, nranks, COUNT);
        reduce(comm, rank, nranks, COUNT);
        ends();
    }
    printf("%s\n", makers);
    return 0;
}
