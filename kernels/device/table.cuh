// The table form: a stream's ops one after the other, as the host laid them out for one count.
#pragma once
#include "lane.cuh"

namespace roundelay {

ROUNDELAY_DEVICE void move_row(Lane& lane, i64 shape, const i64* row, u64 length) {
    const int srcs = int(shape & 0xff), dsts = int(shape >> 8 & 0xff);
    const bool finishes = AVERAGE && shape >> 16 != 0;
    const auto operand = [&](int i) {
        const i64* const at = row + OPERAND_WORDS * i;
        return lane.place(i32(constant(at)), i32(constant(at + 1)), constant(at + 2), i64(length));
    };
    if constexpr (TRACING) {
        Traced traced[16];
        for (int i = 0; i < srcs + dsts; ++i) traced[i] = operand(i).traced;
        trace_move(traced, srcs, dsts, i64(length), finishes);
    }
    lane.begin_move(u32(shape & 0xffff), length, finishes ? lane.facts[Header::Divisor] : 0);
    for (int i = 0; i < srcs + dsts; ++i) lane.walker.operand(i, operand(i).address);
    lane.end_move();
}

#ifdef ROUNDELAY_SWITCH_MOVES
// A move of a switch. A side of all ranks has their group, behind the ranks, in the place of a rank.
ROUNDELAY_DEVICE void switch_row(Lane& lane, i64 shape, const i64* row, u64 length) {
    const u32 sides = u32(shape & (FROM_ALL | TO_ALL));
    const bool finishes = AVERAGE && shape >> 16 != 0;
    const i64* const src = row;
    const i64* const dst = row + OPERAND_WORDS;
    const i64 group = constant((sides & FROM_ALL) != 0 ? src : dst) - lane.ranks;
    const i64* const members = lane.facts.words + lane.facts[lane.facts[Header::SwitchesAt] + group];
    if constexpr (TRACING) {
        Traced traced[2 * SWITCH_RANKS];
        int operands = 0;
        const auto side = [&](const i64* at, bool of_all) {
            const int first = operands;
            for (i32 m = 0; m < (of_all ? i32(constant(members)) : 1); ++m) {
                const i64 rank = of_all ? constant(members + 1 + m) : constant(at);
                traced[operands++] = {rank, int(constant(at + 1)), constant(at + 2)};
            }
            return operands - first;
        };
        const int srcs = side(src, (sides & FROM_ALL) != 0), dsts = side(dst, (sides & TO_ALL) != 0);
        trace_move(traced, srcs, dsts, i64(length), finishes);
    }
    const auto operand = [&](const i64* at) -> SwitchOperand {
        const i32 buffer = i32(constant(at + 1));
        const i64 element = constant(at + 2);
        const u64 address = lane.place(i32(constant(at)), buffer, element, i64(length)).address;
        return {address, u64(buffer), u64(element) * sizeof(Element)};
    };
    lane.begin_switch(sides, length, finishes ? lane.facts[Header::Divisor] : 0, {operand(src), operand(dst), members});
}
#endif

// The parts of a channel, as an author would name them.
struct Named {
    Signal kind;
    i32 from;
    i32 lane;
};

ROUNDELAY_DEVICE Named named(const Lane& lane, i64 channel) {
    if (channel < lane.streams) {
        const i64 pair = channel / PAIR_SIGNALS;
        return {Signal(channel % PAIR_SIGNALS), i32(pair % lane.ranks), i32(pair / lane.ranks)};
    }
    const i32 behind = i32(channel - lane.streams);
    return {Signal(PAIR_SIGNALS + behind % CHILD_SIGNALS), lane.me, behind / CHILD_SIGNALS};
}

ROUNDELAY_DEVICE void run_table(Lane& lane) {
    // The stream of the ops is set here, because no statement leads to it.
    lane.at.stream = lane.stream;
    const i64 ops = constant(lane.group + 2);
    const i64* op = lane.facts.words + lane.facts[Header::OpsAt] + OP_WORDS * constant(lane.group + 3);
    for (i64 i = 0; i < ops; ++i, op += OP_WORDS) {
        const i64 a = constant(op + 1), b = constant(op + 2);
        switch (Kind(constant(op))) {
        case Kind::Move: {
            const i64* const row = lane.facts.words + lane.facts[Header::OperandsAt] + OPERAND_WORDS * b;
            move_row(lane, a, row, u64(constant(op + 3)));
            break;
        }
        case Kind::Post: {
            const Named name = named(lane, b);
            lane.post_channel(i32(a), b, name.kind, name.lane);
            break;
        }
        case Kind::Wait: {
            const Named name = named(lane, b);
            lane.wait_channel(name.from, b, name.kind, name.lane);
            break;
        }
        case Kind::Meet: lane.meet(); break;
#ifdef ROUNDELAY_SWITCH_MOVES
        case Kind::Switch: {
            const i64* const row = lane.facts.words + lane.facts[Header::OperandsAt] + OPERAND_WORDS * b;
            switch_row(lane, a, row, u64(constant(op + 3)));
            break;
        }
#else
        case Kind::Switch: trap();
#endif
        }
    }
}

} // namespace roundelay
