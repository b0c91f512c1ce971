// Integer arithmetic of the language: Euclidean, and total, so no function here traps. The host computed each number of
// a program at every rank, and found that it fits `num`.
#pragma once
#include "base.cuh"

#ifndef ROUNDELAY_NUMBER
#define ROUNDELAY_NUMBER i32
#endif

namespace roundelay {

// The numbers of a program: ranks, iterations, pieces of buffers.
using num = ROUNDELAY_NUMBER;

// ---- bits ------------------------------------------------------------------------------------------------

#ifdef ROUNDELAY_SHIM
ROUNDELAY_DEVICE int leading_zeros(u64 x) { return x == 0 ? 64 : __builtin_clzll(x); }
ROUNDELAY_DEVICE int ones(u64 x) { return __builtin_popcountll(x); }
ROUNDELAY_DEVICE u64 reversed(u64 x) {
    u64 bits = 0;
    for (int i = 0; i < 64; ++i, x >>= 1) bits = bits << 1 | (x & 1);
    return bits;
}
#else
ROUNDELAY_DEVICE int leading_zeros(u64 x) { return __clzll(i64(x)); }
ROUNDELAY_DEVICE int ones(u64 x) { return __popcll(x); }
ROUNDELAY_DEVICE u64 reversed(u64 x) { return __brevll(x); }
#endif

// ---- division: in 32 bits where they suffice, because 64 bits cost a GPU several times as much; and in functions of
// its own, because values derived from a divisor would stay in registers through the loops around it ------------------

ROUNDELAY_SHARED u64 quotient(u64 a, u64 b) { return (a | b) >> 32 == 0 ? u32(a) / u32(b) : a / b; }

ROUNDELAY_SHARED u64 remainder(u64 a, u64 b) { return (a | b) >> 32 == 0 ? u32(a) % u32(b) : a % b; }

// a / b, rounded so that the remainder is not negative
ROUNDELAY_DEVICE num quo(num a, num b) {
    if (b == 0) return 0;
    const num q = a / b;
    return q * b <= a ? q : b > 0 ? q - 1 : q + 1;
}

// The remainder, in 0..|b|
ROUNDELAY_DEVICE num mod(num a, num b) {
    if (b == 0) return 0;
    const num r = a % b;
    return r >= 0 ? r : b > 0 ? r + b : r - b;
}

// ---- the built-in functions ---------------------------------------------------------------------------------

ROUNDELAY_DEVICE num log2(num x) { return x < 1 ? 0 : 63 - leading_zeros(u64(x)); }

ROUNDELAY_DEVICE num ceil_log2(num x) { return x < 1 ? 0 : 64 - leading_zeros(u64(x) - 1); }

ROUNDELAY_DEVICE num pow2(num x) { return x < 0 || x > 62 ? 0 : num(i64(1) << x); }

ROUNDELAY_DEVICE num min(num a, num b) { return a < b ? a : b; }

ROUNDELAY_DEVICE num max(num a, num b) { return a < b ? b : a; }

ROUNDELAY_DEVICE num abs(num x) { return x < 0 ? -x : x; }

ROUNDELAY_DEVICE num popcount(num x) { return ones(u64(i64(x))); }

ROUNDELAY_DEVICE num trailing_zeros(num x) { return x < 1 ? 0 : 63 - leading_zeros(u64(x) & (0 - u64(x))); }

// The lowest `bits` bits of x in reverse order.
ROUNDELAY_DEVICE num bit_reverse(num x, num bits) {
    return bits < 1 || bits > 62 ? 0 : num(reversed(u64(i64(x))) >> (64 - bits));
}

ROUNDELAY_DEVICE bool is_power_of_two(num x) { return x > 0 && (x & (x - 1)) == 0; }

} // namespace roundelay
