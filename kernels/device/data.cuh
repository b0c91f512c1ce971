// Data ops: the elements, and their ranks, that a `copy` or `reduce` moves.
#pragma once
#include "answers.cuh"
#include "moves.cuh"

namespace roundelay {

// Sources that one move folds besides its destination; longer folds are several moves.
constexpr int MOST_FOLDED = 7;

// ---- the places of regions -----------------------------------------------------------------------------------

// Locates the region of the first place.
ROUNDELAY_SHARED void locate_first(Lane& lane) { lane.locate(lane.places[0].rank, lane.places[0].region); }

ROUNDELAY_DEVICE Region located(const Place& place) {
    Lane& lane = *place.lane;
    if (place.region.call == nullptr || place.rank == lane.me) return place.region;
    lane.places[0] = place;
    locate_first(lane);
    return lane.places[0].region;
}

ROUNDELAY_DEVICE Operand operand(i32 rank, const Region& region) {
    return {region.begin(), rank, region.buffer < SCRATCH ? region.buffer : i32(SCRATCH)};
}

ROUNDELAY_DEVICE u64 address(const Lane& lane, const Operand& operand) {
    // The addresses of the buffers are the first words of a rank's memory, in this order.
    const i64* const memory = reinterpret_cast<const i64*>(lane.launch.ranks + operand.rank);
    return u64(constant(memory + operand.buffer) + operand.element * i64(sizeof(Element)));
}

// ---- the data in slots ---------------------------------------------------------------------------------------

// The work words of a slot: the interval that it holds, over their denominator; 0 while it holds nothing.
ROUNDELAY_DEVICE u64* held(const Lane& lane, const Region& slot) {
    return lane.work + HELD_WORDS * (lane.facts[lane.scratch_row(slot.buffer - SCRATCH) + 2] + slot.slot);
}

// Returns the shape of an op: the shape of its first operand with a shape of its own, otherwise the shape of the data
// in the first slot of this rank that holds data.
ROUNDELAY_DEVICE void find_shape(const Lane& lane, const Place* places, int count, Region& shape) {
    for (int i = 0; i < count; ++i) {
        if (places[i].region.floating) continue;
        shape = places[i].region;
        return lane.locate(places[i].rank, shape);
    }
    shape = places[0].region;
    for (int i = 0; i < count; ++i) {
        const u64* const words = held(lane, places[i].region);
        if (places[i].rank != lane.me || words[2] == 0) continue;
        shape.lo = words[0];
        shape.hi = words[1];
        shape.grain = grain_of(words[2], lane.launch.count);
        return;
    }
}

// Locates the regions of all places, slots in the shape of the op, and records the data that slots of this rank hold
// afterwards.
ROUNDELAY_SHARED void settle(Lane& lane, int count, int first_written) {
    Place* const places = lane.places;
    Region shape;
    find_shape(lane, places, count, shape);
    walker_sync();
    for (int i = 0; i < count; ++i) {
        Region& region = places[i].region;
        lane.locate(places[i].rank, region);
        if (!region.floating) continue;
        if (i >= first_written && places[i].rank == lane.me && leads()) {
            u64* const words = held(lane, region);
            words[0] = shape.lo;
            words[1] = shape.hi;
            words[2] = shape.grain.den;
        }
        region = region.shaped_like(shape);
    }
    walker_sync();
}

// ---- moves ---------------------------------------------------------------------------------------------------

// The divisor of the next move of this stream, where it completes an average.
ROUNDELAY_DEVICE i64 divisor(const Lane& lane) {
    if constexpr (!AVERAGE) return 0;
    const u64 bit = u64(constant(lane.group + 3)) + lane.moves;
    const bool finishes = u64(lane.facts[lane.facts[Header::FinishAt] + i64(bit / 64)]) >> bit % 64 & 1;
    return finishes ? lane.facts[Header::Divisor] : 0;
}

ROUNDELAY_DEVICE void trace_operands(const Lane& lane, int srcs, int dsts, bool finishes) {
    Traced traced[sizeof(lane.operands) / sizeof(Operand)];
    for (int i = 0; i < srcs + dsts; ++i) {
        traced[i] = {lane.operands[i].rank, lane.operands[i].buffer, lane.operands[i].element};
    }
    trace_move(traced, srcs, dsts, i64(lane.length), finishes);
}

// Folds the first `srcs` operands into the other operands.
ROUNDELAY_SHARED void perform(Lane& lane, int srcs, int dsts, i64 by) {
    if constexpr (TRACING) trace_operands(lane, srcs, dsts, by != 0);
    ++lane.moves;
    ++lane.steps;
    const Portion mine = portion(lane.length, lane.launch.parts, lane.part);
    lane.walker.put([&](Entry& entry) {
        entry.does = Does::Move;
        entry.shape = u32(srcs | dsts << 8);
        entry.begin = mine.begin;
        entry.end = mine.end;
        entry.divisor = by;
        for (int i = 0; i < srcs + dsts; ++i) entry.at[i] = address(lane, lane.operands[i]);
    });
}

// Performs an op with slots that have no shape of their own.
ROUNDELAY_SHARED void data_in_slots(Lane& lane, int srcs, int dsts) {
    settle(lane, srcs + dsts, srcs);
    if (!lane.active()) return;
    for (int i = 0; i < srcs + dsts; ++i) lane.operands[i] = operand(lane.places[i].rank, lane.places[i].region);
    lane.length = lane.places[0].region.length();
    perform(lane, srcs, dsts, divisor(lane));
}

template <int S, int D> ROUNDELAY_DEVICE void data(const Place (&places)[S + D]) {
    Lane& lane = *places[0].lane;
    bool floats = false;
#pragma unroll
    for (int i = 0; i < S + D; ++i) floats = floats || places[i].region.floating;
    if (floats) {
#pragma unroll
        for (int i = 0; i < S + D; ++i) lane.places[i] = places[i];
        return data_in_slots(lane, S, D);
    }
    if (!lane.active()) return;
#pragma unroll
    for (int i = 0; i < S + D; ++i) {
        const Region region = located(places[i]);
        lane.operands[i] = operand(places[i].rank, region);
        if (i == 0) lane.length = region.length();
    }
    perform(lane, S, D, divisor(lane));
}

// ---- the functions that the text calls -----------------------------------------------------------------------

// Whether the first two places are equal; both are of one rank and in one buffer.
ROUNDELAY_SHARED bool same_interval(Lane& lane) {
    Region &a = lane.places[0].region, &b = lane.places[1].region;
    lane.locate(lane.places[0].rank, a);
    lane.locate(lane.places[1].rank, b);
    return a.floating == b.floating && same_product(a.lo, b.grain.den, b.lo, a.grain.den) &&
           same_product(a.hi, b.grain.den, b.hi, a.grain.den);
}

// Where a caller passed one region for both buffers, a copy from one to the other does nothing.
ROUNDELAY_DEVICE bool is_none(const Place& src, const Place& dst) {
    Lane& lane = *src.lane;
    if (!lane.at.called || src.rank != dst.rank || src.region.buffer != dst.region.buffer) return false;
    if (src.region.slot != dst.region.slot) return false;
    lane.places[0] = src;
    lane.places[1] = dst;
    return same_interval(lane);
}

ROUNDELAY_DEVICE void copy(const Place& src, const Place& dst) {
    if (!is_none(src, dst)) data<1, 1>({src, dst});
}

template <int N> ROUNDELAY_DEVICE void copy(const Place& src, const Place (&dsts)[N]) {
    int none = N;
#pragma unroll
    for (int i = 0; i < N; ++i) none = is_none(src, dsts[i]) ? i : none;
    if (none == N) {
        Place places[1 + N];
        places[0] = src;
#pragma unroll
        for (int i = 0; i < N; ++i) places[1 + i] = dsts[i];
        data<1, N>(places);
    } else if constexpr (N > 1) {
        Place others[N - 1];
        for (int i = 0; i < N - 1; ++i) others[i] = dsts[i + (i >= none)];
        copy(src, others);
    }
}

// dst = src op dst, for one source after another.
template <int N, int FIRST = 0> ROUNDELAY_DEVICE void reduce(const Place (&srcs)[N], const Place& dst) {
    constexpr int MANY = N - FIRST < MOST_FOLDED ? N - FIRST : MOST_FOLDED;
    Place places[MANY + 2];
    places[0] = places[MANY + 1] = dst;
#pragma unroll
    for (int i = 0; i < MANY; ++i) places[1 + i] = srcs[FIRST + i];
    data<MANY + 1, 1>(places);
    if constexpr (FIRST + MANY < N) reduce<N, FIRST + MANY>(srcs, dst);
}

ROUNDELAY_DEVICE void reduce(const Place& src, const Place& dst) { data<2, 1>({dst, src, dst}); }

// ---- averages that are divided at the end ----------------------------------------------------------------------

// Divides the output of one rank of this device in each `parts` blocks.
ROUNDELAY_DEVICE void scale(const Launch& launch) {
    const Facts facts{launch.facts};
    const i64 first = facts[facts[Header::GroupsAt] + GROUP_WORDS * i64(launch.first_group)];
    const i64 rank = first + i64(u64(block_index()) / launch.parts);
    if (rank >= facts[Header::Ranks]) return;
    const u64 output = launch.ranks[rank].output;
    const u64 length = output == 0 ? 0 : u64(facts[Header::OutputUnits]) * launch.count;
    const Portion mine = portion(length, launch.parts, u64(block_index()) % launch.parts);
    const u64 place[1] = {output};
    move<1, 1>(place, place, mine.begin, mine.end, facts[Header::Divisor]);
}

} // namespace roundelay

#define ROUNDELAY_SCALE_KERNEL(NAME)                                                                                   \
    ROUNDELAY_KERNEL(NAME) { roundelay::scale(launch); }
