// The arithmetic of the elements, equal bit for bit to the host's in kernels/arithmetic/src/number.rs.
//
// Integers wrap. f16, bf16 and the fp8 types compute each reduce in f32 and round to nearest even; fp8 saturates where
// a finite result is too large, as the hardware's conversion does. Minimum and maximum are those of IEEE 754-2019. The
// bits of a NaN depend on the machine.
#pragma once
#include "base.cuh"

#ifndef ROUNDELAY_ELEMENT
#error "ROUNDELAY_ELEMENT names the type of the elements: i8 u8 i32 u32 i64 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2"
#endif
#ifndef ROUNDELAY_OP
#error "ROUNDELAY_OP names the reduce op: Sum Prod Min Max Avg, or for integers Band Bor Bxor Land Lor Lxor"
#endif

#define ROUNDELAY_FORMAT_f16 16
#define ROUNDELAY_FORMAT_bf16 17
#define ROUNDELAY_FORMAT_f8e4m3 8
#define ROUNDELAY_FORMAT_f8e5m2 9
#define ROUNDELAY_FORMAT_OF_(name) ROUNDELAY_FORMAT_##name
#define ROUNDELAY_FORMAT_OF(name) ROUNDELAY_FORMAT_OF_(name)
// The format number; 0 for types with which the machine computes directly.
#define ROUNDELAY_FORMAT ROUNDELAY_FORMAT_OF(ROUNDELAY_ELEMENT)

#ifndef ROUNDELAY_SHIM
#if ROUNDELAY_FORMAT == 16
#include <cuda_fp16.h>
#elif ROUNDELAY_FORMAT == 17
#include <cuda_bf16.h>
#elif ROUNDELAY_FORMAT == 8 || ROUNDELAY_FORMAT == 9
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
#error "fp8 needs sm_89 or later: choose another --arch, or a wider dtype"
#endif
#include <cuda_fp8.h>
#endif
#endif

namespace roundelay {

// Types without arithmetic of their own: they are widened to f32.
struct f16 {
    u16 bits;
};
struct bf16 {
    u16 bits;
};
struct f8e4m3 {
    u8 bits;
};
struct f8e5m2 {
    u8 bits;
};

using Element = ROUNDELAY_ELEMENT;

// ---- f32 and back, two at a time, from the low end of a register: the machine has one instruction for two -------------------------------------

struct Pair {
    f32 low;
    f32 high;
};

#if ROUNDELAY_FORMAT == 0
// The types with which the machine computes directly.
#elif defined(ROUNDELAY_SHIM)

using Bits = decltype(Element::bits);
constexpr int BITS = 8 * sizeof(Bits);

ROUNDELAY_DEVICE Pair widen(u32 two) {
    return {shim::widen<ROUNDELAY_FORMAT>(Bits(two)), shim::widen<ROUNDELAY_FORMAT>(Bits(two >> BITS))};
}

ROUNDELAY_DEVICE u32 narrow(Pair pair) {
    return shim::narrow<ROUNDELAY_FORMAT>(pair.low) | shim::narrow<ROUNDELAY_FORMAT>(pair.high) << BITS;
}

#elif ROUNDELAY_FORMAT == 16

ROUNDELAY_DEVICE Pair widen(u32 two) {
    const float2 wide = __half22float2(bits_as<__half2>(two));
    return {wide.x, wide.y};
}

ROUNDELAY_DEVICE u32 narrow(Pair pair) { return bits_as<u32>(__floats2half2_rn(pair.low, pair.high)); }

#elif ROUNDELAY_FORMAT == 17

ROUNDELAY_DEVICE Pair widen(u32 two) {
    const float2 wide = __bfloat1622float2(bits_as<__nv_bfloat162>(two));
    return {wide.x, wide.y};
}

ROUNDELAY_DEVICE u32 narrow(Pair pair) { return bits_as<u32>(__floats2bfloat162_rn(pair.low, pair.high)); }

#else

constexpr __nv_fp8_interpretation_t FP8 = ROUNDELAY_FORMAT == 8 ? __NV_E4M3 : __NV_E5M2;

ROUNDELAY_DEVICE Pair widen(u32 two) {
    const float2 wide = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t(two), FP8)));
    return {wide.x, wide.y};
}

ROUNDELAY_DEVICE u32 narrow(Pair pair) {
    u32 two = __nv_cvt_float2_to_fp8x2(make_float2(pair.low, pair.high), __NV_SATFINITE, FP8);
    if constexpr (FP8 == __NV_E5M2) {
        // An infinity of the input stays an infinity.
        two = isinf(pair.low) ? (two & 0xff80u) | 0x7cu : two;
        two = isinf(pair.high) ? (two & 0x80ffu) | 0x7c00u : two;
    }
    return two;
}

#endif

// ---- the ops on two numbers; `src op acc`, since the order of operands is part of the meaning ----------------------

template <class T> constexpr bool FLOATING = false;
template <> constexpr bool FLOATING<f32> = true;
template <> constexpr bool FLOATING<f64> = true;

template <class T> struct BitsOf;
template <> struct BitsOf<f32> {
    using Type = u32;
};
template <> struct BitsOf<f64> {
    using Type = u64;
};

struct Sum {
    static constexpr bool AVERAGES = false;

    template <class T> ROUNDELAY_DEVICE static T fold(T src, T acc) {
        if constexpr (FLOATING<T>) {
            return src + acc;
        } else {
            return T(u64(src) + u64(acc));
        }
    }
};

struct Avg : Sum {
    static constexpr bool AVERAGES = true;
};

struct Prod {
    static constexpr bool AVERAGES = false;

    template <class T> ROUNDELAY_DEVICE static T fold(T src, T acc) {
        if constexpr (FLOATING<T>) {
            return src * acc;
        } else {
            return T(u64(src) * u64(acc));
        }
    }
};

struct Min {
    static constexpr bool AVERAGES = false;

    template <class T> ROUNDELAY_DEVICE static T fold(T src, T acc) {
        const T less = src < acc ? src : acc;
        if constexpr (FLOATING<T>) {
            // Equal numbers have equal bits, except for zeros, whose sign decides.
            using Bits = typename BitsOf<T>::Type;
            const T equal = bits_as<T>(bits_as<Bits>(src) | bits_as<Bits>(acc));
            const T ordered = src == acc ? equal : less;
            return src != src || acc != acc ? src + acc : ordered;
        } else {
            return less;
        }
    }
};

struct Max {
    static constexpr bool AVERAGES = false;

    template <class T> ROUNDELAY_DEVICE static T fold(T src, T acc) {
        const T more = src > acc ? src : acc;
        if constexpr (FLOATING<T>) {
            using Bits = typename BitsOf<T>::Type;
            const T equal = bits_as<T>(bits_as<Bits>(src) & bits_as<Bits>(acc));
            const T ordered = src == acc ? equal : more;
            return src != src || acc != acc ? src + acc : ordered;
        } else {
            return more;
        }
    }
};

// The ops of integers alone.
struct Bitwise {
    static constexpr bool AVERAGES = false;

    template <class T> ROUNDELAY_DEVICE static bool holds(T x) {
        static_assert(!FLOATING<T>, "a logical op is for integers");
        return x != 0;
    }
};

struct Band : Bitwise {
    template <class T> ROUNDELAY_DEVICE static T fold(T src, T acc) { return T(src & acc); }
};

struct Bor : Bitwise {
    template <class T> ROUNDELAY_DEVICE static T fold(T src, T acc) { return T(src | acc); }
};

struct Bxor : Bitwise {
    template <class T> ROUNDELAY_DEVICE static T fold(T src, T acc) { return T(src ^ acc); }
};

struct Land : Bitwise {
    template <class T> ROUNDELAY_DEVICE static T fold(T src, T acc) { return T(holds(src) & holds(acc)); }
};

struct Lor : Bitwise {
    template <class T> ROUNDELAY_DEVICE static T fold(T src, T acc) { return T(holds(src) | holds(acc)); }
};

struct Lxor : Bitwise {
    template <class T> ROUNDELAY_DEVICE static T fold(T src, T acc) { return T(holds(src) ^ holds(acc)); }
};

using Op = ROUNDELAY_OP;
constexpr bool AVERAGE = Op::AVERAGES;

// Divides a complete sum by the divisor of an average; integers truncate toward zero.
template <class T> ROUNDELAY_DEVICE T divided(T sum, i64 divisor) {
    if constexpr (FLOATING<T>) {
        return sum / T(divisor);
    } else if constexpr (sizeof(T) == 8) {
        return sum / T(divisor);
    } else if constexpr (sizeof(T) == 1) {
        // The quotient is a product with 2^24 / divisor, a little too large: by less than 1 / divisor, as the sum is
        // below 2^8. A vector has many such products, and the compiler shares the one division among them.
        const u32 inverse = (1u << 24) / u32(divisor) + 1;
        const i32 wide = i32(sum);
        const u32 quotient = u32(wide < 0 ? -wide : wide) * inverse >> 24;
        return T(wide < 0 ? 0 - quotient : quotient);
    } else if constexpr (T(-1) < T(0)) {
        return T(i32(sum) / i32(divisor));
    } else {
        return T(u32(sum) / u32(divisor));
    }
}

// ---- elements as registers hold them -----------------------------------------------------------------------

// One register: several small elements, or one large element.
template <int BYTES> struct RegisterOf {
    using Type = u32;
};
template <> struct RegisterOf<8> {
    using Type = u64;
};
using Register = RegisterOf<sizeof(Element)>::Type;

// The unit of a loop's loads and stores: registers of a vector, or one register with a single element in it.
template <int N> struct Registers {
    Register at[N];
};

// Applies `f` to the numbers of two registers, each with its neighbor.
template <class F> ROUNDELAY_DEVICE Register each(Register a, Register b, F f) {
#if ROUNDELAY_FORMAT != 0
    Register result = 0;
#pragma unroll
    for (int shift = 0; shift < 32; shift += 16 * sizeof(Element)) {
        const Pair x = widen(a >> shift), y = widen(b >> shift);
        result |= narrow({f(x.low, y.low), f(x.high, y.high)}) << shift;
    }
    return result;
#else
    if constexpr (sizeof(Element) == 1) {
        Register result = 0;
#pragma unroll
        for (int shift = 0; shift < 32; shift += 8) {
            result |= u32(u8(f(Element(a >> shift), Element(b >> shift)))) << shift;
        }
        return result;
    } else {
        return bits_as<Register>(f(bits_as<Element>(a), bits_as<Element>(b)));
    }
#endif
}

struct Folding {
    template <class T> ROUNDELAY_DEVICE T operator()(T src, T acc) const { return Op::fold(src, acc); }
};

struct Finishing {
    i64 divisor;

    template <class T> ROUNDELAY_DEVICE T operator()(T sum, T) const { return divided(sum, divisor); }
};

// The last fold of a sum, and its division before the sum is rounded.
struct Averaging {
    i64 divisor;

    template <class T> ROUNDELAY_DEVICE T operator()(T src, T acc) const {
        return divided(Op::fold(src, acc), divisor);
    }
};

#if ROUNDELAY_FORMAT == 0 && !defined(ROUNDELAY_SHIM)
// Handles four bytes at once, which takes fewer instructions, and fewer registers than one for each byte.
constexpr bool SIGNED = Element(-1) < Element(0);

ROUNDELAY_DEVICE u32 fold_bytes(Sum, u32 src, u32 acc) { return __vadd4(src, acc); }
ROUNDELAY_DEVICE u32 fold_bytes(Min, u32 src, u32 acc) { return SIGNED ? __vmins4(src, acc) : __vminu4(src, acc); }
ROUNDELAY_DEVICE u32 fold_bytes(Max, u32 src, u32 acc) { return SIGNED ? __vmaxs4(src, acc) : __vmaxu4(src, acc); }
ROUNDELAY_DEVICE u32 fold_bytes(Prod, u32 src, u32 acc) { return u32(each(src, acc, Folding{})); }
ROUNDELAY_DEVICE u32 fold_bytes(Band, u32 src, u32 acc) { return src & acc; }
ROUNDELAY_DEVICE u32 fold_bytes(Bor, u32 src, u32 acc) { return src | acc; }
ROUNDELAY_DEVICE u32 fold_bytes(Bxor, u32 src, u32 acc) { return src ^ acc; }
ROUNDELAY_DEVICE u32 fold_bytes(Land, u32 src, u32 acc) { return __vsetne4(src, 0) & __vsetne4(acc, 0); }
ROUNDELAY_DEVICE u32 fold_bytes(Lor, u32 src, u32 acc) { return __vsetne4(src | acc, 0); }
ROUNDELAY_DEVICE u32 fold_bytes(Lxor, u32 src, u32 acc) { return __vsetne4(src, 0) ^ __vsetne4(acc, 0); }
#endif

// Folds every element of `src` into its neighbor of `acc`.
ROUNDELAY_DEVICE Register fold(Register src, Register acc) {
#if ROUNDELAY_FORMAT == 0 && !defined(ROUNDELAY_SHIM)
    if constexpr (sizeof(Element) == 1) {
        return fold_bytes(Op{}, src, acc);
    }
#endif
    return each(src, acc, Folding{});
}

ROUNDELAY_DEVICE Register finish(Register sum, i64 divisor) { return each(sum, sum, Finishing{divisor}); }

// Folds the last source of a sum; `divisor` is 0, or divides what is complete then.
ROUNDELAY_DEVICE Register fold_last(Register src, Register acc, i64 divisor) {
    if constexpr (AVERAGE) {
        if (divisor != 0) return each(src, acc, Averaging{divisor});
    }
    return fold(src, acc);
}

} // namespace roundelay
