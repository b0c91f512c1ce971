/* What NCCL demands of sends and receives, between threads of one process and in its memory.
 *
 * Calls do not wait: a group is taken, and its state asked for until it has ended. Only then has anything arrived. Each
 * look at a state brings one message that has met its receive, whichever the dice say, so that messages of a group come in
 * any order, and what is sent is read as late as may be. What is received is garbage before.
 *
 * Where ROUNDELAY_FAKE is set, memory and streams are those of the driver for tests: a group is taken when its stream has done
 * all that comes before it.
 *
 * Seen as errors: a send and a receive that meet with other counts or types; ranks, types and addresses that there are
 * not; a group that begins before the last has ended; another stream; ranks that all wait for each other.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, BAD_ARGUMENT = 4, BAD_USAGE = 5, REMOTE = 6, IN_PROGRESS = 7 };
enum { RANKS = 64, OPS = 4096, WORDS = 1024 };
enum { MAGIC = 0xcafebeef, VERSION = 23004, GARBAGE = 0xA5 };

struct id {
    char bytes[128];
};

struct config {
    size_t size;
    unsigned magic, version;
    int blocking;
};

struct op {
    struct comm *comm;
    int sends, peer, type, done;
    char *at;
    size_t count;
    /* Which it is of those to this peer, or from it. */
    uint64_t number;
};

struct world {
    uint64_t id, dice;
    int nranks, joined, gone;
    struct comm *of[RANKS];
    struct world *next;
};

struct comm {
    struct world *world;
    int rank, state, ended;
    const void *stream;
    struct op *ops;
    int many, open;
    uint64_t sent[RANKS], received[RANKS];
    char said[WORDS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct world *worlds;
static uint64_t ids;
static _Thread_local int depth, wrong, pending;
static _Thread_local struct op ops[OPS];
static _Thread_local char said_last[WORDS];

static int refuse(struct comm *comm, int code, const char *words, ...) {
    va_list args;
    va_start(args, words);
    vsnprintf(comm ? comm->said : said_last, WORDS, words, args);
    va_end(args);
    if (depth && !wrong) {
        wrong = code;
    }
    return code;
}

static size_t size_of(int type) {
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return type < 0 || type > 9 ? 0 : sizes[type];
}

static uint64_t roll(struct world *world) {
    world->dice = world->dice * 6364136223846793005u + 1442695040888963407u;
    return world->dice >> 33;
}

static int busy(const struct comm *comm) {
    return comm && comm->ops && comm->state == IN_PROGRESS;
}

/* The receive that a send meets, if it is issued. */
static struct op *meets(const struct op *send) {
    struct comm *to = send->comm->world->of[send->peer];
    for (int i = 0; busy(to) && i < to->many; ++i) {
        struct op *receive = &to->ops[i];
        if (!receive->sends && receive->peer == send->comm->rank && receive->number == send->number) {
            return receive;
        }
    }
    return NULL;
}

static void done(struct op *op) {
    struct comm *comm = op->comm;
    op->done = 1;
    if (--comm->open == 0) {
        free(comm->ops);
        comm->ops = NULL;
        comm->state = SUCCESS;
    }
}

/* Who waits for whom, behind what is said already. */
static void waits(const struct comm *comm, char *said) {
    for (int i = 0; i < comm->many; ++i) {
        const struct op *op = &comm->ops[i];
        size_t len = strlen(said);
        if (!op->done) {
            snprintf(said + len, WORDS - len, "%srank %d waits for rank %d to %s message %llu", len ? "; " : "", comm->rank,
                     op->peer, op->sends ? "receive" : "send", (unsigned long long)op->number);
        }
    }
}

/* One message, if any has met its receive; or nobody can go on any more. */
static void progress(struct world *world) {
    struct op *met[RANKS];
    int many = 0, waiting = 0, out = world->joined;
    for (int rank = 0; rank < world->nranks; ++rank) {
        struct comm *comm = world->of[rank];
        if (!busy(comm)) {
            out -= comm && comm->ended;
            continue;
        }
        ++waiting;
        for (int i = 0; i < comm->many && many < RANKS; ++i) {
            struct op *op = &comm->ops[i];
            if (op->sends && !op->done && meets(op)) {
                met[many++] = op;
            }
        }
    }
    if (many) {
        struct op *send = met[roll(world) % (uint64_t)many], *receive = meets(send);
        if (send->count != receive->count || send->type != receive->type) {
            struct comm *ends[] = {send->comm, receive->comm};
            for (int i = 0; i < 2; ++i) {
                refuse(ends[i], BAD_USAGE,
                       "message %llu from rank %d to rank %d has %zu elements of type %d, and room for %zu of type %d",
                       (unsigned long long)send->number, send->comm->rank, send->peer, send->count, send->type,
                       receive->count, receive->type);
                ends[i]->state = BAD_USAGE;
            }
            return;
        }
        memcpy(receive->at, send->at, send->count * size_of(send->type));
        done(receive);
        done(send);
    } else if (waiting && waiting == out && world->joined == world->nranks) {
        char said[WORDS] = "";
        for (int rank = 0; rank < world->nranks; ++rank) {
            if (busy(world->of[rank])) {
                waits(world->of[rank], said);
            }
        }
        for (int rank = 0; rank < world->nranks; ++rank) {
            if (busy(world->of[rank])) {
                refuse(world->of[rank], BAD_USAGE, "nobody can go on: %s", said);
                world->of[rank]->state = BAD_USAGE;
            }
        }
    }
}

int ncclGetVersion(int *version) {
    *version = VERSION;
    return SUCCESS;
}

const char *ncclGetErrorString(int code) {
    switch (code) {
    case SUCCESS:
        return "no error";
    case BAD_ARGUMENT:
        return "invalid argument";
    case BAD_USAGE:
        return "invalid usage";
    case REMOTE:
        return "remote process exited or there was a network error";
    case IN_PROGRESS:
        return "NCCL operation in progress";
    default:
        return "unknown result code";
    }
}

const char *ncclGetLastError(struct comm *comm) {
    if (!comm) {
        return said_last;
    }
    pthread_mutex_lock(&lock);
    if (busy(comm)) {
        comm->said[0] = 0;
        waits(comm, comm->said);
    }
    pthread_mutex_unlock(&lock);
    return comm->said;
}

int ncclGetUniqueId(struct id *id) {
    memset(id, 0, sizeof *id);
    pthread_mutex_lock(&lock);
    uint64_t number = ++ids;
    pthread_mutex_unlock(&lock);
    memcpy(id->bytes, &number, sizeof number);
    return SUCCESS;
}

static int join(struct comm **comm, int nranks, uint64_t number, int rank, const struct config *config) {
    if (config->size < sizeof *config || config->magic != MAGIC || config->version < 21400 || config->blocking != 0) {
        return refuse(NULL, BAD_ARGUMENT, "not a configuration whose calls do not wait");
    }
    if (nranks < 1 || nranks > RANKS || rank < 0 || rank >= nranks || number == 0 || number > ids) {
        return refuse(NULL, BAD_ARGUMENT, "no rank %d of %d with that name", rank, nranks);
    }
    struct world *world = worlds;
    while (world && world->id != number) {
        world = world->next;
    }
    if (!world) {
        world = calloc(1, sizeof *world);
        world->id = number;
        world->dice = number * 0x9e3779b97f4a7c15u;
        world->nranks = nranks;
        world->next = worlds;
        worlds = world;
    }
    if (world->nranks != nranks || world->of[rank]) {
        return refuse(NULL, BAD_ARGUMENT, "rank %d of %d is there already, or there are %d ranks", rank, nranks,
                      world->nranks);
    }
    *comm = calloc(1, sizeof **comm);
    (*comm)->world = world;
    (*comm)->rank = rank;
    (*comm)->state = IN_PROGRESS;
    world->of[rank] = *comm;
    if (++world->joined == nranks) {
        for (int i = 0; i < nranks; ++i) {
            /* Who did not wait for the others has an error. */
            if (world->of[i]->state == IN_PROGRESS) {
                world->of[i]->state = SUCCESS;
            }
        }
    }
    return (*comm)->state;
}

int ncclCommInitRankConfig(struct comm **comm, int nranks, struct id id, int rank, const struct config *config) {
    uint64_t number;
    memcpy(&number, id.bytes, sizeof number);
    pthread_mutex_lock(&lock);
    int code = join(comm, nranks, number, rank, config);
    pthread_mutex_unlock(&lock);
    return code;
}

int ncclCommGetAsyncError(struct comm *comm, int *state) {
    pthread_mutex_lock(&lock);
    if (busy(comm)) {
        progress(comm->world);
    }
    *state = comm->state;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int ncclCommFinalize(struct comm *comm) {
    pthread_mutex_lock(&lock);
    int code = comm->state;
    if (code == IN_PROGRESS || depth) {
        code = refuse(comm, BAD_USAGE, "rank %d ends in a group", comm->rank);
    }
    comm->ended = 1;
    pthread_mutex_unlock(&lock);
    return code;
}

/* All of a world goes with the last of its ranks. */
static int leave(struct comm *comm) {
    struct world *world = comm->world;
    comm->ended = 1;
    if (++world->gone < world->nranks) {
        return SUCCESS;
    }
    struct world **at = &worlds;
    while (*at != world) {
        at = &(*at)->next;
    }
    *at = world->next;
    for (int rank = 0; rank < world->nranks; ++rank) {
        free(world->of[rank]->ops);
        free(world->of[rank]);
    }
    free(world);
    return SUCCESS;
}

int ncclCommDestroy(struct comm *comm) {
    pthread_mutex_lock(&lock);
    int code = comm->ended ? leave(comm) : refuse(comm, BAD_USAGE, "rank %d was not finalized", comm->rank);
    pthread_mutex_unlock(&lock);
    return code;
}

int ncclCommAbort(struct comm *comm) {
    pthread_mutex_lock(&lock);
    struct world *world = comm->world;
    for (int rank = 0; rank < world->nranks; ++rank) {
        struct comm *other = world->of[rank];
        if (other && other != comm && !other->ended && (other->state == SUCCESS || other->state == IN_PROGRESS)) {
            other->state = REMOTE;
            refuse(other, REMOTE, "rank %d gave up", comm->rank);
        }
    }
    comm->state = REMOTE;
    leave(comm);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int ncclGroupStart(void) {
    if (depth++ == 0) {
        pending = 0;
        wrong = SUCCESS;
    }
    return SUCCESS;
}

/* Waits for what comes before on the stream. */
static int reach(const void *stream) {
    if (!getenv("ROUNDELAY_FAKE")) {
        return SUCCESS;
    }
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = driver ? dlsym(driver, "cuStreamSynchronize") : NULL;
    int (*synchronize)(const void *);
    memcpy(&synchronize, &found, sizeof found);
    return found && synchronize(stream) == 0 ? SUCCESS : refuse(NULL, BAD_USAGE, "no stream of the driver for tests");
}

/* The group of one rank. Ranks of a thread take a group each. */
static int issue(struct comm *comm) {
    if (comm->state != SUCCESS) {
        return comm->state == IN_PROGRESS
                   ? refuse(comm, BAD_USAGE, "rank %d begins a group before the last has ended", comm->rank)
                   : comm->state;
    }
    comm->ops = calloc((size_t)pending, sizeof *comm->ops);
    comm->many = 0;
    for (int i = 0; i < pending; ++i) {
        if (ops[i].comm != comm) {
            continue;
        }
        struct op *op = &comm->ops[comm->many++];
        *op = ops[i];
        op->number = op->sends ? comm->sent[op->peer]++ : comm->received[op->peer]++;
        if (!op->sends) {
            memset(op->at, GARBAGE, op->count * size_of(op->type));
        }
    }
    comm->open = comm->many;
    return comm->state = IN_PROGRESS;
}

int ncclGroupEnd(void) {
    if (depth == 0) {
        return refuse(NULL, BAD_USAGE, "a group ends that was not begun");
    }
    if (--depth > 0) {
        return SUCCESS;
    }
    int code = wrong;
    for (int i = 0; i < pending && code == SUCCESS; ++i) {
        code = reach(ops[i].comm->stream);
    }
    pthread_mutex_lock(&lock);
    for (int i = 0; i < pending && (code == SUCCESS || code == IN_PROGRESS); ++i) {
        int seen = 0;
        for (int j = 0; j < i; ++j) {
            seen |= ops[j].comm == ops[i].comm;
        }
        if (!seen) {
            code = issue(ops[i].comm);
        }
    }
    pthread_mutex_unlock(&lock);
    pending = 0;
    return code;
}

static int add(struct op op, const void *stream) {
    struct comm *comm = op.comm;
    if (!comm) {
        return refuse(NULL, BAD_ARGUMENT, "no communicator");
    }
    if (op.peer < 0 || op.peer >= comm->world->nranks || op.peer == comm->rank) {
        return refuse(comm, BAD_ARGUMENT, "rank %d has no peer %d", comm->rank, op.peer);
    }
    if (!size_of(op.type) || !op.at || !op.count || (uintptr_t)op.at % size_of(op.type)) {
        return refuse(comm, BAD_ARGUMENT, "rank %d has %zu elements of type %d at %p", comm->rank, op.count, op.type,
                      (void *)op.at);
    }
    if (comm->stream && comm->stream != stream) {
        return refuse(comm, BAD_USAGE, "rank %d is on another stream", comm->rank);
    }
    if (pending == OPS) {
        return refuse(comm, BAD_USAGE, "a group of more than %d", OPS);
    }
    comm->stream = stream;
    ops[pending++] = op;
    return SUCCESS;
}

/* What is in no group is one by itself. */
static int alone(struct op op, const void *stream) {
    if (depth) {
        return add(op, stream);
    }
    ncclGroupStart();
    add(op, stream);
    return ncclGroupEnd();
}

int ncclSend(const void *from, size_t count, int type, int peer, struct comm *comm, const void *stream) {
    struct op op = {.comm = comm, .sends = 1, .peer = peer, .type = type, .at = (char *)(uintptr_t)from, .count = count};
    return alone(op, stream);
}

int ncclRecv(void *to, size_t count, int type, int peer, struct comm *comm, const void *stream) {
    struct op op = {.comm = comm, .sends = 0, .peer = peer, .type = type, .at = to, .count = count};
    return alone(op, stream);
}
