// Moves that a switch makes, by `multimem`: it folds what all ranks of a group have at one place on its way to a rank or to
// all of them, in an order that is open, or stores what a rank has at all of them.
//
// One address stands for the memory of all ranks, and only `multimem` may use it. An access there is of 4, 8 or 16 bytes and
// aligned to them: elements before and behind those are moved by loads and stores of each rank's own memory, in rank order.
#pragma once
#include "moves.cuh"
#include "words.cuh"

namespace roundelay {

// The sides of a move that are those of all ranks, as bits.
enum Sides : u32 { FROM_ALL = 1, TO_ALL = 2 };

// An operand of a switch's move: its address, for `multimem` on a side of all ranks; and its place at each of these.
struct SwitchOperand {
    u64 address;
    u64 buffer; // as words.cuh numbers them
    u64 offset; // in bytes
};

// A move of a switch: its operands, and the words of its ranks, their number first.
struct SwitchMove {
    SwitchOperand src, dst;
    const i64* members;
};

// The number of the ranks of a move.
ROUNDELAY_DEVICE i32 members_of(const SwitchMove& move) { return i32(load<i64>(u64(move.members))); }

// The address of an operand at one of the ranks.
ROUNDELAY_DEVICE u64 at_member(const Memory* ranks, const SwitchMove& move, i32 nth, const SwitchOperand& operand) {
    const i64 rank = load<i64>(u64(move.members + 1 + nth));
    // The addresses of the buffers are the first words of a rank's memory.
    return load<u64>(u64(ranks + rank) + operand.buffer * sizeof(u64)) + operand.offset;
}

// Whether moves of the program are made by `multimem`, which a CPU does not have.
#if defined(ROUNDELAY_SWITCH_MOVES) && !defined(ROUNDELAY_SHIM)
#define ROUNDELAY_MULTIMEM
#endif

// ---- accesses to the memory of all ranks ---------------------------------------------------------------------------

#ifdef ROUNDELAY_MULTIMEM

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "a switch folds and stores from sm_90 on: choose another --arch, or the form table"
#endif

// What is stored by addresses of single ranks is seen by those of all ranks behind this fence, and the other way round.
ROUNDELAY_DEVICE void fence_aliases() { asm volatile("fence.proxy.alias;" ::: "memory"); }

template <int BYTES> struct MultimemWords {
    u32 at[BYTES / 4];
};

#define ROUNDELAY_FOLD_16(TEXT)                                                                                        \
    asm volatile("multimem.ld_reduce.weak.global." TEXT " {%0, %1, %2, %3}, [%4];"                                     \
                 : "=r"(got.at[0]), "=r"(got.at[1]), "=r"(got.at[2]), "=r"(got.at[3])                                  \
                 : "l"(address)                                                                                        \
                 : "memory")
#define ROUNDELAY_FOLD_8(TEXT)                                                                                         \
    asm volatile("multimem.ld_reduce.weak.global." TEXT " %0, [%1];" : "=l"(two) : "l"(address) : "memory")
#define ROUNDELAY_FOLD_4(TEXT)                                                                                         \
    asm volatile("multimem.ld_reduce.weak.global." TEXT " %0, [%1];" : "=r"(got.at[0]) : "l"(address) : "memory")

template <class T> constexpr bool SAME_AS = false;
template <> constexpr bool SAME_AS<Op> = true;
// Of an average, the sum.
constexpr bool ADDS = SAME_AS<Sum> || SAME_AS<Avg>;
// The widest access that folds elements: floats have vectors.
#if ROUNDELAY_FORMAT == 0
constexpr bool IS_SIGNED = Element(-1) < Element(0);
constexpr int WIDEST_FOLD = sizeof(Element) == 8 ? 8 : FLOATING<Element> ? 16 : 4;
#else
constexpr bool IS_SIGNED = false;
constexpr int WIDEST_FOLD = 16;
#endif

// Folds the bytes that all ranks have at an address. The host has refused the ops that a switch has not.
template <int BYTES> ROUNDELAY_DEVICE MultimemWords<BYTES> fold_all(u64 address) {
    MultimemWords<BYTES> got{};
    if constexpr (BYTES == 16) {
#if ROUNDELAY_FORMAT == 16
        ROUNDELAY_FOLD_16("add.acc::f32.v4.f16x2");
#elif ROUNDELAY_FORMAT == 17
        ROUNDELAY_FOLD_16("add.acc::f32.v4.bf16x2");
#else
        ROUNDELAY_FOLD_16("add.v4.f32");
#endif
    } else if constexpr (BYTES == 8) {
        u64 two = 0;
        if constexpr (FLOATING<Element>) {
            ROUNDELAY_FOLD_8("add.f64");
        } else if constexpr (ADDS) {
            ROUNDELAY_FOLD_8("add.u64");
        } else if constexpr (SAME_AS<Min>) {
            if constexpr (IS_SIGNED) ROUNDELAY_FOLD_8("min.s64");
            else ROUNDELAY_FOLD_8("min.u64");
        } else if constexpr (SAME_AS<Max>) {
            if constexpr (IS_SIGNED) ROUNDELAY_FOLD_8("max.s64");
            else ROUNDELAY_FOLD_8("max.u64");
        } else if constexpr (SAME_AS<Band>) {
            ROUNDELAY_FOLD_8("and.b64");
        } else if constexpr (SAME_AS<Bor>) {
            ROUNDELAY_FOLD_8("or.b64");
        } else {
            ROUNDELAY_FOLD_8("xor.b64");
        }
        got = bits_as<MultimemWords<BYTES>>(two);
    } else {
#if ROUNDELAY_FORMAT == 16
        ROUNDELAY_FOLD_4("add.acc::f32.f16x2");
#elif ROUNDELAY_FORMAT == 17
        ROUNDELAY_FOLD_4("add.acc::f32.bf16x2");
#else
        if constexpr (FLOATING<Element>) {
            ROUNDELAY_FOLD_4("add.f32");
        } else if constexpr (ADDS) {
            ROUNDELAY_FOLD_4("add.u32");
        } else if constexpr (SAME_AS<Min>) {
            if constexpr (IS_SIGNED) ROUNDELAY_FOLD_4("min.s32");
            else ROUNDELAY_FOLD_4("min.u32");
        } else if constexpr (SAME_AS<Max>) {
            if constexpr (IS_SIGNED) ROUNDELAY_FOLD_4("max.s32");
            else ROUNDELAY_FOLD_4("max.u32");
        } else if constexpr (SAME_AS<Band>) {
            ROUNDELAY_FOLD_4("and.b32");
        } else if constexpr (SAME_AS<Bor>) {
            ROUNDELAY_FOLD_4("or.b32");
        } else {
            ROUNDELAY_FOLD_4("xor.b32");
        }
#endif
    }
    return got;
}

// Stores bytes at an address of all ranks.
template <int BYTES> ROUNDELAY_DEVICE void store_all(u64 address, MultimemWords<BYTES> words) {
    if constexpr (BYTES == 16) {
        asm volatile("multimem.st.weak.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(words.at[0]),
                     "r"(words.at[1]), "r"(words.at[2]), "r"(words.at[3])
                     : "memory");
    } else if constexpr (BYTES == 8) {
        asm volatile("multimem.st.weak.global.b64 [%0], %1;" ::"l"(address), "l"(bits_as<u64>(words)) : "memory");
    } else {
        asm volatile("multimem.st.weak.global.b32 [%0], %1;" ::"l"(address), "r"(words.at[0]) : "memory");
    }
}

template <int BYTES> struct UnitOf {
    using Type = Vector;
};
template <> struct UnitOf<8> {
    using Type = u64;
};
template <> struct UnitOf<4> {
    using Type = u32;
};

// Moves `count` units of `BYTES` bytes.
template <u32 SIDES, int BYTES> ROUNDELAY_DEVICE void units(u64 from, u64 to, u64 count, i64 divisor) {
    using Unit = typename UnitOf<BYTES>::Type;
    constexpr int U = IN_FLIGHT;
    fence_aliases();
#pragma unroll 1
    for (u64 first = u64(thread()); first < count; first += u64(threads()) * U) {
        MultimemWords<BYTES> got[U]{};
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const u64 at = first + u64(u) * threads();
            if (at >= count) continue;
            if constexpr ((SIDES & FROM_ALL) != 0) {
                got[u] = fold_all<BYTES>(from + at * BYTES);
            } else {
                got[u] = bits_as<MultimemWords<BYTES>>(load<Unit>(from + at * BYTES));
            }
        }
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const u64 at = first + u64(u) * threads();
            if (at >= count) continue;
            if constexpr (AVERAGE && BYTES >= int(sizeof(Register))) {
                auto sums = bits_as<Registers<BYTES / sizeof(Register)>>(got[u]);
#pragma unroll
                for (Register& sum : sums.at) sum = divisor != 0 ? finish(sum, divisor) : sum;
                got[u] = bits_as<MultimemWords<BYTES>>(sums);
            }
            if constexpr ((SIDES & TO_ALL) != 0) {
                store_all<BYTES>(to + at * BYTES, got[u]);
            } else {
                store<Unit>(to + at * BYTES, bits_as<Unit>(got[u]));
            }
        }
    }
    fence_aliases();
}

#endif

// ---- moves ---------------------------------------------------------------------------------------------------------

// Moves elements `[0, head)` and `[tail, len)` behind the first by each rank's own memory.
template <u32 SIDES>
ROUNDELAY_DEVICE void elements_by_ranks(const Memory* ranks, const SwitchMove& move, u64 first, u64 head, u64 tail, u64 len,
                                        i64 divisor) {
    const i32 members = members_of(move);
    const u64 between = tail - head;
#pragma unroll 1
    for (u64 nth = thread(); nth < len - between; nth += threads()) {
        const u64 at = (first + (nth < head ? nth : nth + between)) * sizeof(Element);
        Loaded<Element> sum;
        if constexpr ((SIDES & FROM_ALL) != 0) {
            Result<Width<Element>::REGISTERS, ROUNDS_ONCE> result;
            result.begin(load_unit<Element>(at_member(ranks, move, 0, move.src) + at));
#pragma unroll 1
            for (i32 m = 1; m < members; ++m) {
                const auto next = load_unit<Element>(at_member(ranks, move, m, move.src) + at);
                m + 1 == members ? result.take_last(next, divisor) : result.take(next);
            }
            sum = result.end();
        } else {
            sum = finished<1>(load_unit<Element>(move.src.address + at), divisor);
        }
        if constexpr ((SIDES & TO_ALL) != 0) {
#pragma unroll 1
            for (i32 m = 0; m < members; ++m) store_unit<Element>(at_member(ranks, move, m, move.dst) + at, sum);
        } else {
            store_unit<Element>(move.dst.address + at, sum);
        }
    }
}

#ifdef ROUNDELAY_MULTIMEM
// Moves what it can in units of `BYTES`, where both sides are aligned alike, and the rest by elements.
template <u32 SIDES, int BYTES>
ROUNDELAY_DEVICE void by_units(const Memory* ranks, const SwitchMove& move, u64 begin, u64 end, i64 divisor) {
    const u64 first = begin * sizeof(Element), len = end - begin;
    const u64 from = move.src.address + first, to = move.dst.address + first;
    constexpr u64 EACH = BYTES / sizeof(Element);
    const u64 head = (0 - to) % BYTES / sizeof(Element);
    const u64 count = len > head ? (len - head) / EACH : 0;
    const u64 edge = count > 0 ? head : 0;
    units<SIDES, BYTES>(from + edge * sizeof(Element), to + edge * sizeof(Element), count, divisor);
    elements_by_ranks<SIDES>(ranks, move, begin, edge, edge + count * EACH, len, divisor);
}
#endif

// Moves elements [begin, end).
template <u32 SIDES>
ROUNDELAY_DEVICE void move_by_switch(const Memory* ranks, const SwitchMove& move, u64 begin, u64 end, i64 divisor) {
    delay();
    if (begin >= end) return;
#ifdef ROUNDELAY_MULTIMEM
    constexpr int WIDE = (SIDES & FROM_ALL) != 0 ? WIDEST_FOLD : 16;
    constexpr int NARROW = sizeof(Element) == 8 ? 8 : 4;
    const u64 differ = move.src.address ^ move.dst.address;
    if (differ % WIDE == 0) return by_units<SIDES, WIDE>(ranks, move, begin, end, divisor);
    if constexpr (NARROW < WIDE) {
        if (differ % NARROW == 0) return by_units<SIDES, NARROW>(ranks, move, begin, end, divisor);
    }
#endif
    elements_by_ranks<SIDES>(ranks, move, begin, 0, 0, end - begin, divisor);
}

} // namespace roundelay
