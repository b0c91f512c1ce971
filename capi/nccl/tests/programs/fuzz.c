/* Calls functions of the library with anything: `fuzz LIBRARY CALLS NAME...`. Prints how often each code came. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct id {
    char bytes[128];
};

typedef uint64_t (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, struct id, uint64_t, uint64_t,
                             uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static uint64_t dice = 0x9e3779b97f4a7c15u;

static uint64_t roll(void) {
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return dice;
}

static char memory[4096];

static int tame;

/* Addresses of nothing, of something, and in between; small numbers, huge ones, and those at the borders. */
static uint64_t anything(void) {
    if (tame) return roll() % 3 ? (uint64_t)(uintptr_t)memory + roll() % (sizeof memory / 2) : 0;
    switch (roll() % 9) {
    case 0:
        return 0;
    case 1:
        return roll() % 16;
    case 2:
        return (uint64_t)-1;
    case 3:
        return (uint64_t)(uintptr_t)memory + roll() % sizeof memory;
    case 4:
        return (uint64_t)1 << roll() % 64;
    case 5:
        return 0x80000000u;
    case 6:
        return 0x7fffffff;
    case 7:
        return 0xffffffff00000000u | roll() % 4096;
    default:
        return roll();
    }
}

int main(int count, char **args) {
    enum { CODES = 10 };
    /* A library that looks at its arguments takes addresses that are there. */
    tame = getenv("TAME") != NULL;
    uint64_t codes[CODES + 1] = {0};
    if (count < 4) {
        printf("fuzz LIBRARY CALLS NAME...\n");
        return 1;
    }
    void *library = dlopen(args[1], RTLD_NOW);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    int names = count - 3;
    function *of = calloc((size_t)names, sizeof *of);
    for (int i = 0; i < names; ++i) {
        void *found = dlsym(library, args[i + 3]);
        if (!found) {
            printf("no %s\n", args[i + 3]);
            return 0;
        }
        memcpy(&of[i], &found, sizeof found);
    }
    struct id id;
    for (long call = 0, calls = atol(args[2]); call < calls; ++call) {
        for (size_t i = 0; i < sizeof id.bytes; ++i) {
            id.bytes[i] = (char)(dice >> i % 56);
        }
        uint64_t code = of[roll() % (uint64_t)names](anything(), anything(), anything(), anything(), anything(),
                                                     anything(), id, anything(), anything(), anything(), anything(),
                                                     anything(), anything(), anything(), anything());
        code &= 0xffffffff;
        ++codes[code < CODES ? code : CODES];
    }
    for (int code = 0; code <= CODES; ++code) {
        printf("%d %llu\n", code, (unsigned long long)codes[code]);
    }
    return 0;
}
