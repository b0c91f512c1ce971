// The base of the prelude: types, the launch, and the machine's barriers and ordered accesses. All PTX but `multimem`
// (switch.cuh) is here; host_shim.h gives the same functions in C++ for threads of a CPU.
#pragma once

namespace roundelay {

using i8 = signed char;
using u8 = unsigned char;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;
using f32 = float;
using f64 = double;

// The addresses of a rank's memory, as this device may use them.
struct Memory {
    u64 input;
    u64 output;
    u64 scratch;
    u64 posted; // counters that only rise, one for each channel and part of the poster; peers add to them
    u64 waited; // how often each part of this rank has waited on each channel
};

// The caller's buffers of the only rank of a launch, where the rank's memory has a stage of each in their place: see
// ROUNDELAY_STAGED in lane.cuh. Lengths are elements; a buffer of length 0 is not staged.
struct Stage {
    u64 input;
    u64 input_length;
    u64 output;
    u64 output_length;
    u64 table; // of those behind `ranks`, the one that has this rank's buffers: 0 where they are the stages
};

// The values that differ between launches of one text.
struct Launch {
    const i64* facts;
    const Memory* ranks;
    u64* control; // mapped host memory: see signals.cuh
    u64* launches; // of each CTA that counts them, before this one
    u64 count;
    u64 parts;       // CTAs that share a stream
    u64 first_group; // the first (rank, stream) of this device
    u64 poll_limit_ns;
    u64 finish_scale; // whether an average is divided by a kernel of its own
    Stage stage;
};

// The ranks that must see what a signal orders: those of this device, or those of other devices too.
enum class Scope { Device, System };

#ifdef ROUNDELAY_SCOPE_SYS
constexpr Scope SCOPE = Scope::System;
#else
constexpr Scope SCOPE = Scope::Device;
#endif

// The bytes that one load or store moves.
struct alignas(16) Vector {
    u64 words[2];
};

// An operand of a move, as a trace names it.
struct Traced {
    i64 rank;
    int buffer;
    i64 offset; // in elements
};

} // namespace roundelay

// Threads of a CTA.
#ifndef ROUNDELAY_THREADS
#define ROUNDELAY_THREADS 256
#endif
// Threads of a CTA that move; one more warp walks.
#ifndef ROUNDELAY_MOVERS
#define ROUNDELAY_MOVERS (ROUNDELAY_THREADS - 32)
#endif
// CTAs that a multiprocessor is to hold at once.
#ifndef ROUNDELAY_CTAS
#define ROUNDELAY_CTAS 1
#endif

#ifdef ROUNDELAY_SHIM
#include "host_shim.h"
#else

#define ROUNDELAY_DEVICE __device__ __forceinline__
// A function with one copy in the kernel, however often it is called.
#define ROUNDELAY_SHARED __device__ __noinline__
#define ROUNDELAY_KERNEL_OF(NAME, THREADS)                                                                             \
    extern "C" __global__ void __launch_bounds__(THREADS, ROUNDELAY_CTAS)                                              \
        NAME(const __grid_constant__ roundelay::Launch launch)
// A kernel of only the threads that move, and a kernel with the warp that walks.
#define ROUNDELAY_KERNEL(NAME) ROUNDELAY_KERNEL_OF(NAME, ROUNDELAY_MOVERS)
#define ROUNDELAY_WALKED_KERNEL(NAME) ROUNDELAY_KERNEL_OF(NAME, ROUNDELAY_THREADS)

namespace roundelay {

#ifdef ROUNDELAY_TRACED
constexpr bool TRACING = true;
#else
constexpr bool TRACING = false;
#endif
// Threads whose accesses are one access where they are side by side.
constexpr int WARP = 32;
// Polls between two checks of the abort flag and the clock.
constexpr u32 POLLS = 1024;

ROUNDELAY_DEVICE int thread() { return int(threadIdx.x); }
// The number of threads that move; behind them is the warp that walks, if there is one.
ROUNDELAY_DEVICE constexpr int threads() { return ROUNDELAY_MOVERS; }
ROUNDELAY_DEVICE int block_index() { return int(blockIdx.x); }

// ---- barriers; each orders what its threads did before it ---------------------------------------------------

// The barrier of all threads that move.
ROUNDELAY_DEVICE void cta_sync() { asm volatile("bar.sync 1, %0;" ::"n"(ROUNDELAY_MOVERS) : "memory"); }

ROUNDELAY_DEVICE bool cta_any(bool mine) {
    u32 any;
    asm volatile("{ .reg .pred mine, any; setp.ne.u32 mine, %1, 0; bar.red.or.pred any, 1, %2, mine; selp.u32 %0, 1, 0, any; }"
                 : "=r"(any)
                 : "r"(u32(mine)), "n"(ROUNDELAY_MOVERS)
                 : "memory");
    return any != 0;
}

// The barrier of the threads of a warp. The votes below order no accesses to memory.
ROUNDELAY_DEVICE void warp_sync() { __syncwarp(); }
// Whether `mine` holds for all threads of the warp.
ROUNDELAY_DEVICE bool warp_all(bool mine) { return __all_sync(~0u, mine) != 0; }
// The first thread of the warp for which `mine` holds; -1 where it holds for none.
ROUNDELAY_DEVICE int warp_first(bool mine) { return __ffs(int(__ballot_sync(~0u, mine))) - 1; }
// The value of `mine` in thread `from` of the warp.
ROUNDELAY_DEVICE u64 warp_get(u64 mine, int from) { return __shfl_sync(~0u, mine, from); }

// ---- the warp that walks ---------------------------------------------------------------------------------

ROUNDELAY_DEVICE bool walks() { return thread() >= threads(); }
// The index of this thread in the warp that walks.
ROUNDELAY_DEVICE int walker() { return thread() - threads(); }
ROUNDELAY_DEVICE bool leads() { return walker() == 0; }
ROUNDELAY_DEVICE void walker_sync() { warp_sync(); }
// The barrier of the warp that walks and all other threads.
ROUNDELAY_DEVICE void everyone_sync() { __syncthreads(); }

constexpr u32 SHARED_BYTES = 4096;

ROUNDELAY_DEVICE void* shared_memory() {
    __shared__ Vector memory[SHARED_BYTES / sizeof(Vector)];
    return memory;
}

// Tells the CTA that the work before this call is done.
ROUNDELAY_DEVICE void publish(u32* at, u32 value) {
    asm volatile("st.release.cta.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

// Waits for a published value other than `known`.
ROUNDELAY_DEVICE u32 wait_until_not(const u32* at, u32 known) {
    u32 value;
    do {
        asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    } while (value == known);
    return value;
}

// Traps; no correct program comes here.
ROUNDELAY_DEVICE void trap() { __trap(); }

// ---- accesses that order CTAs among each other ---------------------------------------------------------------

template <Scope S> ROUNDELAY_DEVICE u64 load_acquire(const u64* at) {
    u64 value;
    if constexpr (S == Scope::System) {
        asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    } else {
        asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    }
    return value;
}

template <Scope S> ROUNDELAY_DEVICE u64 load_relaxed(const u64* at) {
    u64 value;
    if constexpr (S == Scope::System) {
        asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    } else {
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    }
    return value;
}

template <Scope S> ROUNDELAY_DEVICE void store_relaxed(u64* at, u64 value) {
    if constexpr (S == Scope::System) {
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
    } else {
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
    }
}

template <Scope S> ROUNDELAY_DEVICE void store_release(u64* at, u64 value) {
    if constexpr (S == Scope::System) {
        asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
    } else {
        asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
    }
}

template <Scope S> ROUNDELAY_DEVICE void add_release(u64* at, u64 value) {
    if constexpr (S == Scope::System) {
        asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
    } else {
        asm volatile("red.release.gpu.global.add.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
    }
}

template <Scope S> ROUNDELAY_DEVICE void fence() {
    if constexpr (S == Scope::System) {
        asm volatile("fence.acq_rel.sys;" ::: "memory");
    } else {
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
    }
}

// Two words, each loaded whole, in no order with each other: a vector of a slot of lines. ORDERED is for the shim: there
// lines that arrive whole are words in order.
template <Scope S, bool ORDERED> ROUNDELAY_DEVICE Vector load_words(const Vector* at) {
    Vector line;
    if constexpr (S == Scope::System) {
        asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(line.words[0]), "=l"(line.words[1])
                     : "l"(at)
                     : "memory");
    } else {
        asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(line.words[0]), "=l"(line.words[1])
                     : "l"(at)
                     : "memory");
    }
    return line;
}

template <Scope S, bool ORDERED> ROUNDELAY_DEVICE void store_words(Vector* at, Vector line) {
    if constexpr (S == Scope::System) {
        asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(line.words[0]), "l"(line.words[1])
                     : "memory");
    } else {
        asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(line.words[0]), "l"(line.words[1])
                     : "memory");
    }
}

// ---- the rest of the machine -----------------------------------------------------------------------------

// The bits of a value, read as another type.
template <class To, class From> ROUNDELAY_DEVICE To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    memcpy(&to, &from, sizeof(To));
    return to;
}

// Returns `value`, which is then computed once and not again at each use.
ROUNDELAY_DEVICE u64 at_hand(u64 value) {
    asm volatile("" : "+l"(value));
    return value;
}

// Loads a word that never changes while a kernel runs.
ROUNDELAY_DEVICE i64 constant(const i64* at) { return __ldg(at); }

// Ordinary accesses to memory that a rank owns, aligned for `T`: ordered by the barriers and signals around them.
template <class T> ROUNDELAY_DEVICE T load(u64 address) {
    if constexpr (sizeof(T) == 16) {
        T value;
        asm volatile("ld.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(value.words[0]), "=l"(value.words[1])
                     : "l"(address)
                     : "memory");
        return value;
    } else if constexpr (sizeof(T) == 8) {
        u64 value;
        asm volatile("ld.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
        return bits_as<T>(value);
    } else if constexpr (sizeof(T) == 4) {
        u32 value;
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
        return bits_as<T>(value);
    } else if constexpr (sizeof(T) == 2) {
        u16 value;
        asm volatile("ld.global.u16 %0, [%1];" : "=h"(value) : "l"(address) : "memory");
        return bits_as<T>(value);
    } else {
        u32 value;
        asm volatile("ld.global.u8 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
        return bits_as<T>(u8(value));
    }
}

template <class T> ROUNDELAY_DEVICE void store(u64 address, T value) {
    if constexpr (sizeof(T) == 16) {
        asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(address), "l"(value.words[0]), "l"(value.words[1])
                     : "memory");
    } else if constexpr (sizeof(T) == 8) {
        asm volatile("st.global.u64 [%0], %1;" ::"l"(address), "l"(bits_as<u64>(value)) : "memory");
    } else if constexpr (sizeof(T) == 4) {
        asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(bits_as<u32>(value)) : "memory");
    } else if constexpr (sizeof(T) == 2) {
        asm volatile("st.global.u16 [%0], %1;" ::"l"(address), "h"(bits_as<u16>(value)) : "memory");
    } else {
        asm volatile("st.global.u8 [%0], %1;" ::"l"(address), "r"(u32(bits_as<u8>(value))) : "memory");
    }
}

// Loads a vector that is not loaded again, so that it takes no room in the cache.
ROUNDELAY_DEVICE Vector load_once(u64 address) {
    Vector value;
    asm volatile("ld.global.L1::no_allocate.v2.u64 {%0, %1}, [%2];"
                 : "=l"(value.words[0]), "=l"(value.words[1])
                 : "l"(address)
                 : "memory");
    return value;
}

ROUNDELAY_DEVICE u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    return now;
}

// For the shim: a random pause, and a pause that yields to other threads.
ROUNDELAY_DEVICE void delay() {}
ROUNDELAY_DEVICE void make_room() {}

// Records of signals and moves, for a test that says in ROUNDELAY_TRACED how many CTAs there are.
#ifdef ROUNDELAY_TRACED
constexpr u64 TRACE_WORDS = 1 << 13;

extern "C" {
// For each CTA, the number of its words, and these words.
__device__ u64 roundelay_trace[ROUNDELAY_TRACED * TRACE_WORDS];
}

// Adds a word to the record of this CTA, by its last thread, which walks.
ROUNDELAY_DEVICE void trace_word(u64 word) {
    if (thread() != ROUNDELAY_THREADS - 1) return;
    u64* const words = roundelay_trace + u64(block_index()) * TRACE_WORDS;
    const u64 at = words[0] + 1;
    if (at == TRACE_WORDS) trap();
    words[0] = at;
    words[at] = word;
}

ROUNDELAY_DEVICE void trace_signal(bool post, int kind, i64 from, i64 to, i64 lane) {
    const u64 words[] = {u64(post), u64(kind), u64(from), u64(to), u64(lane)};
    for (const u64 word : words) trace_word(word);
}

ROUNDELAY_DEVICE void trace_move(const Traced* operands, int sources, int destinations, i64 len, bool finish) {
    const u64 words[] = {2, u64(sources), u64(destinations), u64(len), u64(finish)};
    for (const u64 word : words) trace_word(word);
    for (int i = 0; i < sources + destinations; ++i) {
        trace_word(u64(operands[i].rank));
        trace_word(u64(operands[i].buffer));
        trace_word(u64(operands[i].offset));
    }
}
#else
ROUNDELAY_DEVICE void trace_signal(bool, int, i64, i64, i64) {}
ROUNDELAY_DEVICE void trace_move(const Traced*, int, int, i64, bool) {}
#endif

} // namespace roundelay

#endif
