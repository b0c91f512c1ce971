// Integer arithmetic of the language: 64 bits, Euclidean, total. Computations that could fail were refused when the
// schedule was proved; a value that is never used may still be computed, so no function here traps.
#pragma once
#include "base.cuh"

namespace roundelay {

// ---- bits ------------------------------------------------------------------------------------------------

#ifdef ROUNDELAY_SHIM
ROUNDELAY_DEVICE int leading_zeros(u64 x) { return x == 0 ? 64 : __builtin_clzll(x); }
ROUNDELAY_DEVICE int ones(u64 x) { return __builtin_popcountll(x); }
ROUNDELAY_DEVICE u64 mul_high(u64 a, u64 b) { return u64((unsigned __int128)a * b >> 64); }
ROUNDELAY_DEVICE u64 reversed(u64 x) {
    u64 bits = 0;
    for (int i = 0; i < 64; ++i, x >>= 1) bits = bits << 1 | (x & 1);
    return bits;
}
#else
ROUNDELAY_DEVICE int leading_zeros(u64 x) { return __clzll(i64(x)); }
ROUNDELAY_DEVICE int ones(u64 x) { return __popcll(x); }
ROUNDELAY_DEVICE u64 mul_high(u64 a, u64 b) { return __umul64hi(a, b); }
ROUNDELAY_DEVICE u64 reversed(u64 x) { return __brevll(x); }
#endif

// ---- division: in 32 bits where they suffice, because 64 bits cost a GPU several times as much; and in functions of
// its own, because values derived from a divisor would stay in registers through the loops around it ------------------

ROUNDELAY_SHARED u64 quotient(u64 a, u64 b) { return (a | b) >> 32 == 0 ? u32(a) / u32(b) : a / b; }

ROUNDELAY_SHARED u64 remainder(u64 a, u64 b) { return (a | b) >> 32 == 0 ? u32(a) % u32(b) : a % b; }

// a / b, rounded so that the remainder is not negative
ROUNDELAY_SHARED i64 quo(i64 a, i64 b) {
    if (a >= 0 && b > 0) return i64(quotient(u64(a), u64(b)));
    if (b == 0) return 0;
    if (b == -1) return i64(0 - u64(a));
    const i64 q = a / b;
    return q * b <= a ? q : b > 0 ? q - 1 : q + 1;
}

// The remainder, in 0..|b|
ROUNDELAY_SHARED i64 mod(i64 a, i64 b) {
    // Most values are ranks that wrapped around at most once.
    if (b > 0 && a >= -b && a < b) return a < 0 ? a + b : a;
    if (a >= 0 && b > 0) return i64(remainder(u64(a), u64(b)));
    if (b == 0 || b == -1) return 0;
    const i64 r = a % b;
    return r >= 0 ? r : b > 0 ? r + b : r - b;
}

// floor(a * b / d), with no bit lost in between; d > 0, and the result fits.
ROUNDELAY_SHARED u64 mul_div(u64 a, u64 b, u64 d) {
    if (a == 0 || b == 0) return 0;
    u64 high = mul_high(a, b), low = a * b, q = 0;
    if (high == 0) return quotient(low, d);
    for (int i = 0; i < 64; ++i) { // high < d: one bit of the quotient at a time
        const bool carry = high >> 63 != 0;
        high = high << 1 | low >> 63;
        low <<= 1;
        q <<= 1;
        if (carry || high >= d) {
            high -= d;
            q |= 1;
        }
    }
    return q;
}

// a * b == c * d with no bit lost
ROUNDELAY_SHARED bool same_product(u64 a, u64 b, u64 c, u64 d) {
    return a * b == c * d && mul_high(a, b) == mul_high(c, d);
}

ROUNDELAY_SHARED u64 gcd(u64 a, u64 b) {
    while (b != 0) {
        const u64 r = remainder(a, b);
        a = b;
        b = r;
    }
    return a;
}

// ---- the built-in functions ---------------------------------------------------------------------------------

ROUNDELAY_DEVICE i64 log2(i64 x) { return x < 1 ? 0 : 63 - leading_zeros(u64(x)); }

ROUNDELAY_DEVICE i64 ceil_log2(i64 x) { return x < 1 ? 0 : 64 - leading_zeros(u64(x) - 1); }

ROUNDELAY_DEVICE i64 pow2(i64 x) { return x < 0 || x > 62 ? 0 : i64(1) << x; }

ROUNDELAY_DEVICE i64 min(i64 a, i64 b) { return a < b ? a : b; }

ROUNDELAY_DEVICE i64 max(i64 a, i64 b) { return a < b ? b : a; }

ROUNDELAY_DEVICE i64 abs(i64 x) { return x < 0 ? i64(0 - u64(x)) : x; }

ROUNDELAY_DEVICE i64 popcount(i64 x) { return ones(u64(x)); }

ROUNDELAY_DEVICE i64 trailing_zeros(i64 x) { return x < 1 ? 0 : 63 - leading_zeros(u64(x) & (0 - u64(x))); }

// The lowest `bits` bits of x in reverse order.
ROUNDELAY_DEVICE i64 bit_reverse(i64 x, i64 bits) { return bits < 1 || bits > 62 ? 0 : i64(reversed(u64(x)) >> (64 - bits)); }

ROUNDELAY_DEVICE bool is_power_of_two(i64 x) { return x > 0 && (x & (x - 1)) == 0; }

} // namespace roundelay
