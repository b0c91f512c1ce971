// A host of tuner plugins, as NCCL is one: it loads the library, asks for the newest version first, begins
// communicators, asks for costs, and ends them. Arguments: the library, and what to do: `check` calls it in every way
// and prints the nanoseconds of a call; `say` prints the lines of the log and a table after one call.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ALGORITHMS = 7, PROTOCOLS = 3, COLLECTIVES = 5, ENTRIES = ALGORITHMS * PROTOCOLS };
enum { TREE = 0, NVLS_TREE = 5, PAT = 6, SIMPLE = 2 };
enum { ALL_GATHER = 2, REDUCE_SCATTER = 3, ALL_REDUCE = 4 };

// Bytes that were freed and that the allocator keeps at hand for a thread.
enum { SLACK = 16384 };

typedef void (*Log)(int level, unsigned long flags, const char *file, int line, const char *format, ...);

typedef struct {
    int domains, fewest, most;
} Domains;

typedef struct {
    double bases[ALGORITHMS][PROTOCOLS], hops[3][ALGORITHMS][PROTOCOLS], bandwidths[5][4][3];
} Constants;

typedef int Cost(void *, int, size_t, int, float **, int, int, int, int *);
typedef int InitOld(size_t, size_t, Log, void **);
typedef int Init(void **, uint64_t, size_t, size_t, Log, Domains *, Constants *);
typedef int End(void *);
typedef int Chunk(void *, int, size_t, int, int, int, size_t *);

typedef struct {
    const char *name;
    InitOld *init;
    Cost *cost;
    End *end;
} Tuner4;

typedef struct {
    const char *name;
    Init *init;
    Cost *cost;
    End *end;
    Chunk *chunk; // In version 6 alone.
} Tuner6;

// A version of the plugin, with the functions of any version.
typedef struct {
    int version;
    Tuner4 *old;
    Tuner6 *new;
} Plugin;

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
            exit(1); \
        } \
    } while (0)

static atomic_int lines;
static atomic_int warnings;
static bool print;

static void heard(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
    (void)line;
    CHECK(file != NULL && (level == 2 || level == 3) && flags == 0x40);
    char text[1024];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    CHECK(length > 20 && length < (int)sizeof text && strncmp(text, "Roundelay: ", 11) == 0);
    atomic_fetch_add(level == 2 ? &warnings : &lines, 1);
    if (print) printf("%d %s\n", level, text);
}

// The constants of hops between nodes that NCCL 2.30 has, and values elsewhere that nobody should take.
static Constants constants(void) {
    Constants of;
    memset(&of, 0x55, sizeof of);
    const double tree[PROTOCOLS] = {5.0, 8.5, 14.0};
    memcpy(of.hops[2][TREE], tree, sizeof tree);
    of.hops[2][NVLS_TREE][SIMPLE] = 20.9;
    of.hops[2][PAT][SIMPLE] = 14.0;
    return of;
}

static Plugin version(void *library, int number) {
    char name[32];
    snprintf(name, sizeof name, "ncclTunerPlugin_v%d", number);
    void *found = dlsym(library, name);
    CHECK(found != NULL);
    Plugin plugin = {number, number == 4 ? found : NULL, number == 4 ? NULL : found};
    CHECK(strcmp(number == 4 ? plugin.old->name : plugin.new->name, "Roundelay") == 0);
    return plugin;
}

static void *begun_by(Plugin of, size_t ranks, size_t nodes, Log log, Constants *constants) {
    void *context = (void *)-1;
    Domains domains = {(int)nodes, 1, 8};
    int code = of.old ? of.old->init(ranks, nodes, log, &context)
                      : of.new->init(&context, 0x1234, ranks, nodes, log, constants ? &domains : NULL, constants);
    CHECK(code == 0 && context != (void *)-1);
    return context;
}

static void *begun(Plugin of, size_t ranks, size_t nodes, Log log) {
    Constants told = constants(), before = told;
    void *context = begun_by(of, ranks, nodes, log, &told);
    CHECK(memcmp(&told, &before, sizeof told) == 0);
    return context;
}

static void ended(Plugin of, void *context) {
    CHECK((of.old ? of.old->end(context) : of.new->end(context)) == 0);
}

static Cost *cost_of(Plugin of) {
    return of.old ? of.old->cost : of.new->cost;
}

// Asks as NCCL does: it leaves the number of channels alone.
static void asked(Plugin of, void *context, int collective, size_t bytes, float *table) {
    int channels = 77;
    float **at = (float **)(void *)table;
    CHECK(cost_of(of)(context, collective, bytes, 1, at, ALGORITHMS, PROTOCOLS, 0, &channels) == 0);
    CHECK(channels == 77);
}

// Asks for an all-reduce with a table of another form.
static void asked_by(Plugin of, void *context, void *table, int algorithms, int protocols) {
    CHECK(cost_of(of)(context, ALL_REDUCE, 4096, 1, table, algorithms, protocols, 0, NULL) == 0);
}

static const float offered[ENTRIES] = {
    48.1f, 65.5f, 92.5f, 79.0f, 136.4f, 260.5f, 300.0f, 301.0f, 302.0f, 310.0f, 311.0f,
    312.0f, 320.0f, 321.0f, 322.0f, 330.0f, 331.0f, 108.6f, 340.0f, 341.0f, 342.0f,
};

// The microseconds that are added, written down by hand: two hops where a level is missing. NCCL before 2.28 counts a
// hop of its tree over nodes that reduce in their switch as 14 us.
static float added(Plugin of, int collective, int entry, size_t ranks, size_t nodes) {
    bool missing = (nodes & (nodes - 1)) != 0;
    int algorithm = entry / PROTOCOLS, protocol = entry % PROTOCOLS;
    const float tree[PROTOCOLS] = {10.0f, 17.0f, 28.0f};
    if (!missing) return 0;
    if (collective == ALL_REDUCE && algorithm == TREE) return tree[protocol];
    if (collective == ALL_REDUCE && algorithm == NVLS_TREE && protocol == SIMPLE)
        return ranks == nodes || of.old ? 28.0f : 41.8f;
    if ((collective == ALL_GATHER || collective == REDUCE_SCATTER) && algorithm == PAT && protocol == SIMPLE)
        return 4.0f;
    return 0;
}

// Every collective, size, and set of offered algorithms and protocols, on several machines: a pair that is not offered
// never is, and the others cost what the table above says.
static void every_set(Plugin of) {
    const size_t sizes[] = {0, 1 << 20, SIZE_MAX};
    const int collectives[] = {INT_MIN, -1, 0, 1, 2, 3, 4, 5, 14, 15, INT_MAX};
    const size_t machines[][2] = {{1, 1},   {8, 1},   {72, 1},  {2, 2},   {3, 3},  {16, 2}, {24, 3},
                                  {40, 5},  {48, 6},  {56, 7},  {64, 8},  {72, 9}, {12, 12}, {96, 12},
                                  {17, 17}, {19, 6},  {800, 100}};
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
        size_t ranks = machines[m][0], nodes = machines[m][1];
        void *context = begun(of, ranks, nodes, NULL);
        for (size_t c = 0; c < sizeof collectives / sizeof *collectives; c++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
                for (int set = 0; set < 1 << (ALGORITHMS + PROTOCOLS); set++) {
                    float table[ENTRIES];
                    for (int e = 0; e < ENTRIES; e++) {
                        bool in = set >> (e / PROTOCOLS) & 1 && set >> (ALGORITHMS + e % PROTOCOLS) & 1;
                        table[e] = in ? offered[e] : -1.0f;
                    }
                    float before[ENTRIES];
                    memcpy(before, table, sizeof table);
                    asked(of, context, collectives[c], sizes[s], table);
                    for (int e = 0; e < ENTRIES; e++) {
                        float more = added(of, collectives[c], e, ranks, nodes);
                        float expected = before[e] < 0 ? -1.0f : before[e] + more;
                        CHECK(fabsf(table[e] - expected) < 0.001f);
                    }
                }
        ended(of, context);
    }
}

static bool same(const float *a, const float *b) {
    return memcmp(a, b, ENTRIES * sizeof *a) == 0;
}

// Arguments that make no sense: the answer is 0, and the table stays.
static void senseless(Plugin of) {
    Constants told = constants();
    const size_t wrong[][2] = {{0, 0}, {0, 1}, {8, 0}, {2, 3}, {SIZE_MAX, SIZE_MAX}, {SIZE_MAX, 4097}, {1, SIZE_MAX}};
    for (size_t m = 0; m < sizeof wrong / sizeof *wrong; m++)
        CHECK(begun(of, wrong[m][0], wrong[m][1], m % 2 ? heard : NULL) == NULL);
    if (of.new) {
        CHECK(of.new->init(NULL, 0, 8, 2, heard, NULL, NULL) == 0);
        const double no_times[] = {NAN, INFINITY, -INFINITY, -1.0, 1e30};
        for (size_t n = 0; n < sizeof no_times / sizeof *no_times; n++) {
            Constants bad = told;
            bad.hops[2][n % 2 ? TREE : NVLS_TREE][SIMPLE] = no_times[n];
            CHECK(begun_by(of, 24, 3, heard, &bad) == NULL);
        }
        if (of.version == 6) CHECK(of.new->chunk == NULL);
    } else {
        CHECK(of.old->init(8, 2, heard, NULL) == 0);
    }
    ended(of, NULL);
    float table[ENTRIES];
    memcpy(table, offered, sizeof table);
    asked(of, NULL, ALL_REDUCE, 4096, table);
    CHECK(same(table, offered));

    // Without constants they are the published ones.
    void *context = begun_by(of, 24, 3, NULL, NULL);
    const int counts[][2] = {{0, 3}, {-1, 3}, {7, 0}, {7, 1}, {7, 2}, {7, 4}, {7, -1}, {INT_MAX, 3}, {7, INT_MIN}};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        asked_by(of, context, table, counts[c][0], counts[c][1]);
        CHECK(same(table, offered));
    }
    asked_by(of, context, NULL, ALGORITHMS, PROTOCOLS);
    char shifted[sizeof offered + 1];
    memcpy(shifted + 1, offered, sizeof offered);
    asked_by(of, context, shifted + 1, ALGORITHMS, PROTOCOLS);
    CHECK(memcmp(shifted + 1, offered, sizeof offered) == 0 || (uintptr_t)(shifted + 1) % sizeof(float) == 0);
    // A table that ends where memory ends: nothing behind it is touched.
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
    for (int algorithms = 1; algorithms <= ALGORITHMS; algorithms++) {
        size_t size = (size_t)algorithms * PROTOCOLS * sizeof(float);
        float *last = (float *)(void *)(pages + page - size);
        memcpy(last, offered, size);
        asked_by(of, context, last, algorithms, PROTOCOLS);
        CHECK(fabsf(last[0] - offered[0] - 10.0f) < 0.001f);
    }
    munmap(pages, 2 * page);
    // Costs that are none, and orders.
    const float odd[] = {0.0f, -0.0f, NAN, INFINITY, -INFINITY, -1.0f, -2.0f, 3.4e38f};
    for (size_t o = 0; o < sizeof odd / sizeof *odd; o++) {
        float before[ENTRIES];
        for (int e = 0; e < ENTRIES; e++) before[e] = odd[o];
        memcpy(table, before, sizeof table);
        asked(of, context, ALL_REDUCE, 4096, table);
        CHECK(same(table, before));
    }
    ended(of, context);
}

// Two communicators at once keep to themselves, and a call's result is the same after any other calls, for registered
// buffers and others: the ranks of a job do not all make the same calls.
static void apart(Plugin of) {
    void *three = begun(of, 24, 3, NULL), *four = begun(of, 32, 4, NULL);
    for (int turn = 0; turn < 1000; turn++) {
        float table[ENTRIES];
        memcpy(table, offered, sizeof table);
        float **at = (float **)(void *)table;
        int pipelined = turn % 7 - 1, registered = turn % 3 - 1;
        size_t bytes = (size_t)1 << (turn % 41);
        CHECK(cost_of(of)(four, ALL_REDUCE, bytes, pipelined, at, ALGORITHMS, PROTOCOLS, registered, NULL) == 0);
        CHECK(same(table, offered));
        CHECK(cost_of(of)(three, ALL_REDUCE, bytes, pipelined, at, ALGORITHMS, PROTOCOLS, registered, NULL) == 0);
        for (int e = 0; e < ENTRIES; e++)
            CHECK(fabsf(table[e] - offered[e] - added(of, ALL_REDUCE, e, 24, 3)) < 0.001f);
    }
    ended(of, three);
    ended(of, four);
}

static uint64_t next(uint64_t *seed) {
    *seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
    return *seed;
}

typedef struct {
    Plugin of;
    void *shared;
    uint64_t seed;
} Work;

// Calls by one of several threads: of a communicator of its own, and of one that all share.
static void *in_thread(void *argument) {
    Work *work = argument;
    for (int turn = 0; turn < 15; turn++) {
        size_t nodes = 1 + next(&work->seed) % 40;
        void *own = begun(work->of, nodes * 8, nodes, heard);
        for (int call = 0; call < 500; call++) {
            int collective = (int)(next(&work->seed) % 6);
            size_t bytes = (size_t)1 << (next(&work->seed) % 64);
            bool shared = next(&work->seed) % 2;
            float table[ENTRIES];
            memcpy(table, offered, sizeof table);
            asked(work->of, shared ? work->shared : own, collective, bytes, table);
            size_t of = shared ? 3 : nodes;
            for (int e = 0; e < ENTRIES; e++)
                CHECK(fabsf(table[e] - offered[e] - added(work->of, collective, e, of * 8, of)) < 0.001f);
        }
        ended(work->of, own);
    }
    return NULL;
}

static void threads(Plugin of) {
    void *shared = begun(of, 24, 3, NULL);
    pthread_t all[4];
    Work work[4];
    for (int t = 0; t < 4; t++) {
        work[t] = (Work){of, shared, 77 + (uint64_t)t};
        CHECK(pthread_create(&all[t], NULL, in_thread, &work[t]) == 0);
    }
    for (int t = 0; t < 4; t++) CHECK(pthread_join(all[t], NULL) == 0);
    ended(of, shared);
}

static pthread_barrier_t together;

// A line for each collective and class of sizes, however many threads come to it at once and however often they call.
static void *every_class(void *argument) {
    Work *work = argument;
    for (int collective = 0; collective < 8; collective++)
        for (int class = 0; class < 64; class++) {
            pthread_barrier_wait(&together);
            for (size_t more = 0; more < 3; more++) {
                float table[ENTRIES];
                memcpy(table, offered, sizeof table);
                asked(work->of, work->shared, collective, ((size_t)1 << class) + (class > 1 ? more : 0), table);
            }
        }
    return NULL;
}

static void reported(Plugin of) {
    CHECK(pthread_barrier_init(&together, NULL, 4) == 0);
    for (int turn = 0; turn < 8; turn++) {
        atomic_store(&lines, 0);
        void *shared = begun(of, 24, 3, heard);
        CHECK(atomic_load(&lines) == 1);
        pthread_t all[4];
        Work work = {of, shared, 0};
        for (int t = 0; t < 4; t++) CHECK(pthread_create(&all[t], NULL, every_class, &work) == 0);
        for (int t = 0; t < 4; t++) CHECK(pthread_join(all[t], NULL) == 0);
        CHECK(atomic_load(&lines) == 1 + COLLECTIVES * 64);
        ended(of, shared);
    }
    CHECK(pthread_barrier_destroy(&together) == 0);
}

// Random calls: no crash, no memory, and nothing is named that was not offered.
static void random_calls(Plugin of, int calls) {
    uint64_t seed = 42;
    const size_t nodes[] = {1, 2, 3, 5, 12};
    void *contexts[5];
    for (int c = 0; c < 5; c++) contexts[c] = begun(of, nodes[c] * 4, nodes[c], NULL);
    size_t before = 0;
    for (int call = 0; call < calls; call++) {
        if (call == 1000) before = mallinfo2().uordblks;
        float table[ENTRIES], own[ENTRIES];
        for (int e = 0; e < ENTRIES; e++) {
            uint32_t bits = (uint32_t)next(&seed);
            memcpy(&table[e], &bits, sizeof bits);
            if (bits % 3 == 0) table[e] = -1.0f;
            if (bits % 3 == 1) table[e] = (float)(bits % 100000) / 10.0f;
        }
        memcpy(own, table, sizeof table);
        uint64_t word = next(&seed);
        int collective = word % 4 ? (int)(word >> 8) % 16 : (int)(word >> 16);
        size_t bytes = (size_t)(next(&seed) >> word % 64);
        int channels = 77;
        CHECK(cost_of(of)(contexts[word % 5], collective, bytes, (int)next(&seed), (float **)(void *)own, ALGORITHMS,
                          PROTOCOLS, (int)next(&seed), &channels) == 0 && channels == 77);
        for (int e = 0; e < ENTRIES; e++) {
            bool kept = memcmp(&own[e], &table[e], sizeof *own) == 0;
            CHECK(kept || (table[e] > 0 && own[e] > table[e] && own[e] - table[e] < 50.0f + table[e] / 1e6f));
        }
    }
    CHECK(mallinfo2().uordblks < before + SLACK);
    for (int c = 0; c < 5; c++) ended(of, contexts[c]);
}

// Communicators come and go without a trace.
static void come_and_go(Plugin of) {
    size_t before = 0;
    for (int turn = 0; turn < 2000; turn++) {
        if (turn == 100) before = mallinfo2().uordblks;
        ended(of, begun(of, 40, (size_t)(turn % 5 + 1), heard));
    }
    CHECK(mallinfo2().uordblks < before + SLACK);
}

static double nanoseconds(Plugin of) {
    void *context = begun(of, 24, 3, heard);
    double best = 1e9;
    for (int batch = 0; batch < 200; batch++) {
        struct timespec start, end;
        float table[ENTRIES];
        memcpy(table, offered, sizeof table);
        clock_gettime(CLOCK_MONOTONIC, &start);
        for (int call = 0; call < 1000; call++) asked(of, context, ALL_REDUCE, 1 << 20, table);
        clock_gettime(CLOCK_MONOTONIC, &end);
        double took = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
        if (took / 1000 < best) best = took / 1000;
    }
    ended(of, context);
    return best;
}

int main(int count, char **words) {
    CHECK(count == 3);
    void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
    if (strcmp(words[2], "say") == 0) {
        print = true;
        Plugin of = version(library, 6);
        void *context = begun(of, 24, 3, heard);
        float table[ENTRIES];
        memcpy(table, offered, sizeof table);
        asked(of, context, ALL_REDUCE, 1 << 20, table);
        float again[ENTRIES];
        memcpy(again, offered, sizeof again);
        asked(of, context, ALL_REDUCE, (1 << 20) + 4, again);
        CHECK(same(table, again));
        ended(of, context);
        printf("%.1f %.1f\n", (double)table[0], (double)table[NVLS_TREE * PROTOCOLS + SIMPLE]);
        return 0;
    }
    // NCCL closes the library after its last communicator, and opens it again.
    for (int turn = 0; turn < 50; turn++) {
        void *again = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
        CHECK(again == library && dlclose(again) == 0);
    }
    CHECK(dlsym(library, "ncclTunerPlugin_v7") == NULL && dlsym(library, "ncclTunerPlugin_v3") == NULL);
    for (int number = 6; number >= 4; number--) {
        Plugin of = version(library, number);
        every_set(of);
        senseless(of);
        apart(of);
        threads(of);
        reported(of);
        random_calls(of, number == 6 ? 1000000 : 50000);
        come_and_go(of);
        double took = nanoseconds(of);
        printf("v%d: %.0f ns a call\n", number, took);
        CHECK(took < 1000.0);
    }
    CHECK(atomic_load(&warnings) == 0);
    CHECK(dlclose(library) == 0);
    return 0;
}
