/* Calls of groups, of several threads and of several versions, through the library: `group LIBRARY BEHIND WHAT`.
 * Prints what the stand-in behind the library saw. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct id {
    char bytes[128];
};

static void *library;

static void *found(const char *name) {
    void *of = dlsym(library, name);
    if (!of) {
        printf("%s is missing\n", name);
        exit(1);
    }
    return of;
}

#define CODE(NAME, ...) ((int (*)())found("nccl" #NAME))(__VA_ARGS__)
#define TEXT(NAME, ...) ((const char *(*)())found("nccl" #NAME))(__VA_ARGS__)
#define SHOW(WHAT) printf("%s = %d\n", #WHAT, WHAT)

static const void *const null;
static struct id id;
static void *comms[8];
static int nranks = 1;
static char bytes[64];

static void *join(void *at) {
    int rank = (int)(intptr_t)at;
    return (void *)(intptr_t)CODE(CommInitRank, &comms[rank], nranks, id, rank);
}

static void *join_and_reduce(void *at) {
    int rank = (int)(intptr_t)at;
    unsigned char given[4] = {(unsigned char)rank, 1, 2, 3}, got[4];
    int code = CODE(CommInitRank, &comms[rank], nranks, id, rank);
    code |= CODE(AllReduce, given, got, sizeof given, 1, 0, comms[rank], null);
    code |= CODE(CommDestroy, comms[rank]);
    int sum = nranks * (nranks - 1) / 2;
    return (void *)(intptr_t)(code ? code : got[0] == sum && got[1] == nranks && got[3] == 3 * nranks ? 0 : -1);
}

static int reduce(size_t count) {
    return CODE(AllReduce, bytes, bytes, count, 1, 0, comms[0], null);
}

static void alone(void) {
    CODE(GetUniqueId, &id);
    SHOW(CODE(CommInitRank, &comms[0], 1, id, 0));
}

/* A group as NCCL's users write it. */
static void order(void) {
    alone();
    int op;
    SHOW(CODE(GroupStart));
    SHOW(reduce(1));
    SHOW(CODE(GroupStart));
    SHOW(CODE(Broadcast, bytes, bytes, (size_t)2, 1, 0, comms[0], null));
    SHOW(CODE(GroupEnd));
    SHOW(CODE(RedOpCreatePreMulSum, &op, bytes, 1, 1, comms[0]));
    SHOW(CODE(AllReduce, bytes, bytes, (size_t)3, 1, op, comms[0], null));
    /* An op may go before the group ends. */
    SHOW(CODE(RedOpDestroy, op, comms[0]));
    SHOW(CODE(GroupEnd));
    SHOW(reduce(0));
    SHOW(CODE(GroupStart));
    SHOW(reduce(4));
    SHOW(CODE(GroupSimulateEnd, null));
    SHOW(CODE(GroupEnd));
}

static void errors(void) {
    alone();
    SHOW(CODE(GroupStart));
    SHOW(CODE(AllReduce, bytes, bytes, (size_t)1, 77, 0, comms[0], null));
    SHOW(CODE(GroupEnd));
    printf("%s\n", TEXT(GetLastError, null));
    /* The stand-in has no such function. */
    SHOW(CODE(GroupStart));
    SHOW(reduce(5));
    SHOW(CODE(AlltoAll, bytes, bytes, (size_t)1, 1, comms[0], null));
    SHOW(CODE(GroupEnd));
    printf("%s\n", TEXT(GetLastError, null));
    SHOW(CODE(CommRevoke, comms[0], 0));
    printf("%s\n", TEXT(GetLastError, null));
    SHOW(reduce(0));
    SHOW(CODE(CommCount, null, null));
    printf("%s\n", TEXT(GetLastError, null));
    for (int code = -1; code < 10; ++code) {
        SHOW(CODE(CommSuspend, comms[0], code));
    }
}

/* A thread asks for the state of a communicator whose thread is inside. */
static void states(void) {
    pthread_t thread;
    void *code;
    int state = -1;
    nranks = 2;
    CODE(GetUniqueId, &id);
    pthread_create(&thread, NULL, join, (void *)0);
    while (!*(void *volatile *)&comms[0]) {
        usleep(100);
    }
    SHOW(CODE(CommGetAsyncError, comms[0], &state));
    printf("state %d\n", state);
    SHOW(CODE(CommAbort, comms[0]));
    pthread_join(thread, &code);
    printf("the thread got %d\n", (int)(intptr_t)code);
}

static void threads(void) {
    pthread_t all[8];
    CODE(GetUniqueId, &id);
    nranks = 8;
    for (int rank = 0; rank < nranks; ++rank) {
        pthread_create(&all[rank], NULL, join_and_reduce, (void *)(intptr_t)rank);
    }
    for (int rank = 0; rank < nranks; ++rank) {
        void *code;
        pthread_join(all[rank], &code);
        printf("rank %d: %d\n", rank, (int)(intptr_t)code);
    }
}

/* ncclConfig_t as far as each version has it. */
static void configs(void) {
    struct {
        size_t size;
        unsigned magic, version;
        int blocking, cga, min, max;
        const char *net;
        int split, traffic;
        const char *name;
        int rest[20];
    } config;
    static const struct {
        size_t size;
        unsigned version;
    } all[] = {{24, 21400}, {40, 21700}, {48, 21805}, {64, 22601}, {80, 22703}, {88, 22803},
               {96, 22902}, {104, 23004}, {120, 23100}, {240, 23800}};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
        memset(&config, 0xa5, sizeof config);
        config.size = all[i].size;
        config.magic = 0xcafebeef;
        config.version = all[i].version;
        config.blocking = 1;
        config.max = all[i].size >= 40 ? 7 : 1234;
        config.net = NULL;
        config.name = all[i].size >= 64 ? "name" : (const char *)1;
        CODE(GetUniqueId, &id);
        printf("%u: %d\n", all[i].version, CODE(CommInitRankConfig, &comms[0], 1, id, 0, &config));
    }
    config.magic = 1;
    printf("magic: %d\n", CODE(CommInitRankConfig, &comms[0], 1, id, 0, &config));
    config.magic = 0xcafebeef;
    config.size = 3;
    printf("size: %d\n", CODE(CommInitRankConfig, &comms[0], 1, id, 0, &config));
    /* A call that does not wait. */
    config.size = 24;
    config.blocking = 0;
    CODE(GetUniqueId, &id);
    int state, code = CODE(CommInitRankConfig, &comms[0], 2, id, 0, &config);
    printf("does not wait: %d, ", code);
    code = CODE(CommGetAsyncError, comms[0], &state);
    printf("%d with state %d\n", code, state);
    code = CODE(CommInitRankConfig, &comms[1], 2, id, 1, &config);
    printf("the last: %d, ", code);
    code = CODE(CommGetAsyncError, comms[0], &state);
    printf("%d with state %d\n", code, state);
}

/* The second of two ranks, which does not wait. */
static void second(void) {
    struct {
        size_t size;
        unsigned magic, version;
        int blocking, rest;
    } config = {24, 0xcafebeef, 21400, 0, 0};
    CODE(GetUniqueId, &id);
    SHOW(CODE(CommInitRankConfig, &comms[1], 2, id, 1, &config));
    SHOW(CODE(AllReduce, null, null, (size_t)1, 1, 0, null, null));
}

static void scalable(void) {
    SHOW(CODE(CommInitRankScalable, &comms[1], 2, 1, 1, &id, null));
}

/* Functions that call public functions of their own. */
static void again(void) {
    alone();
    SHOW(CODE(Bcast, bytes, (size_t)9, 1, 0, comms[0], null));
    SHOW(CODE(CommResume, comms[0]));
    SHOW(CODE(CommFinalize, comms[0]));
    SHOW(CODE(CommDestroy, comms[0]));
}

/* A library that lacks most functions. */
static void old(void) {
    int version = 0;
    SHOW(CODE(GetVersion, &version));
    printf("version %d\n", version);
    SHOW(CODE(CommCount, comms[0], &version));
    printf("%s\n", TEXT(GetLastError, null));
    SHOW(CODE(GroupStart));
    SHOW(CODE(AllReduceConfig, bytes, bytes, (size_t)1, 1, 0, null, null, null));
    SHOW(CODE(GroupEnd));
    printf("%s\n", TEXT(GetLastError, null));
    SHOW(CODE(GroupStart));
    SHOW(CODE(GroupEnd));
}

int main(int count, char **args) {
    static const struct {
        const char *name;
        void (*of)(void);
    } all[] = {{"order", order}, {"errors", errors}, {"states", states}, {"threads", threads},
               {"configs", configs}, {"second", second}, {"scalable", scalable}, {"again", again}, {"old", old}};
    if (count != 4 || !(library = dlopen(args[1], RTLD_NOW | RTLD_GLOBAL))) {
        printf("group LIBRARY BEHIND WHAT: %s\n", dlerror());
        return 1;
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
        if (strcmp(args[3], all[i].name) == 0) {
            all[i].of();
        }
    }
    void *behind = dlopen(args[2], RTLD_NOW | RTLD_NOLOAD);
    const char *(*calls)(void) = NULL;
    void *of = behind ? dlsym(behind, "stand_in_calls") : NULL;
    memcpy(&calls, &of, sizeof of);
    printf("%s\n", of ? calls() : "");
    return 0;
}
