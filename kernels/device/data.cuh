// Data ops: which elements of whose memory a `copy` or `reduce` moves.
#pragma once
#include "answers.cuh"
#include "moves.cuh"

namespace roundelay {

// Sources that one move folds besides its destination; longer folds are several moves.
constexpr int MOST_FOLDED = 7;

// ---- what slots hold -----------------------------------------------------------------------------------------

// The work words of a slot: the interval that it holds, over their denominator; 0 for nothing yet.
ROUNDELAY_DEVICE u64* held(const Lane& lane, const Region& slot) {
    return lane.work + 3 * (lane.facts[lane.scratch_row(slot.buffer - SCRATCH) + 2] + slot.slot);
}

ROUNDELAY_DEVICE Region shape_held(const Lane& lane, const Region& slot) {
    const u64* const words = held(lane, slot);
    if (words[2] == 0) return slot;
    Region shape = slot.between(words[0], words[1]);
    shape.grain = grain_of(words[2], lane.launch.count);
    shape.floating = false;
    return shape;
}

ROUNDELAY_DEVICE void hold(Lane& lane, const Region& slot, const Region& shape) {
    u64* const words = held(lane, slot);
    if (thread() == 0) {
        words[0] = shape.lo;
        words[1] = shape.hi;
        words[2] = shape.grain.den;
    }
}

// Gives slots among the operands their shape: that of the first which has one of its own, else that of what the first
// slot of this rank holds that holds anything. What slots hold after the op is told to all.
template <int N> ROUNDELAY_DEVICE void settle(Lane& lane, Place (&places)[N], int first_written) {
    bool any = false, all = true;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        any = any || places[i].region.floating;
        all = all && places[i].region.floating;
    }
    if (!any) return;
    lane.touch();
    Region shape = places[0].region;
#pragma unroll
    for (int i = N - 1; i >= 0; --i) {
        if (!places[i].region.floating) shape = places[i].region;
    }
    if (all) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (shape.floating && places[i].rank == lane.me) shape = shape_held(lane, places[i].region);
        }
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
        if (!places[i].region.floating) continue;
        if (i >= first_written && places[i].rank == lane.me) hold(lane, places[i].region, shape);
        places[i].region = places[i].region.shaped_like(shape);
    }
}

// ---- moves ---------------------------------------------------------------------------------------------------

ROUNDELAY_DEVICE u64 address(const Lane& lane, const Place& place) {
    const Memory& memory = lane.launch.ranks[place.rank];
    const Region& region = place.region;
    const u64* const buffer = region.buffer == INPUT ? &memory.input : region.buffer == OUTPUT ? &memory.output : &memory.scratch;
    return u64(constant(reinterpret_cast<const i64*>(buffer))) + u64(region.begin()) * sizeof(Element);
}

// What the next move of this stream divides by: an average, where it is complete.
ROUNDELAY_DEVICE i64 divisor(const Lane& lane) {
    if constexpr (!AVERAGE) return 0;
    const i64 bit = constant(lane.group + 3) + lane.moves;
    const bool finishes = u64(lane.facts[lane.facts[Header::Finish] + bit / 64]) >> bit % 64 & 1;
    return finishes ? lane.facts[Header::Divisor] : 0;
}

template <int S, int D> ROUNDELAY_DEVICE void trace_places(const Place (&places)[S + D], u64 length, bool finishes) {
    Traced operands[S + D];
    for (int i = 0; i < S + D; ++i) {
        const Region& region = places[i].region;
        operands[i] = {places[i].rank, int(min(region.buffer, SCRATCH)), region.begin()};
    }
    trace_move(operands, S, D, i64(length), finishes);
}

// Folds the first S places into the other D, all of the length of the first; they have a shape and lie where they are.
template <int S, int D> ROUNDELAY_DEVICE void perform(Lane& lane, const Place (&places)[S + D], i64 by) {
    const u64 length = places[0].region.length();
    if constexpr (TRACING) trace_places<S, D>(places, length, by != 0);
    u64 srcs[S], dsts[D];
#pragma unroll
    for (int i = 0; i < S; ++i) srcs[i] = address(lane, places[i]);
#pragma unroll
    for (int i = 0; i < D; ++i) dsts[i] = address(lane, places[S + i]);
    const Portion mine = portion(length, lane.launch.parts, lane.part);
    if (lane.signals.begin_move()) move<S, D>(srcs, dsts, mine.begin, mine.end, by);
    ++lane.moves;
    ++lane.steps;
}

template <int S, int D> ROUNDELAY_DEVICE void data(Lane& lane, Place (&places)[S + D]) {
    settle(lane, places, S);
    if (lane.active()) perform<S, D>(lane, places, divisor(lane));
}

// ---- what the text calls -------------------------------------------------------------------------------------

ROUNDELAY_DEVICE Place located(const Place& place) {
    return {place.lane, place.rank, place.lane->locate(place.rank, place.region)};
}

ROUNDELAY_DEVICE bool same_place(const Place& a, const Place& b) {
    return a.rank == b.rank && same_region(a.region, b.region);
}

// Copies to the first `many` of `dsts`.
template <int N> ROUNDELAY_DEVICE void copy_to_first(Lane& lane, const Place& src, const Place (&dsts)[N], int many) {
    if (many == N) {
        Place places[1 + N];
        places[0] = src;
#pragma unroll
        for (int i = 0; i < N; ++i) places[1 + i] = dsts[i];
        data<1, N>(lane, places);
    } else if constexpr (N > 1) {
        Place fewer[N - 1];
#pragma unroll
        for (int i = 0; i < N - 1; ++i) fewer[i] = dsts[i];
        copy_to_first(lane, src, fewer, many);
    }
}

template <int N> ROUNDELAY_DEVICE void copy(const Place& src, const Place (&dsts)[N]) {
    Lane& lane = *src.lane;
    const Place from = located(src);
    Place to[N];
    int many = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        to[many] = located(dsts[i]);
        // Where a caller gave one region for both buffers, a copy from one to the other is none.
        many += !(lane.at.called && same_place(from, to[many]));
    }
    copy_to_first(lane, from, to, many);
}

ROUNDELAY_DEVICE void copy(const Place& src, const Place& dst) {
    Lane& lane = *src.lane;
    Place places[2] = {located(src), located(dst)};
    if (!(lane.at.called && same_place(places[0], places[1]))) data<1, 1>(lane, places);
}

// dst = src op dst, source after source.
template <int N, int FIRST = 0> ROUNDELAY_DEVICE void reduce(const Place (&srcs)[N], const Place& dst) {
    constexpr int MANY = N - FIRST < MOST_FOLDED ? N - FIRST : MOST_FOLDED;
    Lane& lane = *dst.lane;
    Place places[MANY + 2];
    places[0] = places[MANY + 1] = located(dst);
#pragma unroll
    for (int i = 0; i < MANY; ++i) places[1 + i] = located(srcs[FIRST + i]);
    data<MANY + 1, 1>(lane, places);
    if constexpr (FIRST + MANY < N) reduce<N, FIRST + MANY>(srcs, dst);
}

ROUNDELAY_DEVICE void reduce(const Place& src, const Place& dst) { reduce<1>({src}, dst); }

// ---- averages that are divided at the end ----------------------------------------------------------------------

// Divides the output of one rank of this device for each `parts` blocks.
ROUNDELAY_DEVICE void scale(const Launch& launch) {
    const Facts facts(launch.facts);
    const i64 first = facts[facts[Header::Groups] + 4 * i64(launch.first_group)];
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
