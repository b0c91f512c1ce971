// Moves as the facts list them, each after the one before: [sources, destinations, len, divisor, operands…]; an operand is
// [1 for the output, element].
#include "moves.cuh"
#include "signals.cuh"

namespace roundelay {

constexpr int MOST = 8;

template <int S, int D> void run(const u64* operands, const Portion& mine, i64 divisor) {
    u64 srcs[S], dsts[D];
    for (int s = 0; s < S; ++s) {
        srcs[s] = operands[s];
    }
    for (int d = 0; d < D; ++d) {
        dsts[d] = operands[S + d];
    }
    move<S, D>(srcs, dsts, mine.begin, mine.end, divisor);
}

void choose(i64 sources, i64 destinations, const u64* operands, const Portion& mine, i64 divisor) {
    switch (10 * sources + destinations) {
    case 11: return run<1, 1>(operands, mine, divisor);
    case 21: return run<2, 1>(operands, mine, divisor);
    case 32: return run<3, 2>(operands, mine, divisor);
    case 88: return run<8, 8>(operands, mine, divisor);
#ifdef ROUNDELAY_MORE_SHAPES
    case 12: return run<1, 2>(operands, mine, divisor);
    case 13: return run<1, 3>(operands, mine, divisor);
    case 31: return run<3, 1>(operands, mine, divisor);
    case 41: return run<4, 1>(operands, mine, divisor);
    case 51: return run<5, 1>(operands, mine, divisor);
    case 61: return run<6, 1>(operands, mine, divisor);
    case 71: return run<7, 1>(operands, mine, divisor);
    case 81: return run<8, 1>(operands, mine, divisor);
#endif
    default: __builtin_trap();
    }
}

} // namespace roundelay

ROUNDELAY_KERNEL(Moves) {
    using namespace roundelay;
    const Memory& memory = launch.ranks[0];
    const u64 part = u64(block_index());
    Signals signals(launch, 0, part);
    const i64* next = launch.facts + 8;
    for (i64 left = launch.facts[4]; left > 0; --left) {
        const i64 sources = next[0], destinations = next[1], len = next[2], divisor = next[3];
        next += 4;
        u64 operands[2 * MOST];
        for (i64 i = 0; i < sources + destinations; ++i, next += 2) {
            operands[i] = (next[0] == 1 ? memory.output : memory.input) + u64(next[1]) * sizeof(Element);
        }
        signals.begin_move();
        choose(sources, destinations, operands, portion(u64(len), launch.parts, part), divisor);
        signals.meet_parts(memory, 0, 0);
    }
}
