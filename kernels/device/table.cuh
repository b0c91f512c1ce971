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
        }
    }
}

} // namespace roundelay
