/* Elements of every type in memory, how ranks describe them to MPI, and what they are to hold after a call. */
#ifndef ELEMENTS_H
#define ELEMENTS_H

#include "check.h"

enum { KINDS = 8, OPS = 10, GUARD = 4, UNTOUCHED = 0x5A };
enum { PLAIN, CONTIGUOUS, VECTOR, ABSOLUTE, LAYOUTS };
enum { INTEGER = 1, FLOATING = 2, BITS = 4 };

/* A type of elements, and how small integers are kept in it. */
typedef struct {
    const char *name;
    MPI_Datatype type;
    size_t bytes;
    int ops;
    void (*put)(void *, size_t, long);
} Kind;

#define PUT(NAME, C) \
    static void put_##NAME(void *to, size_t at, long value) { ((C *)to)[at] = (C)value; }
PUT(int, int)
PUT(double, double)
PUT(float, float)
PUT(short, short)
PUT(uchar, unsigned char)
PUT(unsigned, unsigned)
PUT(llong, long long)

typedef struct {
    const char *name;
    MPI_Op op;
    int of;
    long (*fold)(long, long);
} Op;

#define FOLD(NAME, RESULT) \
    static long NAME(long a, long b) { return RESULT; }
FOLD(sum, a + b)
FOLD(product, a * b)
FOLD(most, a > b ? a : b)
FOLD(least, a < b ? a : b)
FOLD(both, a && b)
FOLD(either, a || b)
FOLD(one_of, !a != !b)
FOLD(bits_and, a & b)
FOLD(bits_or, a | b)
FOLD(bits_xor, a ^ b)

static Kind kinds[KINDS];
static Op ops[OPS];

/* The handles are no constants in every MPI. */
static void name_all(void) {
    const Kind of_types[KINDS] = {
        {"int", MPI_INT, sizeof(int), INTEGER | BITS, put_int},
        {"double", MPI_DOUBLE, sizeof(double), FLOATING, put_double},
        {"float", MPI_FLOAT, sizeof(float), FLOATING, put_float},
        {"short", MPI_SHORT, sizeof(short), INTEGER | BITS, put_short},
        {"unsigned char", MPI_UNSIGNED_CHAR, 1, INTEGER | BITS, put_uchar},
        {"unsigned", MPI_UNSIGNED, sizeof(unsigned), INTEGER | BITS, put_unsigned},
        {"long long", MPI_LONG_LONG, sizeof(long long), INTEGER | BITS, put_llong},
        {"byte", MPI_BYTE, 1, BITS, put_uchar},
    };
    const Op of_ops[OPS] = {
        {"sum", MPI_SUM, INTEGER | FLOATING, sum},  {"product", MPI_PROD, INTEGER | FLOATING, product},
        {"max", MPI_MAX, INTEGER | FLOATING, most}, {"min", MPI_MIN, INTEGER | FLOATING, least},
        {"land", MPI_LAND, INTEGER, both},          {"lor", MPI_LOR, INTEGER, either},
        {"lxor", MPI_LXOR, INTEGER, one_of},        {"band", MPI_BAND, BITS, bits_and},
        {"bor", MPI_BOR, BITS, bits_or},            {"bxor", MPI_BXOR, BITS, bits_xor},
    };
    memcpy(kinds, of_types, sizeof kinds);
    memcpy(ops, of_ops, sizeof ops);
}

/* The communicator of the calls, and of its calls the present one. */
static MPI_Comm comm;
static const char *comm_name;
static int me, nranks, root, turn, in_place, large;
static const Op *op;
static long checks;

/* An element of a rank's input. */
static long value(int of, int block, long at) {
    long value = (of * 7L + block * 5L + at * 3L + turn * 11L) % 13;
    return op->fold == product ? value % 2 + 1 : value;
}

/* Elements of a rank in blocks, as MPI is told of them. */
typedef struct {
    const Kind *kind;
    long n;
    int blocks, stride, layout;
    size_t bytes;
    char *memory;
    void *where;
    int count;
    MPI_Datatype type;
} Buffer;

static Buffer buffer(const Kind *kind, long n, int blocks, int layout) {
    Buffer b = {.kind = kind, .n = n, .blocks = blocks, .layout = n ? layout : PLAIN};
    b.stride = b.layout == VECTOR ? 3 : 1;
    b.bytes = ((size_t)n * blocks * b.stride + 2 * GUARD) * kind->bytes;
    b.memory = malloc(b.bytes);
    if (!b.memory) fail("no memory for %zu bytes", b.bytes);
    memset(b.memory, UNTOUCHED, b.bytes);
    char *start = b.memory + GUARD * kind->bytes;
    b.where = start;
    b.count = 1;
    if (b.layout == PLAIN) {
        b.type = kind->type;
        b.count = (int)n;
        /* Nothing may be nowhere. */
        if (n == 0 && me % 2) b.where = NULL;
    } else if (b.layout == CONTIGUOUS) {
        MPI_Type_contiguous((int)n, kind->type, &b.type);
    } else if (b.layout == VECTOR) {
        MPI_Datatype gaps;
        MPI_Type_vector((int)n, 1, b.stride, kind->type, &gaps);
        MPI_Type_create_resized(gaps, 0, (MPI_Aint)(n * b.stride * (long)kind->bytes), &b.type);
        MPI_Type_free(&gaps);
    } else {
        MPI_Aint at;
        int length = (int)n;
        MPI_Get_address(start, &at);
        MPI_Type_create_hindexed(1, &length, &at, kind->type, &b.type);
        b.where = MPI_BOTTOM;
    }
    if (b.layout != PLAIN) MPI_Type_commit(&b.type);
    return b;
}

static void drop(Buffer *b) {
    if (b->layout != PLAIN) MPI_Type_free(&b->type);
    free(b->memory);
}

static size_t place(const Buffer *b, int block, long at) {
    return GUARD + ((size_t)block * b->n + at) * b->stride;
}

static void set(Buffer *b, int block, int of, int its_block) {
    for (long i = 0; i < b->n; i++) b->kind->put(b->memory, place(b, block, i), value(of, its_block, i));
}

/* What a block of the output is to hold at a place. */
typedef long Wanted(int block, long at);

static long of_root(int block, long at) { return value(root, block, at); }
static long of_root_to_me(int block, long at) { return value(root, block + me, at); }
static long of_all(int block, long at) { return value(block, 0, at); }
static long of_all_to_me(int block, long at) { return value(block, me, at); }
static long folded(int block, long at) {
    long all = value(0, block, at);
    for (int r = 1; r < nranks; r++) all = op->fold(all, value(r, block, at));
    return all;
}
static long folded_to_me(int block, long at) { return folded(block + me, at); }

/* Compares the first blocks of an output; what follows them and what lies between is as it was. */
static void verify(const Buffer *b, const char *call, Wanted *wanted, int blocks) {
    char right[16];
    size_t bytes = b->kind->bytes, last = 0;
    const char *how = in_place ? ", in place" : "";
    for (int block = 0; block < blocks; block++)
        for (long i = 0; i < b->n; i++) {
            size_t at = place(b, block, i);
            b->kind->put(right, 0, wanted(block, i));
            if (memcmp(b->memory + at * bytes, right, bytes))
                fail("%s%s on %s: block %d, element %ld of %ld (%s, op %s, root %d, layout %d) is not %ld", call, how,
                     comm_name, block, i, b->n, b->kind->name, op->name, root, b->layout, wanted(block, i));
            for (size_t byte = last; byte < at * bytes; byte++)
                if (b->memory[byte] != UNTOUCHED) fail("%s%s on %s wrote into a gap before element %ld", call, how, comm_name, i);
            last = (at + 1) * bytes;
        }
    /* In place, blocks that are no output keep an input. */
    for (size_t byte = in_place ? b->bytes - GUARD * bytes : last; byte < b->bytes; byte++)
        if (b->memory[byte] != UNTOUCHED) fail("%s%s on %s wrote past its end", call, how, comm_name);
    checks++;
}

#endif
