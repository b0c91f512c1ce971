/* Runs exported collectives beside MPI's own, and compares every byte. Whatever is wrong is printed, and the exit
 * code is 1. For sums of floats, whose order is the author's, a digest of each rank's output is printed: the tests
 * compare it with the host engine's.
 *
 *     driver [leaks]     with `leaks`, also makes and frees communicators more often than MPI has numbers for */
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static int rank, ranks, wrong;

#define EXPECT(condition, ...)                          \
    do {                                                \
        if (!(condition) && wrong++ < 20) {             \
            printf("rank %d of %d: ", rank, ranks);     \
            printf(__VA_ARGS__);                        \
            printf(" (line %d)\n", __LINE__);           \
            fflush(stdout);                             \
        }                                               \
    } while (0)

#define MUST(call)                                                            \
    do {                                                                      \
        if ((call) != MPI_SUCCESS) {                                          \
            fprintf(stderr, "rank %d: line %d: %s\n", rank, __LINE__, #call); \
            MPI_Abort(MPI_COMM_WORLD, 3);                                     \
        }                                                                     \
    } while (0)

static size_t inputs(const struct algorithm *a, int of) {
    switch (a->collective) {
    case REDUCE_SCATTER:
    case ALL_TO_ALL:
        return (size_t)ranks;
    case BROADCAST:
        return of == a->root;
    case SCATTER:
        return of == a->root ? (size_t)ranks : 0;
    default:
        return 1;
    }
}

static size_t outputs(const struct algorithm *a, int of) {
    switch (a->collective) {
    case ALL_GATHER:
    case ALL_TO_ALL:
        return (size_t)ranks;
    case REDUCE:
        return of == a->root;
    case GATHER:
        return of == a->root ? (size_t)ranks : 0;
    default:
        return 1;
    }
}

static int reduces(const struct algorithm *a) {
    return a->collective == ALL_REDUCE || a->collective == REDUCE_SCATTER || a->collective == REDUCE;
}

/* The same by MPI. */
static void own(const struct algorithm *a, const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm) {
    switch (a->collective) {
    case ALL_REDUCE:
        MUST(MPI_Allreduce(in, out, count, type, op, comm));
        break;
    case REDUCE_SCATTER:
        MUST(MPI_Reduce_scatter_block(in, out, count, type, op, comm));
        break;
    case ALL_GATHER:
        MUST(MPI_Allgather(in, count, type, out, count, type, comm));
        break;
    case BROADCAST: {
        MPI_Aint lower, extent;
        MUST(MPI_Type_get_extent(type, &lower, &extent));
        if (rank == a->root && count > 0) {
            MUST(MPI_Sendrecv(in, count, type, 0, 0, out, count, type, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
        }
        MUST(MPI_Bcast(out, count, type, a->root, comm));
        break;
    }
    case REDUCE:
        MUST(MPI_Reduce(in, out, count, type, op, a->root, comm));
        break;
    case SCATTER:
        MUST(MPI_Scatter(in, count, type, out, count, type, a->root, comm));
        break;
    case GATHER:
        MUST(MPI_Gather(in, count, type, out, count, type, a->root, comm));
        break;
    case ALL_TO_ALL:
        MUST(MPI_Alltoall(in, count, type, out, count, type, comm));
        break;
    }
}

/* The same numbers as the tests make. */
static uint32_t dice(uint32_t of, uint32_t at) {
    uint32_t x = at * 2654435761u + of * 40503u + 12345u;
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

static void *room(size_t bytes) {
    void *memory = malloc(bytes + 1);
    if (memory == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    memset(memory, 0xa5, bytes + 1);
    return memory;
}

/* A call beside MPI's own on inputs of any bytes of an integer type. */
static void compare(const struct algorithm *a, int count, MPI_Datatype type, size_t size, MPI_Op op, MPI_Comm comm,
                    int in_place, const char *what) {
    const size_t in = inputs(a, rank) * (size_t)count * size, out = outputs(a, rank) * (size_t)count * size;
    const size_t unit = (size_t)count * size;
    uint8_t *from = room(in), *to = room(out), *expected = room(out);
    for (size_t i = 0; i < in; i++) {
        from[i] = (uint8_t)dice((uint32_t)rank, (uint32_t)i);
    }
    own(a, from, expected, count, type, op, comm);
    int error;
    if (!in_place) {
        error = a->call(from, to, count, type, op, comm);
    } else {
        const int at_root = rank == a->root;
        switch (a->collective) {
        case ALL_REDUCE:
            memcpy(to, from, in);
            error = a->call(MPI_IN_PLACE, to, count, type, op, comm);
            break;
        case ALL_GATHER:
            memcpy(to + (size_t)rank * unit, from, in);
            error = a->call(MPI_IN_PLACE, to, count, type, op, comm);
            break;
        case REDUCE_SCATTER:
            error = a->call(from, from + (size_t)rank * unit, count, type, op, comm);
            memcpy(to, from + (size_t)rank * unit, out);
            break;
        case REDUCE:
        case BROADCAST:
            if (at_root) {
                memcpy(to, from, in);
            }
            error = a->call(at_root ? MPI_IN_PLACE : from, to, count, type, op, comm);
            break;
        case GATHER:
            if (at_root) {
                memcpy(to + (size_t)rank * unit, from, in);
            }
            error = a->call(at_root ? MPI_IN_PLACE : from, to, count, type, op, comm);
            break;
        case SCATTER:
            error = a->call(from, at_root ? MPI_IN_PLACE : to, count, type, op, comm);
            if (at_root) {
                memcpy(to, from + (size_t)rank * unit, out);
            }
            break;
        default:
            error = a->call(MPI_IN_PLACE, to, count, type, op, comm);
            break;
        }
    }
    EXPECT(error == MPI_SUCCESS, "%s, %s, %d elements: error %d", a->name, what, count, error);
    EXPECT(memcmp(to, expected, out) == 0, "%s, %s, %d elements: not what MPI has", a->name, what, count);
    EXPECT(to[out] == 0xa5, "%s, %s, %d elements: writes behind the output", a->name, what, count);
    free(from), free(to), free(expected);
}

/* Sums of floats, whose bits depend on the order. */
static void digest(const struct algorithm *a, int count) {
    const size_t in = inputs(a, rank) * (size_t)count, out = outputs(a, rank) * (size_t)count;
    float *from = room(in * sizeof *from), *to = room(out * sizeof *to);
    for (size_t i = 0; i < in; i++) {
        const uint32_t x = dice((uint32_t)rank, (uint32_t)i);
        from[i] = (float)(x >> 8) * (float)(1 << (x & 7));
    }
    const int error = a->call(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(error == MPI_SUCCESS, "%s, %d floats: error %d", a->name, count, error);
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < out * sizeof *to; i++) {
        hash = (hash ^ ((uint8_t *)to)[i]) * 0x100000001b3u;
    }
    /* One line at a time: rank 0 prints all. */
    uint64_t all[64];
    MUST(MPI_Gather(&hash, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD));
    for (int of = 0; rank == 0 && of < ranks; of++) {
        printf("digest %s %d %d %016llx\n", a->name, count, of, (unsigned long long)all[of]);
    }
    free(from), free(to);
}

/* A pair with a gap between it and the next: op works on pairs of MPI_SHORT and MPI_INT in 16 bytes. */
struct pair {
    int32_t number;
    int16_t half;
    int16_t gap;
    int64_t outside;
};

static void add_pairs(void *in, void *inout, int *len, MPI_Datatype *type) {
    MPI_Aint lower, extent;
    MPI_Type_get_true_extent(*type, &lower, &extent);
    struct pair *a = (void *)((char *)in + lower), *b = (void *)((char *)inout + lower);
    for (int i = 0; i < *len; i++) {
        b[i].number = (int32_t)((uint32_t)a[i].number + (uint32_t)b[i].number);
        b[i].half = (int16_t)(a[i].half ^ b[i].half);
    }
}

/* Pairs that begin at their address, or that many before it. */
static MPI_Datatype pairs(int before) {
    MPI_Datatype bare, whole;
    int lengths[2] = {1, 1};
    const MPI_Aint lower = -before * (MPI_Aint)sizeof(struct pair);
    MPI_Aint places[2] = {lower, lower + 4};
    MPI_Datatype types[2] = {MPI_INT32_T, MPI_INT16_T};
    MUST(MPI_Type_create_struct(2, lengths, places, types, &bare));
    MUST(MPI_Type_create_resized(bare, lower, sizeof(struct pair), &whole));
    MUST(MPI_Type_commit(&whole));
    MUST(MPI_Type_free(&bare));
    return whole;
}

/* Whether MPI itself reduces types that begin before their address: MPICH 5.0 crashes in its own MPI_Allreduce. */
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 50000000
enum { REDUCES_BEFORE = 0 };
#else
enum { REDUCES_BEFORE = 1 };
#endif

/* What lies in gaps stays, and what an op does on a derived type is done. */
static void gaps(const struct algorithm *a, int count, int in_place, int before) {
    const size_t in = inputs(a, rank) * (size_t)count, out = outputs(a, rank) * (size_t)count;
    struct pair *from = room(in * sizeof *from), *to = room(out * sizeof *to), *expected = room(out * sizeof *to);
    for (size_t i = 0; i < in; i++) {
        const uint32_t x = dice((uint32_t)rank, (uint32_t)i);
        from[i].number = (int32_t)x;
        from[i].half = (int16_t)(x >> 3);
    }
    if (in_place) {
        memcpy(to, from, in * sizeof *from);
        memcpy(expected, from, in * sizeof *from);
    }
    MPI_Datatype type = pairs(before);
    MPI_Op op;
    MUST(MPI_Op_create(add_pairs, 1, &op));
    const void *given = in_place ? MPI_IN_PLACE : from + before;
    own(a, given, expected + before, count, type, op, MPI_COMM_WORLD);
    const int error = a->call(given, to + before, count, type, op, MPI_COMM_WORLD);
    EXPECT(error == MPI_SUCCESS, "%s, %d pairs: error %d", a->name, count, error);
    for (size_t i = 0; i < out; i++) {
        const int same = to[i].number == expected[i].number && to[i].half == expected[i].half;
        EXPECT(same, "%s, %d pairs: pair %d is not what MPI has", a->name, count, (int)i);
        const int kept = in_place ? to[i].outside == expected[i].outside
                                  : to[i].gap == (int16_t)0xa5a5 && to[i].outside == (int64_t)0xa5a5a5a5a5a5a5a5;
        EXPECT(kept, "%s, %d pairs: the gap of pair %d is written", a->name, count, (int)i);
    }
    MUST(MPI_Op_free(&op));
    MUST(MPI_Type_free(&type));
    free(from), free(to), free(expected);
}

/* Elements that begin before their address, and are longer than the way to the next: every element is two bytes, at -3
 * and 0, and the next is 2 further. */
static void before(const struct algorithm *a, int count) {
    MPI_Datatype bare, type;
    int lengths[2] = {1, 1};
    MPI_Aint places[2] = {-3, 0};
    MPI_Datatype types[2] = {MPI_UINT8_T, MPI_UINT8_T};
    MUST(MPI_Type_create_struct(2, lengths, places, types, &bare));
    MUST(MPI_Type_create_resized(bare, -3, 2, &type));
    MUST(MPI_Type_commit(&type));
    const size_t in = inputs(a, rank) * (size_t)count * 2 + 16, out = outputs(a, rank) * (size_t)count * 2 + 16;
    uint8_t *from = room(in), *to = room(out), *expected = room(out);
    for (size_t i = 0; i < in; i++) {
        from[i] = (uint8_t)dice((uint32_t)rank, (uint32_t)i);
    }
    own(a, from + 8, expected + 8, count, type, MPI_OP_NULL, MPI_COMM_WORLD);
    const int error = a->call(from + 8, to + 8, count, type, MPI_OP_NULL, MPI_COMM_WORLD);
    EXPECT(error == MPI_SUCCESS, "%s, %d elements from below: error %d", a->name, count, error);
    EXPECT(memcmp(to, expected, out) == 0, "%s, %d elements from below: not what MPI has", a->name, count);
    MUST(MPI_Type_free(&type));
    MUST(MPI_Type_free(&bare));
    free(from), free(to), free(expected);
}

/* Products of matrices do not commute. */
static void multiply(void *in, void *inout, int *len, MPI_Datatype *type) {
    (void)type;
    uint32_t(*a)[4] = in, (*b)[4] = inout;
    for (int i = 0; i < *len; i++) {
        const uint32_t product[4] = {
            a[i][0] * b[i][0] + a[i][1] * b[i][2],
            a[i][0] * b[i][1] + a[i][1] * b[i][3],
            a[i][2] * b[i][0] + a[i][3] * b[i][2],
            a[i][2] * b[i][1] + a[i][3] * b[i][3],
        };
        memcpy(b[i], product, sizeof product);
    }
}

static void matrices(const struct algorithm *a) {
    MPI_Datatype type;
    MPI_Op op;
    MUST(MPI_Type_contiguous(4, MPI_UINT32_T, &type));
    MUST(MPI_Type_commit(&type));
    MUST(MPI_Op_create(multiply, 0, &op));
    if (a->in_order) {
        compare(a, 13, type, 16, op, MPI_COMM_WORLD, 0, "matrices");
        if (a->in_place) {
            compare(a, 13, type, 16, op, MPI_COMM_WORLD, 1, "matrices in place");
        }
    } else {
        char in[1024], out[1024];
        const int error = a->call(in, out, 1, type, op, MPI_COMM_WORLD);
        EXPECT(error == MPI_ERR_OP, "%s takes an op that does not commute: %d", a->name, error);
    }
    MUST(MPI_Op_free(&op));
    MUST(MPI_Type_free(&type));
}

/* Every refusal, by its class. */
static void refusals(const struct algorithm *a) {
    static int in[4096], out[4096];
    MPI_Comm all = MPI_COMM_WORLD;
#define REFUSED(error, ...)                                                                     \
    do {                                                                                        \
        const int found = a->call(__VA_ARGS__);                                                 \
        EXPECT(found == error, "%s: %s is error %d, not " #error, a->name, #__VA_ARGS__, found); \
    } while (0)
    if (ranks > 1) {
        REFUSED(MPI_ERR_COMM, in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
        MPI_Comm half, between;
        MUST(MPI_Comm_split(all, rank % 2, 0, &half));
        MUST(MPI_Intercomm_create(half, 0, all, (rank + 1) % 2, 7, &between));
        REFUSED(MPI_ERR_COMM, in, out, 1, MPI_INT, MPI_SUM, between);
        MUST(MPI_Comm_free(&between));
        MUST(MPI_Comm_free(&half));
    }
    REFUSED(MPI_ERR_COMM, in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL);
    REFUSED(MPI_ERR_COUNT, in, out, -1, MPI_INT, MPI_SUM, all);
    REFUSED(MPI_ERR_COUNT, in, out, INT_MIN, MPI_INT, MPI_SUM, all);
    if (a->longest > 1) {
        REFUSED(MPI_ERR_COUNT, in, out, INT_MAX / a->longest + 1, MPI_CHAR, MPI_SUM, all);
    }
    REFUSED(MPI_ERR_TYPE, in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, all);
    MPI_Datatype down;
    MUST(MPI_Type_create_resized(MPI_INT, 0, -4, &down));
    MUST(MPI_Type_commit(&down));
    REFUSED(MPI_ERR_TYPE, in, out, 1, down, MPI_SUM, all);
    MUST(MPI_Type_free(&down));
    if (reduces(a)) {
        REFUSED(MPI_ERR_OP, in, out, 1, MPI_INT, MPI_OP_NULL, all);
    }
    if (inputs(a, rank) > 0 && outputs(a, rank) > 0) {
        const int beside = a->collective == REDUCE_SCATTER || a->collective == SCATTER ? 1 : 0;
        /* In nobody's place. */
        REFUSED(MPI_ERR_BUFFER, in, (char *)in + 1 + beside, 8, MPI_INT, MPI_SUM, all);
        if (!a->in_place) {
            REFUSED(MPI_ERR_BUFFER, in, in, 8, MPI_INT, MPI_SUM, all);
            REFUSED(MPI_ERR_BUFFER, MPI_IN_PLACE, out, 8, MPI_INT, MPI_SUM, all);
        }
        if (a->collective == REDUCE_SCATTER) {
            REFUSED(MPI_ERR_BUFFER, MPI_IN_PLACE, out, 8, MPI_INT, MPI_SUM, all);
        }
        if (a->collective != SCATTER) {
            REFUSED(MPI_ERR_BUFFER, in, MPI_IN_PLACE, 8, MPI_INT, MPI_SUM, all);
        }
    }
}

/* A message of the caller's, to any tag of any rank, stays the caller's. It is open only while the exported function
 * runs: MPICH 5.0.2 does not come back from its own MPI_Alltoall of one rank then. */
static void mixed(const struct algorithm *a) {
    enum { COUNT = 9 };
    const size_t in = inputs(a, rank) * COUNT, out = outputs(a, rank) * COUNT;
    int *from = room(in * sizeof *from), *to = room(out * sizeof *to), *expected = room(out * sizeof *to);
    for (size_t i = 0; i < in; i++) {
        from[i] = (int)(dice((uint32_t)rank, (uint32_t)i) >> 1);
    }
    own(a, from, expected, COUNT, MPI_INT, MPI_BXOR, MPI_COMM_WORLD);
    int got = -1, sent = 42 + rank;
    MPI_Request request;
    MUST(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
    const int error = a->call(from, to, COUNT, MPI_INT, MPI_BXOR, MPI_COMM_WORLD);
    EXPECT(error == MPI_SUCCESS, "%s beside a receive of the caller's: error %d", a->name, error);
    EXPECT(memcmp(to, expected, out * sizeof *to) == 0, "%s beside a receive of the caller's: not what MPI has", a->name);
    MUST(MPI_Send(&sent, 1, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT(got == 42 + (rank + ranks - 1) % ranks, "%s takes a message of the caller's", a->name);
    free(from), free(to), free(expected);
}

static void one(const struct algorithm *a) {
    static const int counts[] = {0, 1, 2, 3, 5, 7, 8, 16, 17, 33, 100, 1021};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        compare(a, counts[i], MPI_INT, sizeof(int), MPI_BXOR, MPI_COMM_WORLD, 0, "bits");
        if (a->in_place) {
            compare(a, counts[i], MPI_UNSIGNED, sizeof(unsigned), MPI_SUM, MPI_COMM_WORLD, 1, "in place");
        }
    }
    /* Longer than what is sent before there is a receive. */
    compare(a, 50021, MPI_LONG_LONG, sizeof(long long), MPI_MAX, MPI_COMM_WORLD, 0, "longs");
    compare(a, 333, MPI_UNSIGNED_CHAR, 1, MPI_PROD, MPI_COMM_WORLD, 0, "bytes");
    for (int count = 1; count < 200; count = 3 * count + 4) {
        digest(a, count);
    }
    const int all_gaps = REDUCES_BEFORE || !reduces(a);
    gaps(a, 23, 0, 0);
    if (all_gaps) {
        gaps(a, 23, 0, 1);
    }
    if (a->in_place && a->collective == ALL_REDUCE) {
        gaps(a, 23, 1, 0);
        if (all_gaps) {
            gaps(a, 23, 1, 1);
        }
    }
    if (reduces(a)) {
        matrices(a);
    } else {
        before(a, 11);
    }
    refusals(a);
    mixed(a);
    /* Another communicator of as many ranks, in another order. */
    MPI_Comm other;
    MUST(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &other));
    const int here = rank;
    MUST(MPI_Comm_rank(other, &rank));
    compare(a, 40, MPI_INT, sizeof(int), MPI_MIN, other, 0, "of another communicator");
    rank = here;
    MUST(MPI_Comm_free(&other));
}

int main(int argc, char **argv) {
    MUST(MPI_Init(&argc, &argv));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    MUST(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    if (!REDUCES_BEFORE && rank == 0) {
        printf("left out: reductions of types that begin before their address, in which this MPICH crashes by itself\n");
    }
    for (int i = 0; i < algorithm_count; i++) {
        one(&algorithms[i]);
    }
    for (int i = 0; argc > 1 && strcmp(argv[1], "leaks") == 0 && i < 3000; i++) {
        MPI_Comm copy;
        MUST(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
        compare(&algorithms[0], 1, MPI_INT, sizeof(int), MPI_SUM, copy, 0, "of a copy");
        MUST(MPI_Comm_free(&copy));
    }
    int all = 0;
    MUST(MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (rank == 0) {
        printf("%d algorithms, %d wrong\n", algorithm_count, all);
    }
    MPI_Finalize();
    return all > 0;
}
