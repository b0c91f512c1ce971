/* A stand-in for NCCL that the library passes calls on to: that of the tests of sends and receives
 * (kernels/tests/nccl/nccl.c), with calls that wait, configurations of all versions, collectives of bytes in the
 * memory of the process, a log of calls, and calls of its own public functions. With OLD it is as old as that one, and
 * lacks the rest.
 */
#ifndef OLD
#define ncclCommInitRankConfig base_init
#define ncclGroupStart base_start
#define ncclGroupEnd base_end
#define ncclSend base_send
#define ncclRecv base_recv
#define ncclCommGetAsyncError base_state
#define ncclCommAbort base_abort
#define ncclCommDestroy base_destroy
#define ncclCommFinalize base_finalize
#define ncclGetLastError base_last
#endif
#include "../../../../kernels/tests/nccl/nccl.c"
#ifndef OLD
#undef ncclCommInitRankConfig
#undef ncclGroupStart
#undef ncclGroupEnd
#undef ncclSend
#undef ncclRecv
#undef ncclCommGetAsyncError
#undef ncclCommAbort
#undef ncclCommDestroy
#undef ncclCommFinalize
#undef ncclGetLastError
#include <limits.h>
#include <time.h>

/* What was called, in order, for all threads. */
static char calls[1 << 16];

static void note(const char *words, ...) {
    va_list args;
    pthread_mutex_lock(&lock);
    size_t len = strlen(calls);
    va_start(args, words);
    vsnprintf(calls + len, sizeof calls - len, words, args);
    va_end(args);
    strncat(calls, ";", sizeof calls - strlen(calls) - 1);
    pthread_mutex_unlock(&lock);
}

/* The calls so far, which are forgotten. */
const char *stand_in_calls(void) {
    static char taken[sizeof calls];
    pthread_mutex_lock(&lock);
    memcpy(taken, calls, sizeof taken);
    calls[0] = 0;
    pthread_mutex_unlock(&lock);
    return taken;
}

/* ncclConfig_t by the version that added a field. */
struct whole_config {
    size_t size;
    unsigned magic, version;
    int blocking;                                            /* 2.14 */
    int cga, min_ctas, max_ctas;                             /* 2.17 */
    const char *net;
    int split_share;                                         /* 2.18 */
    int traffic;                                             /* 2.26 */
    const char *name;
    int collnet, policy, shrink_share, nvls_ctas;            /* 2.27 */
    int channels, centric;                                   /* 2.28 */
    int graph, contexts;                                     /* 2.29 */
    int peers, graph_order;                                  /* 2.30 */
    int implicit_order, signals, eager, host_cft, host_nvls; /* 2.31 */
};

static struct whole_config unset(void) {
    struct whole_config c = {.size = sizeof c, .magic = MAGIC, .version = VERSION};
    int *ints[] = {&c.blocking, &c.cga,          &c.min_ctas,  &c.max_ctas, &c.split_share, &c.traffic,  &c.collnet,
                   &c.policy,   &c.shrink_share, &c.nvls_ctas, &c.channels, &c.centric,     &c.graph,    &c.contexts,
                   &c.peers,    &c.graph_order,  &c.implicit_order, &c.signals, &c.eager,   &c.host_cft, &c.host_nvls};
    for (size_t i = 0; i < sizeof ints / sizeof *ints; ++i) {
        *ints[i] = INT_MIN;
    }
    return c;
}

/* Takes as much of a configuration as it has; fields that are newer than its version do not count. */
static int taken_config(const void *given, struct whole_config *config) {
    *config = unset();
    if (!given) {
        return SUCCESS;
    }
    struct whole_config start;
    memcpy(&start, given, 16);
    if (start.magic != MAGIC || start.size < 24 || start.size > 4096) {
        return refuse(NULL, BAD_ARGUMENT, "a configuration of %zu bytes and magic %x", start.size, start.magic);
    }
    memcpy(config, given, start.size < sizeof *config ? start.size : sizeof *config);
    if (config->version < 21700) {
        config->max_ctas = INT_MIN;
    }
    return SUCCESS;
}

static void nap(void) {
    struct timespec time = {0, 1000000};
    nanosleep(&time, NULL);
}

static int init(struct comm **comm, int nranks, struct id id, int rank, const void *given) {
    struct whole_config config;
    if (!comm) {
        return refuse(NULL, BAD_ARGUMENT, "no place for a communicator");
    }
    int code = taken_config(given, &config);
    if (code) {
        return code;
    }
    struct config base = {sizeof base, MAGIC, VERSION, 0};
    note("init %d of %d blocking %d max %d name %s", rank, nranks, config.blocking == INT_MIN ? -1 : config.blocking,
         config.max_ctas == INT_MIN ? -1 : config.max_ctas, config.name ? config.name : "-");
    code = base_init(comm, nranks, id, rank, &base);
    while (code == IN_PROGRESS && config.blocking != 0) {
        nap();
        pthread_mutex_lock(&lock);
        code = (*comm)->state;
        pthread_mutex_unlock(&lock);
    }
    return code;
}

int ncclCommInitRankConfig(struct comm **comm, int nranks, struct id id, int rank, const void *config) {
    return init(comm, nranks, id, rank, config);
}

int ncclCommInitRank(struct comm **comm, int nranks, struct id id, int rank) {
    return init(comm, nranks, id, rank, NULL);
}

int ncclCommGetAsyncError(struct comm *comm, int *state) {
    if (!comm || !state) {
        return refuse(NULL, BAD_ARGUMENT, "no communicator");
    }
    note("state");
    return base_state(comm, state);
}

const char *ncclGetLastError(struct comm *comm) {
    (void)comm;
    return base_last(NULL);
}

int ncclCommAbort(struct comm *comm) {
    return comm ? base_abort(comm) : SUCCESS;
}

/* Asks for the state by its own public function, as NCCL does. */
int ncclCommFinalize(struct comm *comm) {
    int state;
    return comm && ncclCommGetAsyncError(comm, &state) ? BAD_USAGE : comm ? base_finalize(comm) : SUCCESS;
}

int ncclCommDestroy(struct comm *comm) {
    if (comm && !comm->ended) {
        base_finalize(comm);
    }
    return comm ? base_destroy(comm) : SUCCESS;
}

int ncclCommCount(struct comm *comm, int *count) {
    return comm && count ? (*count = comm->world->nranks, SUCCESS) : refuse(NULL, BAD_ARGUMENT, "no communicator");
}

int ncclCommUserRank(struct comm *comm, int *rank) {
    return comm && rank ? (*rank = comm->rank, SUCCESS) : refuse(NULL, BAD_ARGUMENT, "no communicator");
}

/* Any code. */
int ncclCommSuspend(struct comm *comm, int code) {
    (void)comm;
    return code;
}

int ncclGroupStart(void) {
    note("start");
    return base_start();
}

static int wait_for(struct comm *comm) {
    int state;
    do {
        base_state(comm, &state);
    } while (state == IN_PROGRESS);
    return state;
}

int ncclGroupEnd(void) {
    note("end");
    struct comm *last = depth == 1 && pending ? ops[0].comm : NULL;
    int code = base_end();
    return code == IN_PROGRESS && last ? wait_for(last) : code;
}

int ncclSend(const void *from, size_t count, int type, int peer, struct comm *comm, const void *stream) {
    note("send %zu", count);
    int code = base_send(from, count, type, peer, comm, stream);
    return code == IN_PROGRESS ? wait_for(comm) : code;
}

int ncclRecv(void *to, size_t count, int type, int peer, struct comm *comm, const void *stream) {
    note("recv %zu", count);
    int code = base_recv(to, count, type, peer, comm, stream);
    return code == IN_PROGRESS ? wait_for(comm) : code;
}

/* Sums bytes, each rank with all others; in a group it is only noted. */
int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, struct comm *comm, const void *stream) {
    (void)op;
    if (!comm || type < 0 || type > 11) {
        note("refused");
        return refuse(NULL, BAD_ARGUMENT, "no communicator, or type %d", type);
    }
    note("all_reduce %zu", count);
    if (count == 0 || depth) {
        return SUCCESS;
    }
    int nranks = comm->world->nranks;
    unsigned char *all = calloc((size_t)nranks, count), *sums = calloc(1, count);
    base_start();
    for (int rank = 0; rank < nranks; ++rank) {
        if (rank != comm->rank) {
            base_send(send, count, 1, rank, comm, stream);
            base_recv(all + (size_t)rank * count, count, 1, rank, comm, stream);
        }
    }
    int code = base_end();
    code = code == IN_PROGRESS ? wait_for(comm) : code;
    memcpy(all + (size_t)comm->rank * count, send, count);
    for (int rank = 0; rank < nranks; ++rank) {
        for (size_t i = 0; i < count; ++i) {
            sums[i] = (unsigned char)(sums[i] + all[(size_t)rank * count + i]);
        }
    }
    memcpy(recv, sums, count);
    free(all);
    free(sums);
    return code;
}

int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root, struct comm *comm,
                  const void *stream) {
    (void)send, (void)recv, (void)type, (void)root, (void)comm, (void)stream;
    note("broadcast %zu", count);
    return comm ? SUCCESS : refuse(NULL, BAD_ARGUMENT, "no communicator");
}

/* Calls its own function as the whole process sees it: the one that stands before it. */
static int broadcast_by_all(struct comm *comm) {
    int (*broadcast)(const void *, void *, size_t, int, int, struct comm *, const void *);
    void *all = dlopen(NULL, RTLD_NOW), *found = all ? dlsym(all, "ncclBroadcast") : NULL;
    if (!found) {
        note("no library stands before this one");
        return BAD_USAGE;
    }
    memcpy(&broadcast, &found, sizeof found);
    return broadcast("", NULL, 9, 1, 0, comm, NULL);
}

int ncclBcast(void *at, size_t count, int type, int root, struct comm *comm, const void *stream) {
    (void)at, (void)count, (void)type, (void)root, (void)stream;
    note("bcast");
    return broadcast_by_all(comm);
}

int ncclCommResume(struct comm *comm) {
    note("resume");
    return broadcast_by_all(comm);
}

int ncclGroupSimulateEnd(void *info) {
    (void)info;
    note("simulate");
    return base_end();
}

int ncclRedOpCreatePreMulSum(int *op, void *scalar, int type, int place, struct comm *comm) {
    (void)scalar, (void)place, (void)type;
    note("op made");
    return op && comm ? (*op = 5, SUCCESS) : refuse(NULL, BAD_ARGUMENT, "no op");
}

int ncclRedOpDestroy(int op, struct comm *comm) {
    (void)comm;
    note("op %d gone", op);
    return op < 5 ? refuse(NULL, BAD_ARGUMENT, "op %d", op) : SUCCESS;
}
#endif
