// The effect of a move on memory: folds its sources, element by element, into all its destinations.
//
// All threads of a CTA call `move`; it is not ordered with what they do before or after it.
#pragma once
#include "base.cuh"
#include "numbers.cuh"

#ifndef ROUNDELAY_VECTOR
#define ROUNDELAY_VECTOR 16
#endif
#ifndef ROUNDELAY_IN_FLIGHT
#define ROUNDELAY_IN_FLIGHT 8
#endif
static_assert(ROUNDELAY_VECTOR == 16, "vectors have 16 bytes");

namespace roundelay {

// Vectors that a thread has under way at once.
constexpr int IN_FLIGHT = ROUNDELAY_IN_FLIGHT;

// The unrolling of a thread's part of a move, if `LOADS` vectors make one vector of the result.
template <int LOADS> constexpr int UNROLL = LOADS >= IN_FLIGHT ? 1 : IN_FLIGHT / LOADS;

// ---- a vector, or a single element ----------------------------------------------------------------------------

template <class Unit> struct Width;
template <> struct Width<Vector> {
    static constexpr int REGISTERS = sizeof(Vector) / sizeof(Register);
};
template <> struct Width<Element> {
    static constexpr int REGISTERS = 1;
};

template <class Unit> using Loaded = Registers<Width<Unit>::REGISTERS>;

template <class Unit> ROUNDELAY_DEVICE Loaded<Unit> load_unit(u64 address) {
    if constexpr (sizeof(Unit) == sizeof(Vector)) {
        return bits_as<Loaded<Unit>>(load_once(address));
    } else if constexpr (sizeof(Unit) == sizeof(Loaded<Unit>)) {
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

// The result of a move's sources so far. It is rounded after each source; with WIDE, numbers narrower than f32 are f32
// until the end. A sum is divided with its last source, by `divisor` unless that is 0, before it is rounded.
template <int N, bool WIDE> struct Result {
    Registers<N> so_far;

    ROUNDELAY_DEVICE void begin(const Registers<N>& first) { so_far = first; }

    ROUNDELAY_DEVICE void take(const Registers<N>& src) {
#pragma unroll
        for (int r = 0; r < N; ++r) so_far.at[r] = fold(src.at[r], so_far.at[r]);
    }

    ROUNDELAY_DEVICE void take_last(const Registers<N>& src, i64 divisor) {
#pragma unroll
        for (int r = 0; r < N; ++r) so_far.at[r] = fold_last(src.at[r], so_far.at[r], divisor);
    }

    ROUNDELAY_DEVICE Registers<N> end() const { return so_far; }
};

#if ROUNDELAY_FORMAT != 0
template <int N> struct Result<N, true> {
    // Pairs of numbers in a register.
    static constexpr int PAIRS = sizeof(Register) / (2 * sizeof(Element));
    static constexpr int BITS_OF_PAIR = 16 * sizeof(Element);
    Pair so_far[N][PAIRS];

    ROUNDELAY_DEVICE void begin(const Registers<N>& first) {
#pragma unroll
        for (int r = 0; r < N; ++r) {
#pragma unroll
            for (int p = 0; p < PAIRS; ++p) so_far[r][p] = widen(first.at[r] >> p * BITS_OF_PAIR);
        }
    }

    ROUNDELAY_DEVICE void take(const Registers<N>& src) {
#pragma unroll
        for (int r = 0; r < N; ++r) {
#pragma unroll
            for (int p = 0; p < PAIRS; ++p) {
                const Pair with = widen(src.at[r] >> p * BITS_OF_PAIR);
                Pair& sum = so_far[r][p];
                sum = {Op::fold(with.low, sum.low), Op::fold(with.high, sum.high)};
            }
        }
    }

    ROUNDELAY_DEVICE void take_last(const Registers<N>& src, i64 divisor) {
        take(src);
        if constexpr (AVERAGE) {
            if (divisor == 0) return;
#pragma unroll
            for (int r = 0; r < N; ++r) {
#pragma unroll
                for (int p = 0; p < PAIRS; ++p) {
                    Pair& sum = so_far[r][p];
                    sum = {divided(sum.low, divisor), divided(sum.high, divisor)};
                }
            }
        }
    }

    ROUNDELAY_DEVICE Registers<N> end() const {
        Registers<N> rounded{};
#pragma unroll
        for (int r = 0; r < N; ++r) {
#pragma unroll
            for (int p = 0; p < PAIRS; ++p) rounded.at[r] |= narrow(so_far[r][p]) << p * BITS_OF_PAIR;
        }
        return rounded;
    }
};
#endif

// A move of three sources or more rounds once, unless the moves of this kernel are chains of moves of two.
#ifndef ROUNDELAY_CHAIN
#define ROUNDELAY_CHAIN 0
#endif
#if ROUNDELAY_FORMAT != 0 && !ROUNDELAY_CHAIN
constexpr bool ROUNDS_ONCE = true;
#else
constexpr bool ROUNDS_ONCE = false;
#endif
template <class Unit, int S> using ResultOf = Result<Width<Unit>::REGISTERS, ROUNDS_ONCE && (S > 2)>;

// The result of a move of `S` sources; a single one is not folded, and is divided here.
template <int S, int N> ROUNDELAY_DEVICE Registers<N> finished(Registers<N> sum, i64 divisor) {
    if constexpr (AVERAGE && S == 1) {
#pragma unroll
        for (int r = 0; r < N; ++r) sum.at[r] = divisor != 0 ? finish(sum.at[r], divisor) : sum.at[r];
    }
    return sum;
}

template <class Unit, int S> ROUNDELAY_DEVICE Loaded<Unit> folded(const Loaded<Unit> (&got)[S], i64 divisor) {
    ResultOf<Unit, S> result;
    result.begin(got[0]);
#pragma unroll
    for (int s = 1; s < S; ++s) AVERAGE && s + 1 == S ? result.take_last(got[s], divisor) : result.take(got[s]);
    return finished<S>(result.end(), divisor);
}

// ---- vectors that are not aligned to their size -----------------------------------------------------------------

// The low 64 bits of 128, from bit `bits` on; fewer than 64.
ROUNDELAY_DEVICE u64 funnel(u64 low, u64 high, u32 bits) { return low >> bits | high << 1 << (63 - bits); }

// The two vectors around an address.
struct Around {
    Vector low, high;
};

ROUNDELAY_DEVICE Around load_around(u64 address) {
    const u64 low = address & ~(sizeof(Vector) - 1);
    Around around{load<Vector>(low), {}};
    // Where the address is aligned, one vector holds all of it.
    if (address != low) around.high = load<Vector>(low + sizeof(Vector));
    return around;
}

ROUNDELAY_DEVICE Loaded<Vector> within(const Around& around, u64 address) {
    const u64 a = around.low.words[0], b = around.low.words[1], c = around.high.words[0], d = around.high.words[1];
    const bool far = address % sizeof(Vector) >= sizeof(u64);
    const u32 bits = u32(address % sizeof(u64)) * 8;
    return bits_as<Loaded<Vector>>(Vector{{funnel(far ? b : a, far ? c : b, bits), funnel(far ? c : b, far ? d : c, bits)}});
}

// ---- loops -----------------------------------------------------------------------------------------------------

// A thread's way through vectors that the threads of a CTA share, U of them in a round. Those of a warp lie side by
// side, so that offsets within a round are known.
template <int U> struct Rounds {
    static constexpr u64 APART = WARP * sizeof(Vector);

    u64 offset; // of this thread's first
    u64 left;   // vectors from there to the end

    ROUNDELAY_DEVICE explicit Rounds(u64 count) {
        const u64 first = u64(thread() / WARP * (WARP * U) + thread() % WARP);
        offset = first * sizeof(Vector);
        left = first < count ? count - first : 0;
    }

    ROUNDELAY_DEVICE Rounds next() const {
        const u64 all = u64(threads()) * U;
        Rounds next = *this;
        next.offset += all * sizeof(Vector);
        next.left = left > all ? left - all : 0;
        return next;
    }

    // The number of vectors from there on, limited to a round.
    ROUNDELAY_DEVICE u32 here() const { return u32(left < U * WARP ? left : U * WARP); }
};

// Moves `count` vectors at these addresses. The loads of a round are issued before the stores of the round before.
template <int S, int D>
ROUNDELAY_DEVICE void vectors(const u64 (&srcs)[S], const u64 (&dsts)[D], u64 count, i64 divisor) {
    constexpr int U = UNROLL<S>;
    using Round = Rounds<U>;
    // The value is defined where a thread has no vector: the compiler would otherwise keep registers from one move to
    // the next.
    Loaded<Vector> got[U][S]{};
    const auto fetch = [&](const Round& round) {
        const u32 here = round.here();
        u64 from[S];
#pragma unroll
        for (int s = 0; s < S; ++s) from[s] = at_hand(srcs[s] + round.offset);
#pragma unroll
        for (int u = 0; u < U; ++u) {
            if (u32(u * WARP) >= here) continue;
#pragma unroll
            for (int s = 0; s < S; ++s) got[u][s] = load_unit<Vector>(from[s] + u * Round::APART);
        }
    };
    Round round(count);
    fetch(round);
#pragma unroll 1
    while (round.left > 0) {
        Loaded<Vector> acc[U];
#pragma unroll
        for (int u = 0; u < U; ++u) acc[u] = folded<Vector>(got[u], divisor);
        const Round next = round.next();
        fetch(next);
        const u32 here = round.here();
        u64 to[D];
#pragma unroll
        for (int d = 0; d < D; ++d) to[d] = at_hand(dsts[d] + round.offset);
#pragma unroll
        for (int u = 0; u < U; ++u) {
            if (u32(u * WARP) >= here) continue;
#pragma unroll
            for (int d = 0; d < D; ++d) store_unit<Vector>(to[d] + u * Round::APART, acc[u]);
        }
        round = next;
    }
}

// Moves vectors where sources and destinations are aligned differently; fewer loads are under way, because each needs
// two.
template <int S, int D>
ROUNDELAY_DEVICE void shifted(const u64 (&srcs)[S], const u64 (&dsts)[D], u64 count, i64 divisor) {
    constexpr int U = UNROLL<2 * S>;
    // Sources that are loaded at once.
    constexpr int B = 2 * S <= IN_FLIGHT ? S : IN_FLIGHT >= 4 ? IN_FLIGHT / 2 : 1;
    using Round = Rounds<U>;
    Around got[U][B]{};
#pragma unroll 1
    for (Round round(count); round.left > 0; round = round.next()) {
        const u32 here = round.here();
        ResultOf<Vector, S> acc[U];
#pragma unroll
        for (int first = 0; first < S; first += B) {
#pragma unroll
            for (int u = 0; u < U; ++u) {
#pragma unroll
                for (int s = first; s < S && s < first + B; ++s) {
                    if (u32(u * WARP) < here) got[u][s - first] = load_around(srcs[s] + round.offset + u * Round::APART);
                }
            }
#pragma unroll
            for (int u = 0; u < U; ++u) {
#pragma unroll
                for (int s = first; s < S && s < first + B; ++s) {
                    const Loaded<Vector> value = within(got[u][s - first], srcs[s]);
                    const bool last = AVERAGE && s + 1 == S;
                    s == 0 ? acc[u].begin(value) : last ? acc[u].take_last(value, divisor) : acc[u].take(value);
                }
            }
        }
#pragma unroll
        for (int u = 0; u < U; ++u) {
            if (u32(u * WARP) >= here) continue;
            const Loaded<Vector> result = finished<S>(acc[u].end(), divisor);
#pragma unroll
            for (int d = 0; d < D; ++d) store_unit<Vector>(dsts[d] + round.offset + u * Round::APART, result);
        }
    }
}

// Moves elements `[0, head)` and `[tail, len)` of the operands at these addresses.
template <int S, int D>
ROUNDELAY_DEVICE void elements(const u64 (&srcs)[S], const u64 (&dsts)[D], u64 head, u64 tail, u64 len, i64 divisor) {
    const u64 between = tail - head;
#pragma unroll 1
    for (u64 nth = thread(); nth < len - between; nth += threads()) {
        const u64 at = (nth < head ? nth : nth + between) * sizeof(Element);
        Loaded<Element> got[S];
#pragma unroll
        for (int s = 0; s < S; ++s) got[s] = load_unit<Element>(srcs[s] + at);
        const Loaded<Element> acc = folded<Element>(got, divisor);
#pragma unroll
        for (int d = 0; d < D; ++d) store_unit<Element>(dsts[d] + at, acc);
    }
}

// ---- moves -----------------------------------------------------------------------------------------------------

// Moves elements at these addresses, whose destinations lie alike within 16 bytes.
template <int S, int D>
ROUNDELAY_DEVICE void stretch(const u64 (&srcs)[S], const u64 (&dsts)[D], u64 len, i64 divisor) {
    constexpr u64 EACH = sizeof(Vector) / sizeof(Element);
    u64 differ = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) differ |= srcs[s] ^ dsts[0];
    const bool lie_apart = differ % sizeof(Vector) != 0;
    // The vectors that are loaded around an unaligned vector lie in this stretch, too.
    const u64 around = lie_apart ? EACH : 0;
    const u64 head = (0 - dsts[0]) % sizeof(Vector) / sizeof(Element) + around;
    const u64 count = len > head + around ? (len - head - around) / EACH : 0;
    if (count > 0) {
        u64 from[S], to[D];
#pragma unroll
        for (int s = 0; s < S; ++s) from[s] = srcs[s] + head * sizeof(Element);
#pragma unroll
        for (int d = 0; d < D; ++d) to[d] = dsts[d] + head * sizeof(Element);
        if (lie_apart) {
            shifted(from, to, count, divisor);
        } else {
            vectors(from, to, count, divisor);
        }
    }
    const u64 edge = count > 0 ? head : 0;
    elements(srcs, dsts, edge, edge + count * EACH, len, divisor);
}

// Writes one destination after another, because they are aligned differently; a destination that is also a source is
// the last.
template <int S, int D>
ROUNDELAY_SHARED void stretches(const u64 (&srcs)[S], const u64 (&dsts)[D], u64 len, i64 divisor) {
    u64 last = dsts[D - 1];
    int sources = 0;
#pragma unroll
    for (int d = 0; d < D; ++d) {
#pragma unroll
        for (int s = 0; s < S; ++s) {
            if (srcs[s] != dsts[d]) continue;
            last = dsts[d];
            ++sources;
        }
    }
    if (sources > 1) return elements(srcs, dsts, 0, 0, len, divisor);
#pragma unroll 1
    for (int d = 0; d < D; ++d) {
        const u64 to[1] = {dsts[d]};
        if (to[0] != last) stretch<S, 1>(srcs, to, len, divisor);
    }
    cta_sync();
    const u64 to[1] = {last};
    stretch<S, 1>(srcs, to, len, divisor);
}

// Moves elements [begin, end) of operands that begin at these addresses:
// `acc = srcs[0]; for src in srcs[1..] { acc = src op acc }`, divided by `divisor` unless that is 0, rounded (see ResultOf), to all of `dsts`.
// Two operands are equal or apart.
template <int S, int D>
ROUNDELAY_DEVICE void move(const u64 (&srcs)[S], const u64 (&dsts)[D], u64 begin, u64 end, i64 divisor) {
    delay();
    if (begin >= end || (S == 1 && D == 1 && srcs[0] == dsts[0] && (!AVERAGE || divisor == 0))) return;
    u64 from[S], to[D];
    u64 differ = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) from[s] = srcs[s] + begin * sizeof(Element);
#pragma unroll
    for (int d = 0; d < D; ++d) {
        to[d] = dsts[d] + begin * sizeof(Element);
        differ |= dsts[d] ^ dsts[0];
    }
    if constexpr (D > 1) {
        if (differ % sizeof(Vector) != 0) return stretches<S, D>(from, to, end - begin, divisor);
    }
    stretch<S, D>(from, to, end - begin, divisor);
}

// The portion of a move that one of `parts` CTAs does.
struct Portion {
    u64 begin;
    u64 end;
};

// The granularity of cuts between parts: whole vectors and lines of every dtype.
constexpr u64 GRAIN = 128;

template <u64 GRAINS = GRAIN> ROUNDELAY_DEVICE Portion portion(u64 len, u64 parts, u64 part) {
    if (parts == 1) {
        return {0, len};
    }
    const u64 grains = (len + GRAINS - 1) / GRAINS;
    const u64 each = (grains + parts - 1) / parts * GRAINS;
    const u64 begin = each * part, end = begin + each;
    return {begin < len ? begin : len, end < len ? end : len};
}

} // namespace roundelay
