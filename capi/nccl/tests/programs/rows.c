/* Every function as a table of calls that need no GPU, each in a process of its own, with what it returned: `rows
 * LIBRARY`. A call that ends its process is told as such. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct id {
    char bytes[128];
};

struct team {
    int nranks, rank, stride;
};

struct config {
    size_t size;
    unsigned magic, version;
    int words[40];
};

static void *library;
static const struct id no_id;
static const struct team no_team;
static const void *const null;

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
#define TEAM(NAME, ...) ((struct team(*)())found("nccl" #NAME))(__VA_ARGS__)
#define NONE(NAME) ((void (*)())found("nccl" #NAME))()

/* A row is made in a child, whose end is seen. */
#define ROW(FORMAT, CALL)                                        \
    fflush(stdout);                                              \
    if (fork() == 0) {                                           \
        printf("%s = " FORMAT "\n", #CALL, CALL);                \
        fflush(stdout);                                          \
        _exit(0);                                                \
    } else {                                                     \
        int state;                                               \
        wait(&state);                                            \
        if (WIFSIGNALED(state)) {                                \
            printf("%s ends the process\n", #CALL);              \
        }                                                        \
    }

#define ONE(NAME, ...) ROW("%d", CODE(NAME, __VA_ARGS__))

static struct config config(size_t size, unsigned magic, unsigned version) {
    struct config made = {.size = size, .magic = magic, .version = version};
    for (int i = 0; i < 40; ++i) {
        made.words[i] = INT32_MIN;
    }
    return made;
}

static int text_is(const char *text, const char *words) {
    return strstr(text, words) != NULL;
}

/* Codes of several calls, one behind the other. */
static int grouped(int starts, int bad, int ends) {
    int codes = 0;
    for (int i = 0; i < starts; ++i) {
        codes = codes * 10 + CODE(GroupStart);
    }
    if (bad) {
        codes = codes * 10 + CODE(AllReduce, null, null, (size_t)1, 7, 0, null, null);
    }
    for (int i = 0; i < ends; ++i) {
        codes = codes * 10 + CODE(GroupEnd);
    }
    return codes;
}

static int version(void) {
    int version = 0;
    return CODE(GetVersion, &version) ? -1 : version;
}

static int unique_ids_differ(void) {
    struct id one = {{0}}, other = {{0}};
    return CODE(GetUniqueId, &one) == 0 && CODE(GetUniqueId, &other) == 0 && memcmp(&one, &other, sizeof one);
}

int main(int count, char **args) {
    if (count != 2 || !(library = dlopen(args[1], RTLD_NOW))) {
        printf("rows LIBRARY: %s\n", dlerror());
        return 1;
    }
    void *comm = NULL;
    int word = 0;
    size_t size = 0;
    uint64_t value = 0;
    struct config made = config(24, 0xcafebeef, 21400);
    ROW("%d", version())
    ROW("%d", unique_ids_differ())
    ONE(GetVersion, null)
    ONE(GetUniqueId, null)
    for (int code = -1; code < 10; ++code) {
        printf("%d: ", code);
        ROW("%s", TEXT(GetErrorString, code))
    }
    ROW("%s", TEXT(GetLastError, null))
    ROW("%d", (NONE(ResetDebugInit), 0))

    ONE(CommInitRank, &comm, 1, no_id, 0)
    ONE(CommInitRank, null, 1, no_id, 0)
    ONE(CommInitRank, &comm, 0, no_id, 0)
    ONE(CommInitRank, &comm, 2, no_id, 2)
    ONE(CommInitRank, &comm, 2, no_id, -1)
    ONE(CommInitRankConfig, &comm, 1, no_id, 0, null)
    ONE(CommInitRankConfig, &comm, 1, no_id, 0, &made)
    ONE(CommInitRankScalable, &comm, 1, 0, 1, &no_id, null)
    ONE(CommInitAll, &comm, 1, null)
    ONE(CommInitAll, null, 1, null)
    ONE(CommInitAll, &comm, 0, null)
    ONE(CommFinalize, null)
    ONE(CommDestroy, null)
    ONE(CommAbort, null)
    ONE(CommRevoke, null, 0)
    ONE(CommSplit, null, 0, 0, &comm, null)
    ONE(CommShrink, null, null, 0, &comm, null, 0)
    ONE(CommGetUniqueId, null, null)
    ONE(CommGrow, null, 1, null, 0, &comm, null)
    ONE(CommSuspend, null, 0)
    ONE(CommResume, null)
    ONE(CommGetAsyncError, null, &word)
    ONE(CommGetAsyncError, null, null)
    ONE(CommCount, null, &word)
    ONE(CommCuDevice, null, &word)
    ONE(CommUserRank, null, &word)
    ONE(CommMemStats, null, 0, &value)
    ONE(CommQueryProperties, null, null)
    ONE(MemAlloc, null, (size_t)0)
    ONE(MemFree, null)
    ONE(CommRegister, null, null, (size_t)0, null)
    ONE(CommDeregister, null, null)
    ONE(CommWindowRegister, null, null, (size_t)0, null, 0)
    ONE(CommWindowDeregister, null, null)
    ONE(WinGetUserPtr, null, null, null)
    ONE(RedOpCreatePreMulSum, &word, null, 7, 1, null)
    ONE(RedOpDestroy, 5, null)
    ONE(RedOpDestroy, 0, null)

    ONE(AllReduce, null, null, (size_t)1, 7, 0, null, null)
    ONE(AllReduce, null, null, (size_t)0, 7, 0, null, null)
    ONE(Reduce, null, null, (size_t)1, 7, 0, 0, null, null)
    ONE(ReduceScatter, null, null, (size_t)1, 7, 0, null, null)
    ONE(Bcast, null, (size_t)1, 7, 0, null, null)
    ONE(Broadcast, null, null, (size_t)1, 7, 0, null, null)
    ONE(AllGather, null, null, (size_t)1, 7, null, null)
    ONE(AlltoAll, null, null, (size_t)1, 7, null, null)
    ONE(Gather, null, null, (size_t)1, 7, 0, null, null)
    ONE(Scatter, null, null, (size_t)1, 7, 0, null, null)
    ONE(Send, null, (size_t)1, 7, 0, null, null)
    ONE(Recv, null, (size_t)1, 7, 0, null, null)
    ONE(AllReduceConfig, null, null, (size_t)1, 7, 0, null, null, null)
    ONE(ReduceConfig, null, null, (size_t)1, 7, 0, 0, null, null, null)
    ONE(ReduceScatterConfig, null, null, (size_t)1, 7, 0, null, null, null)
    ONE(BroadcastConfig, null, null, (size_t)1, 7, 0, null, null, null)
    ONE(AllGatherConfig, null, null, (size_t)1, 7, null, null, null)
    ONE(AlltoAllConfig, null, null, (size_t)1, 7, null, null, null)
    ONE(GatherConfig, null, null, (size_t)1, 7, 0, null, null, null)
    ONE(ScatterConfig, null, null, (size_t)1, 7, 0, null, null, null)
    ONE(PutSignal, null, (size_t)1, 7, 0, null, (size_t)0, 0, 0, 0u, null, null)
    ONE(Signal, 0, 0, 0, 0u, null, null)
    ONE(WaitSignal, 0, null, null, null)

    ROW("%d", CODE(GroupStart))
    ROW("%d", CODE(GroupEnd))
    ROW("%d", CODE(GroupSimulateEnd, null))
    ROW("%d", grouped(1, 0, 1))
    ROW("%d", grouped(3, 0, 3))
    ROW("%d", grouped(1, 0, 2))
    ROW("%d", grouped(1, 1, 1))
    ROW("%d", grouped(2, 1, 2))
    ROW("%d", (CODE(AllReduce, null, null, (size_t)1, 7, 0, null, null), text_is(TEXT(GetLastError, null), "Roundelay")))

    ONE(DevCommCreate, null, null, null)
    ONE(DevCommDestroy, null, null)
    ONE(GetLsaMultimemDevicePointer, null, (size_t)0, null)
    ONE(GetMultimemDevicePointer, null, (size_t)0, null, null)
    ONE(GetLsaDevicePointer, null, (size_t)0, 0, null)
    ONE(GetPeerDevicePointer, null, (size_t)0, 0, null)
    ONE(GetMultimemDeviceLeInfo, null, (size_t)0, &word, &size)
    ONE(GetCftDeviceLeInfo, null, (size_t)0, 0, no_team, &word, &size)
    ONE(GetPeerDeviceLeInfo, null, (size_t)0, 0, &word, &size)
    ROW("%d", TEAM(TeamWorld, null).nranks)
    ROW("%d", TEAM(TeamLsa, null).nranks)
    ROW("%d", TEAM(TeamRail, null).nranks)
    ROW("%d", TEAM(TeamCft, null, 0).nranks)
    ROW("%d", TEAM(TeamCftMultimem, null).nranks)
    ONE(TeamRankToWorld, null, no_team, 0)
    ONE(TeamRankToLsa, null, no_team, 0)
    ONE(LsaBarrierCreateRequirement, no_team, 1, null, null)
    ONE(GinBarrierCreateRequirement, null, no_team, 1, null, null)
    ONE(GinOutboxCreateRequirement, 1, 1, null, null)
    ONE(GinInboxA2ACreateRequirement, no_team, 1, 1, null, null)
    ONE(LLA2ACalcSlots, 16, 8)
    ONE(LLA2ACreateRequirement, 1, 1, null, null)

    ONE(ParamBind, null, null)
    ONE(ParamBind, null, "NCCL_DEBUG")
    ONE(ParamGetI8, null, null)
    ONE(ParamGetI16, null, null)
    ONE(ParamGetI32, null, null)
    ONE(ParamGetI64, null, null)
    ONE(ParamGetU8, null, null)
    ONE(ParamGetU16, null, null)
    ONE(ParamGetU32, null, null)
    ONE(ParamGetU64, null, null)
    ONE(ParamGetStr, null, null)
    ONE(ParamGet, null, null, 0, null)
    ONE(ParamGetParameter, null, null, null)
    ONE(ParamGetAllParameterKeys, null, null)
    ROW("%d", (NONE(ParamDumpAll), 0))
    ONE(SetEncryption, null)
    return 0;
}
