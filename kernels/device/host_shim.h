// The machine of base.cuh on a CPU: a thread for each thread of a CTA. For g++ -DROUNDELAY_SHIM -include host_shim.h;
// the rest is in shim_main.cpp, which runs a kernel.
#pragma once
#include "base.cuh"

#define ROUNDELAY_DEVICE inline
#define ROUNDELAY_SHARED inline __attribute__((noinline))
#define ROUNDELAY_KERNEL_OF(NAME, WALKERS)                                                                             \
    static void NAME(const roundelay::Launch launch);                                                                  \
    static const bool NAME##_entered = roundelay::shim::enter(#NAME, {NAME, WALKERS});                                 \
    static void NAME(const roundelay::Launch launch)
#define ROUNDELAY_KERNEL(NAME) ROUNDELAY_KERNEL_OF(NAME, 0)
#define ROUNDELAY_WALKED_KERNEL(NAME) ROUNDELAY_KERNEL_OF(NAME, 1)

namespace roundelay {

constexpr bool TRACING = true;
// A thread is a warp of its own, so that four threads share a move as four warps do.
constexpr int WARP = 1;
constexpr u32 POLLS = 1;

namespace shim {

struct Kernel {
    void (*run)(const Launch);
    int walkers; // threads of a CTA besides those that move
};

// Registers a kernel by its name.
bool enter(const char* name, Kernel kernel);

// The barrier of all threads of this CTA that move: returns whether any came with `mine`.
bool meet(bool mine);

// Ends the program where a device would have trapped.
[[noreturn]] void misaligned(u64 address, u64 alignment);

} // namespace shim

int thread();
int threads();
int block_index();
u64 nanoseconds();
void delay();
void make_room();
void trace_signal(bool post, int kind, i64 from, i64 to, i64 lane);
void trace_move(const Traced* operands, int sources, int destinations, i64 len, bool finish);

inline void cta_sync() { shim::meet(false); }
inline bool cta_any(bool mine) { return shim::meet(mine); }
inline void warp_sync() {}
inline bool warp_all(bool mine) { return mine; }
inline int warp_first(bool mine) { return mine ? 0 : -1; }
inline u64 warp_get(u64 mine, int) { return mine; }

inline bool walks() { return thread() >= threads(); }
inline int walker() { return thread() - threads(); }
inline bool leads() { return true; }
inline void walker_sync() {}
void everyone_sync();

constexpr u32 SHARED_BYTES = 4096;
void* shared_memory();
void publish(u32* at, u32 value);
u32 wait_until_not(const u32* at, u32 known);
[[noreturn]] void trap();

template <Scope S> u64 load_acquire(const u64* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }

template <Scope S> u64 load_relaxed(const u64* at) {
#ifdef __SANITIZE_THREAD__
    // The thread sanitizer does not know fences, which make acquires of these loads.
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
#else
    return __atomic_load_n(at, __ATOMIC_RELAXED);
#endif
}

template <Scope S> void store_relaxed(u64* at, u64 value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
template <Scope S> void store_release(u64* at, u64 value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
template <Scope S> void add_release(u64* at, u64 value) { __atomic_fetch_add(at, value, __ATOMIC_RELEASE); }

template <Scope S> void fence() {
#ifndef __SANITIZE_THREAD__
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

template <Scope S, bool ORDERED> Vector load_words(const Vector* at) {
    // A flag that ends a wide line comes with all that was stored before it.
    const u64 high = __atomic_load_n(&at->words[1], ORDERED ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED);
    delay();
    return {{__atomic_load_n(&at->words[0], __ATOMIC_RELAXED), high}};
}

template <Scope S, bool ORDERED> void store_words(Vector* at, Vector line) {
    // Some lines of LL are stored from the front and some from the back: no reader may rely on an order.
    const u64 first = ORDERED ? 0 : u64(at) / sizeof(Vector) % 2;
    __atomic_store_n(&at->words[first], line.words[first], __ATOMIC_RELAXED);
    delay();
    __atomic_store_n(&at->words[1 - first], line.words[1 - first], ORDERED ? __ATOMIC_RELEASE : __ATOMIC_RELAXED);
}

template <class To, class From> To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
}

inline u64 at_hand(u64 value) { return value; }

inline i64 constant(const i64* at) { return *at; }

// Checks alignment, as a device demands it.
template <class T> T* aligned(u64 address) {
    if (address % sizeof(T) != 0) {
        shim::misaligned(address, sizeof(T));
    }
    return reinterpret_cast<T*>(address);
}

template <class T> T load(u64 address) {
    T value;
    __builtin_memcpy(&value, aligned<const T>(address), sizeof(T));
    return value;
}

inline Vector load_once(u64 address) { return load<Vector>(address); }

template <class T> void store(u64 address, T value) { __builtin_memcpy(aligned<T>(address), &value, sizeof(T)); }

namespace shim {

// A float of fewer than 32 bits. FORMAT is the format of numbers.cuh.
template <int FORMAT> struct Small;
template <> struct Small<16> {
    static constexpr int EXPONENT = 5, MANTISSA = 10;
    static constexpr u32 INFINITE = 0x7c00, NOT_A_NUMBER = 0x7e00, LARGEST = INFINITE;
};
template <> struct Small<17> {
    static constexpr int EXPONENT = 8, MANTISSA = 7;
    static constexpr u32 INFINITE = 0x7f80, NOT_A_NUMBER = 0x7fc0, LARGEST = INFINITE;
};
template <> struct Small<8> {
    // There is no infinity: the value stands for a pattern that no number has.
    static constexpr int EXPONENT = 4, MANTISSA = 3;
    static constexpr u32 INFINITE = 0x80, NOT_A_NUMBER = 0x7f, LARGEST = 0x7e;
};
template <> struct Small<9> {
    static constexpr int EXPONENT = 5, MANTISSA = 2;
    static constexpr u32 INFINITE = 0x7c, NOT_A_NUMBER = 0x7f, LARGEST = 0x7b;
};

// Converts exactly.
template <int FORMAT> f32 widen(u32 bits) {
    using F = Small<FORMAT>;
    constexpr int SHIFT = 23 - F::MANTISSA, BIAS = (1 << (F::EXPONENT - 1)) - 1;
    const u32 magnitude = bits & ((1u << (F::EXPONENT + F::MANTISSA)) - 1);
    const u32 sign = (bits >> (F::EXPONENT + F::MANTISSA)) << 31;
    u32 wide;
    if (magnitude == F::INFINITE) {
        wide = 0x7f800000;
    } else if (magnitude > F::INFINITE || (FORMAT == 8 && magnitude == F::NOT_A_NUMBER)) {
        wide = 0x7f800000 | ((magnitude & ((1u << F::MANTISSA) - 1)) << SHIFT);
    } else if (magnitude >> F::MANTISSA != 0) {
        wide = (magnitude << SHIFT) + (u32(127 - BIAS) << 23);
    } else {
        // Multiples of the smallest number, 2^(1 - BIAS - MANTISSA).
        const f32 smallest = BIAS == 127 ? bits_as<f32>(1u << SHIFT) : bits_as<f32>(u32(128 - BIAS - F::MANTISSA) << 23);
        wide = bits_as<u32>(f32(magnitude) * smallest);
    }
    return bits_as<f32>(wide | sign);
}

// Rounds to nearest even.
template <int FORMAT> u32 narrow(f32 value) {
    using F = Small<FORMAT>;
    constexpr int SHIFT = 23 - F::MANTISSA, BIAS = (1 << (F::EXPONENT - 1)) - 1;
    const u32 wide = bits_as<u32>(value), magnitude = wide & 0x7fffffff;
    const u32 sign = (wide >> 31) << (F::EXPONENT + F::MANTISSA);
    if (magnitude > 0x7f800000) {
        return F::EXPONENT + F::MANTISSA == 7 ? F::NOT_A_NUMBER : F::NOT_A_NUMBER | sign;
    }
    if (magnitude == 0x7f800000) {
        return (FORMAT == 8 ? F::LARGEST : F::INFINITE) | sign;
    }
    // Below the smallest normal number, mantissas lose further bits, and the hidden bit is no longer hidden.
    int lost = SHIFT;
    u32 mantissa = magnitude - (u32(127 - BIAS) << 23);
    if (BIAS < 127 && magnitude < u32(128 - BIAS) << 23) {
        lost += 128 - BIAS - int(magnitude >> 23);
        mantissa = lost > 24 + 1 ? 0 : (magnitude & 0x7fffff) | 0x800000;
        lost = lost > 24 + 1 ? 1 : lost;
    }
    const u32 odd = (mantissa >> lost) & 1;
    const u32 rounded = (mantissa + (1u << (lost - 1)) - 1 + odd) >> lost;
    return (rounded > F::LARGEST ? F::LARGEST : rounded) | sign;
}

} // namespace shim

} // namespace roundelay
