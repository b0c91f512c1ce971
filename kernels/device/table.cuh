// The table form: a stream's ops one after the other, as the host laid them out for one count.
#pragma once
#include "data.cuh"

namespace roundelay {

#ifdef ROUNDELAY_MOVES

// Words of an op: its kind, and for a move its numbers of operands with whether it finishes, its first operand and its
// length; for a signal the peer and the channel. Of an operand: rank, buffer, element.
enum class Kind : i64 { Move, Post, Wait, Meet };

template <int S, int D> ROUNDELAY_DEVICE void perform_row(Lane& lane, const i64* row, u64 length, bool finishes) {
    Place places[S + D];
#pragma unroll
    for (int i = 0; i < S + D; ++i) {
        const i64* const words = row + 3 * i;
        const Grain elements = {1, 1, 0};
        places[i] = {&lane, constant(words), {0, length, elements, constant(words + 2), constant(words + 1), 0, false, nullptr}};
    }
    perform<S, D>(lane, places, AVERAGE && finishes ? lane.facts[Header::Divisor] : 0);
}

ROUNDELAY_DEVICE void move_row(Lane& lane, i64 shape, const i64* row, u64 length) {
    const bool finishes = shape >> 16 != 0;
    switch (shape & 0xffff) {
#define ROUNDELAY_MOVE(S, D)                                                                                           \
    case S | D << 8: return perform_row<S, D>(lane, row, length, finishes);
        ROUNDELAY_MOVES(ROUNDELAY_MOVE)
#undef ROUNDELAY_MOVE
    }
}

// The kind and lane of a channel, as an author would name it: for the record of what was done.
struct Named {
    Signal kind;
    i64 from;
    i64 lane;

    ROUNDELAY_DEVICE Named(const Lane& lane, i64 channel) {
        if (channel < lane.streams) {
            *this = {Signal(channel % 4), channel / 4 % lane.ranks, channel / 4 / lane.ranks};
        } else {
            const i64 behind = channel - lane.streams;
            *this = {behind % 2 == 0 ? Signal::Fork : Signal::Join, lane.me, behind / 2};
        }
    }

    ROUNDELAY_DEVICE Named(Signal kind, i64 from, i64 lane) : kind(kind), from(from), lane(lane) {}
};

ROUNDELAY_DEVICE void run_table(Lane& lane) {
    const i64 ops = constant(lane.group + 2);
    const i64* op = lane.facts.at(lane.facts[Header::Ops] + 4 * constant(lane.group + 3));
    for (i64 i = 0; i < ops && lane.active(); ++i, op += 4) {
        const i64 a = constant(op + 1), b = constant(op + 2);
        switch (Kind(constant(op))) {
        case Kind::Move: {
            const i64* const row = lane.facts.at(lane.facts[Header::Operands] + 3 * b);
            move_row(lane, a, row, u64(constant(op + 3)));
            break;
        }
        case Kind::Post: {
            const Named name(lane, b);
            lane.post_channel(a, b, name.kind, name.lane);
            break;
        }
        case Kind::Wait: {
            const Named name(lane, b);
            lane.wait_channel(name.from, b, name.kind, name.lane);
            break;
        }
        case Kind::Meet: lane.meet(); break;
        }
    }
}

#endif

} // namespace roundelay
