/* A stand-in for NCCL whose ranks are processes or threads, which meet by files in the folder STAND_IN. Its operations put
 * MARK into each byte of what is received, on the stream, so that a program sees who made a call. With DIE, the rank of
 * that number ends when its first communicator is made; with SLOW, an operation takes so many microseconds. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS, CUDA, SYSTEM, INTERNAL, BAD_ARGUMENT, BAD_USAGE, REMOTE, IN_PROGRESS };
enum { RANKS = 16, OPS = 64, NAME = 160, TRIES = 20000, MARK = 0x42 };

struct id {
    char bytes[128];
};

struct comm {
    char name[NAME];
    int nranks, rank, device, splits, state, is_gone;
    struct comm **at;
    /* Of a part of another communicator. */
    const struct comm *whole;
    int color, key;
    char what[32];
};

struct op {
    void *recv, *stream;
    size_t count;
};

static _Thread_local int depth, wrong, ops_count, inits_count;
static _Thread_local struct op ops[OPS];
static _Thread_local struct comm *inits[OPS];
static char last[256];

static int refuse(int code, const char *words, ...) {
    va_list args;
    va_start(args, words);
    vsnprintf(last, sizeof last, words, args);
    va_end(args);
    if (depth && !wrong) wrong = code;
    return code;
}

static void *driver(const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *function = library ? dlsym(library, name) : NULL;
    if (function == NULL) {
        fprintf(stderr, "the stand-in finds no %s\n", name);
        exit(1);
    }
    return function;
}

static int current_device(void) {
    int (*get)(int *), device = 0;
    *(void **)&get = driver("cuCtxGetDevice");
    return get(&device) == 0 ? device : 0;
}

static void path(char *to, size_t room, const struct comm *comm, int rank, const char *what) {
    snprintf(to, room, "%s/%s.%s.%d", getenv("STAND_IN"), comm->name, what, rank);
}

/* Gives two numbers to all ranks, and gets those of all; fails after a while. */
static int exchange(const struct comm *comm, const char *what, const int mine[2], int all[RANKS][2]) {
    char at[512], part[520];
    path(at, sizeof at, comm, comm->rank, what);
    snprintf(part, sizeof part, "%s.part", at);
    FILE *out = fopen(part, "wb");
    fwrite(mine, sizeof(int), 2, out);
    fclose(out);
    rename(part, at);
    for (int rank = 0; rank < comm->nranks; ++rank) {
        FILE *in = NULL;
        path(at, sizeof at, comm, rank, what);
        for (int tries = 0; (in = fopen(at, "rb")) == NULL; ++tries) {
            if (tries == TRIES || comm->is_gone) return refuse(REMOTE, "rank %d did not come", rank);
            usleep(500);
        }
        const size_t read = fread(all[rank], sizeof(int), 2, in);
        fclose(in);
        if (read != 2) return refuse(SYSTEM, "rank %d says nothing", rank);
    }
    return SUCCESS;
}

static int is_before(const int all[RANKS][2], int a, int b) {
    return all[a][1] < all[b][1] || (all[a][1] == all[b][1] && a < b);
}

/* Finds the ranks of a part. */
static int find_ranks(struct comm *comm) {
    int all[RANKS][2];
    const int code = exchange(comm->whole, comm->what, (const int[2]){comm->color, comm->key}, all);
    if (code != SUCCESS) return code;
    for (int other = 0; other < comm->whole->nranks; ++other) {
        comm->nranks += all[other][0] == comm->color;
        comm->rank += all[other][0] == comm->color && is_before(all, other, comm->whole->rank);
    }
    return SUCCESS;
}

static int meet(struct comm *comm) {
    int all[RANKS][2];
    const char *die = getenv("DIE");
    int code = comm->whole ? find_ranks(comm) : SUCCESS;
    if (comm->whole && comm->color < 0) {
        *comm->at = NULL;
        return code;
    }
    if (code == SUCCESS) code = exchange(comm, "init", (const int[2]){0, 0}, all);
    if (die != NULL && atoi(die) == comm->rank) raise(SIGKILL);
    return code;
}

static void *meet_later(void *at) {
    struct comm *comm = at;
    usleep(50000);
    comm->state = meet(comm);
    return NULL;
}

int ncclGetVersion(int *version) {
    *version = 23004;
    return SUCCESS;
}

int ncclGetUniqueId(struct id *id) {
    FILE *in = fopen("/dev/urandom", "rb");
    const size_t read = fread(id, sizeof *id, 1, in);
    fclose(in);
    return read == 1 ? SUCCESS : SYSTEM;
}

const char *ncclGetErrorString(int code) {
    return code == SUCCESS ? "no error" : "an error";
}

const char *ncclGetLastError(const struct comm *comm) {
    (void)comm;
    return last;
}

static struct comm *new_comm(int nranks, int rank) {
    struct comm *comm = calloc(1, sizeof *comm);
    comm->nranks = nranks;
    comm->rank = rank;
    comm->device = current_device();
    return comm;
}

/* Begins a communicator; its ranks meet now, later, or at the end of the group. */
static int begin(struct comm **at, struct comm *comm, int blocking) {
    *at = comm;
    comm->at = at;
    if (depth) {
        comm->state = blocking ? SUCCESS : IN_PROGRESS;
        inits[inits_count++] = comm;
        return SUCCESS;
    }
    if (blocking) return meet(comm);
    comm->state = IN_PROGRESS;
    pthread_t thread;
    pthread_create(&thread, NULL, meet_later, comm);
    pthread_detach(thread);
    return IN_PROGRESS;
}

int ncclCommInitRankConfig(struct comm **at, int nranks, struct id id, int rank, const int *config) {
    if (at == NULL || nranks < 1 || nranks > RANKS || rank < 0 || rank >= nranks) {
        return refuse(BAD_ARGUMENT, "no rank %d of %d", rank, nranks);
    }
    struct comm *comm = new_comm(nranks, rank);
    for (int i = 0; i < 16; ++i) sprintf(comm->name + 2 * i, "%02x", (unsigned char)id.bytes[i]);
    /* Behind size, magic and version. */
    return begin(at, comm, config == NULL || config[4] != 0);
}

int ncclCommInitRank(struct comm **at, int nranks, struct id id, int rank) {
    return ncclCommInitRankConfig(at, nranks, id, rank, NULL);
}

int ncclCommInitAll(struct comm **at, int count, const int *devices) {
    struct id id;
    ncclGetUniqueId(&id);
    int (*retain)(void **, int), (*set)(void *);
    *(void **)&retain = driver("cuDevicePrimaryCtxRetain");
    *(void **)&set = driver("cuCtxSetCurrent");
    ++depth;
    for (int rank = 0; rank < count; ++rank) {
        void *context;
        if (retain(&context, devices ? devices[rank] : rank) || set(context)) return CUDA;
        ncclCommInitRank(&at[rank], count, id, rank);
    }
    extern int ncclGroupEnd(void);
    return ncclGroupEnd();
}

int ncclCommSplit(struct comm *comm, int color, int key, struct comm **at, const int *config) {
    struct comm *part = new_comm(0, 0);
    (void)config;
    part->whole = comm;
    part->color = color;
    part->key = key;
    snprintf(part->what, sizeof part->what, "split%d", comm->splits++);
    snprintf(part->name, NAME, "%.100s.%s.%d", comm->name, part->what, color);
    return begin(at, part, 1);
}

int ncclCommShrink(struct comm *comm, const int *without, int count, struct comm **at, const int *config, int flags) {
    int rank = comm->rank;
    (void)config, (void)flags;
    for (int i = 0; i < count; ++i) rank -= without[i] < comm->rank;
    struct comm *rest = new_comm(comm->nranks - count, rank);
    snprintf(rest->name, NAME, "%.100s.shrink%d", comm->name, comm->splits++);
    return begin(at, rest, 1);
}

int ncclCommCount(const struct comm *comm, int *count) {
    return comm ? (*count = comm->nranks, SUCCESS) : refuse(BAD_ARGUMENT, "no communicator");
}

int ncclCommUserRank(const struct comm *comm, int *rank) {
    return comm ? (*rank = comm->rank, SUCCESS) : refuse(BAD_ARGUMENT, "no communicator");
}

int ncclCommGetAsyncError(const struct comm *comm, int *state) {
    return comm ? (*state = comm->state, SUCCESS) : refuse(BAD_ARGUMENT, "no communicator");
}

int ncclCommFinalize(const struct comm *comm) {
    (void)comm;
    return SUCCESS;
}

int ncclCommDestroy(struct comm *comm) {
    free(comm);
    return SUCCESS;
}

/* A thread may still look at it. */
int ncclCommAbort(struct comm *comm) {
    if (comm) comm->is_gone = 1;
    return SUCCESS;
}

int ncclCommRevoke(const struct comm *comm, int flags) {
    (void)comm, (void)flags;
    return SUCCESS;
}

static void rest(void *micros) {
    usleep((unsigned)(intptr_t)micros);
}

static int fill(const struct op *op) {
    if (getenv("SLOW") != NULL) {
        int (*call)(void *, void (*)(void *), void *);
        *(void **)&call = driver("cuLaunchHostFunc");
        if (call(op->stream, rest, (void *)(intptr_t)atoi(getenv("SLOW")))) return CUDA;
    }
    int (*set)(uint64_t, unsigned char, size_t, void *);
    *(void **)&set = driver("cuMemsetD8Async");
    const size_t bytes = sizeof(float) * op->count;
    return bytes == 0 || set((uint64_t)(uintptr_t)op->recv, MARK, bytes, op->stream) == 0 ? SUCCESS : CUDA;
}

static int operation(const struct comm *comm, void *recv, size_t count, int type, void *stream) {
    if (comm == NULL || type != 7) return refuse(BAD_ARGUMENT, "no communicator, or type %d", type);
    const struct op op = {.recv = recv, .stream = stream, .count = count};
    if (!depth) return fill(&op);
    ops[ops_count++] = op;
    return SUCCESS;
}

int ncclGroupStart(void) {
    if (depth++ == 0) wrong = ops_count = inits_count = 0;
    return SUCCESS;
}

static void *meet_now(void *comm) {
    return (void *)(intptr_t)meet(comm);
}

int ncclGroupEnd(void) {
    if (depth == 0) return refuse(BAD_USAGE, "no group");
    if (--depth) return SUCCESS;
    int code = wrong;
    pthread_t threads[OPS];
    const int blocking = inits_count == 0 || inits[0]->state != IN_PROGRESS;
    for (int i = 0; i < inits_count; ++i) pthread_create(&threads[i], NULL, blocking ? meet_now : meet_later, inits[i]);
    for (int i = 0; i < inits_count && blocking; ++i) {
        void *met;
        pthread_join(threads[i], &met);
        if (code == SUCCESS) code = (int)(intptr_t)met;
    }
    for (int i = 0; i < ops_count && code == SUCCESS; ++i) code = fill(&ops[i]);
    ops_count = 0;
    const int made = inits_count;
    inits_count = 0;
    return code == SUCCESS && made && !blocking ? IN_PROGRESS : code;
}

int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, const struct comm *comm, void *stream) {
    (void)send, (void)op;
    return operation(comm, recv, count, type, stream);
}

int ncclAllReduceConfig(const void *send, void *recv, size_t count, int type, int op, const struct comm *comm, void *stream,
                        const void *config) {
    (void)send, (void)op, (void)config;
    return operation(comm, recv, count, type, stream);
}

int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root, const struct comm *comm, void *stream) {
    (void)send, (void)root;
    return operation(comm, recv, count, type, stream);
}

int ncclAllGather(const void *send, void *recv, size_t count, int type, const struct comm *comm, void *stream) {
    (void)send;
    return operation(comm, recv, count * (size_t)comm->nranks, type, stream);
}
