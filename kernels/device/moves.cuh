// What a move does to memory: folds its sources, element by element, into all its destinations.
//
// All threads of a CTA call `move`; nothing orders it with what they did before or do next.
#pragma once
#include "base.cuh"
#include "numbers.cuh"

#ifndef ROUNDELAY_VECTOR
#define ROUNDELAY_VECTOR 16
#endif
#ifndef ROUNDELAY_IN_FLIGHT
#define ROUNDELAY_IN_FLIGHT 6
#endif
static_assert(ROUNDELAY_VECTOR == 16, "vectors have 16 bytes");

namespace roundelay {

// Loads of its own that a thread has in flight: enough to hide the way to memory, and still in registers.
constexpr int IN_FLIGHT = ROUNDELAY_IN_FLIGHT;

// How often a thread's part of a move is unrolled.
template <int SOURCES> constexpr int UNROLL = SOURCES >= IN_FLIGHT ? 1 : IN_FLIGHT / SOURCES;

// Where the units of a loop lie: the first `head` just before the addresses, the others `gap` bytes behind them.
struct Edges {
    u64 head;
    u64 gap;
};

// One unit of a move: a vector, or a single element.
template <class Unit> struct Width;
template <> struct Width<Vector> {
    static constexpr int REGISTERS = sizeof(Vector) / sizeof(Register);
};
template <> struct Width<Element> {
    static constexpr int REGISTERS = 1;
};

template <class Unit> using Loaded = Registers<Width<Unit>::REGISTERS>;

template <class Unit> ROUNDELAY_DEVICE Loaded<Unit> load_unit(u64 address) {
    if constexpr (sizeof(Unit) == sizeof(Loaded<Unit>)) {
        return bits_as<Loaded<Unit>>(load<Unit>(address));
    } else if constexpr (sizeof(Unit) == 2) {
        return {{load<u16>(address)}};
    } else {
        return {{load<u8>(address)}};
    }
}

template <class Unit> ROUNDELAY_DEVICE void store_unit(u64 address, Loaded<Unit> value) {
    if constexpr (sizeof(Unit) == sizeof(Loaded<Unit>)) {
        store<Unit>(address, bits_as<Unit>(value));
    } else if constexpr (sizeof(Unit) == 2) {
        store<u16>(address, u16(value.at[0]));
    } else {
        store<u8>(address, u8(value.at[0]));
    }
}

// So many units at these addresses.
template <class Unit, int S, int D>
ROUNDELAY_DEVICE void units(const u64 (&srcs)[S], const u64 (&dsts)[D], u64 units, Edges edges, i64 divisor) {
    constexpr int U = UNROLL<S>;
    // A warp takes units side by side, so that what differs between the rounds of the unrolled loop is known.
    const u64 warp = thread() / WARP, lane = thread() % WARP;
    const u64 stride = u64(threads()) * U;
#pragma unroll 1
    for (u64 first = warp * (WARP * U) + lane; first < units; first += stride) {
        const u64 base = (first - edges.head) * sizeof(Unit);
        Loaded<Unit> got[U][S];
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const u64 unit = first + u * WARP;
            if (unit < units) {
                const u64 gap = u * WARP * sizeof(Unit) + (unit < edges.head ? 0 : edges.gap);
#pragma unroll
                for (int s = 0; s < S; ++s) {
                    got[u][s] = load_unit<Unit>(srcs[s] + base + gap);
                }
            }
        }
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const u64 unit = first + u * WARP;
            if (unit < units) {
                Loaded<Unit> acc = got[u][0];
#pragma unroll
                for (int r = 0; r < Width<Unit>::REGISTERS; ++r) {
#pragma unroll
                    for (int s = 1; s < S; ++s) {
                        acc.at[r] = fold(got[u][s].at[r], acc.at[r]);
                    }
                    if constexpr (AVERAGE) {
                        acc.at[r] = divisor != 0 ? finish(acc.at[r], divisor) : acc.at[r];
                    }
                }
                const u64 gap = u * WARP * sizeof(Unit) + (unit < edges.head ? 0 : edges.gap);
#pragma unroll
                for (int d = 0; d < D; ++d) {
                    store_unit<Unit>(dsts[d] + base + gap, acc);
                }
            }
        }
    }
}

// Elements [begin, end) of operands that begin at these addresses:
// `acc = srcs[0]; for src in srcs[1..] { acc = src op acc }`, divided by `divisor` unless that is 0, to all of `dsts`.
// Two operands are the same memory or apart.
template <int S, int D>
ROUNDELAY_SHARED void move(const u64 (&srcs)[S], const u64 (&dsts)[D], u64 begin, u64 end, i64 divisor) {
    constexpr u64 SIZE = sizeof(Element);
    delay();
    if (begin >= end || (S == 1 && D == 1 && srcs[0] == dsts[0] && (!AVERAGE || divisor == 0))) {
        return;
    }
    const u64 len = end - begin;
    u64 differ = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) {
        differ |= srcs[s] ^ dsts[0];
    }
#pragma unroll
    for (int d = 1; d < D; ++d) {
        differ |= dsts[d] ^ dsts[0];
    }
    // Vectors lie at multiples of their size: either in all operands at once, or they would have to be shifted.
    u64 head = len, vectors = 0;
    if (differ % sizeof(Vector) == 0) {
        const u64 before = (0 - (dsts[0] + begin * SIZE)) % sizeof(Vector) / SIZE;
        head = before < len ? before : len;
        vectors = (len - head) * SIZE / sizeof(Vector);
    }
    u64 from[S], to[D];
#pragma unroll
    for (int s = 0; s < S; ++s) {
        from[s] = srcs[s] + (begin + head) * SIZE;
    }
#pragma unroll
    for (int d = 0; d < D; ++d) {
        to[d] = dsts[d] + (begin + head) * SIZE;
    }
    units<Vector>(from, to, vectors, {0, 0}, divisor);
    units<Element>(from, to, len - vectors * (sizeof(Vector) / SIZE), {head, vectors * sizeof(Vector)}, divisor);
}

// The part of a move that one of `parts` CTAs does.
struct Portion {
    u64 begin;
    u64 end;
};

// Elements at whose multiples parts are cut: whole vectors and lines of every dtype.
constexpr u64 GRAIN = 128;

ROUNDELAY_DEVICE Portion portion(u64 len, u64 parts, u64 part) {
    if (parts == 1) {
        return {0, len};
    }
    const u64 grains = (len + GRAIN - 1) / GRAIN;
    const u64 each = (grains + parts - 1) / parts * GRAIN;
    const u64 begin = each * part, end = begin + each;
    return {begin < len ? begin : len, end < len ? end : len};
}

} // namespace roundelay
