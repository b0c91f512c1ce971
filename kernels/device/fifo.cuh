// NCCL's primitives: data passes through slots at the receiver, in slices. A sender has as many credits as a link has
// slots; it waits for one where all are spent, and the receiver for data.
#pragma once
#include "data.cuh"
#include "ll.cuh"

namespace roundelay {

enum class Protocol { Direct, Simple, Ll };

// Whether slots hold lines that say themselves when they have arrived.
constexpr bool LINED = Protocol::ROUNDELAY_PROTOCOL == Protocol::Ll;

// ---- links -----------------------------------------------------------------------------------------------------

// Work words of an open link: its key, first slot, ends, and steps.
ROUNDELAY_DEVICE u64* open_link(const Lane& lane, i32 entry) {
    return lane.work + 3 * lane.facts[Header::HeldSlots] + 4 * entry;
}

// Puts away what was counted; `work` is touched.
ROUNDELAY_DEVICE void lay_down(const Lane& lane, Link& link) {
    if (link.key >= 0 && thread() == 0) {
        open_link(lane, link.entry)[3] = link.steps;
        if constexpr (LINED) lane.launch.steps[link.end + lane.part] = link.total;
    }
    link.key = -1;
}

ROUNDELAY_DEVICE void Lane::lay_down_links() {
    if (incoming.key < 0 && outgoing.key < 0) return;
    touch();
    lay_down(*this, incoming);
    lay_down(*this, outgoing);
}

// Has this rank's end of the link at hand, in the lane of the walk.
ROUNDELAY_SHARED void take_up(Lane& lane, Link& link, i32 from, i32 to) {
    const bool sends = from == lane.me;
    const i32 key = (lane.at.lane * lane.ranks + (sends ? to : from)) * 2 + sends;
    if (link.key == key) return;
    lane.touch();
    lay_down(lane, link);
    link.key = key;
    link.entry = lane.at.fifo.first_link;
    while (link.entry < lane.links && i32(open_link(lane, link.entry)[0]) != key) ++link.entry;
    u64* const words = open_link(lane, link.entry);
    if (link.entry < lane.links) {
        link.first_slot = i32(words[1]);
        link.end = i32(words[2]);
        link.steps = u32(words[3]);
    } else {
        const i64 known = lane.facts.find(Key::Link, lane.at.fifo.scratch, lane.at.lane, from, to);
        link.first_slot = i32(lane.facts[known]);
        link.end = (2 * i32(lane.facts[known + 1]) + !sends) * i32(lane.launch.parts);
        link.steps = 0;
        if (thread() == 0) {
            words[0] = u64(key);
            words[1] = u64(link.first_slot);
            words[2] = u64(link.end);
        }
        ++lane.links;
    }
    if constexpr (LINED) link.total = lane.launch.steps[link.end + lane.part];
}

ROUNDELAY_SHARED void take_credits_back(Lane& lane) {
    Walk& at = lane.at;
    lane.lay_down_links();
    lane.links = at.fifo.first_link;
    const i32 outer = at.lane;
    const i64 owed = lane.facts.find(Key::EndFifo, at.path, at.called ? outer : 0, at.fifo.declaration, lane.me);
    const i64 count = owed == 0 ? 0 : lane.facts[owed];
    for (i64 i = 0; i < count; ++i) {
        const i64 link = owed + 1 + 3 * i; // peer, lane, times
        at.lane = i32(lane.facts[link + 1]);
        for (i64 times = lane.facts[link + 2]; times > 0; --times) lane.wait(i32(lane.facts[link]), Signal::Head);
    }
    at.lane = outer;
}

ROUNDELAY_DEVICE void Lane::end_fifo() { take_credits_back(*this); }

// ---- what a slice waits for and tells -----------------------------------------------------------------------------

// That data is there: flags in the lines say so where there are any.
ROUNDELAY_DEVICE void tail(Lane& lane, bool posts, i32 peer) {
    if constexpr (LINED) {
        if constexpr (TRACING) {
            trace_signal(posts, int(Signal::Tail), posts ? lane.me : peer, posts ? peer : lane.me, lane.at.lane);
        }
        ++lane.steps;
    } else if (posts) {
        lane.post(peer, Signal::Tail);
    } else {
        lane.wait(peer, Signal::Tail);
    }
}

ROUNDELAY_DEVICE Operand slot_of(const Lane& lane, const Link& link, i32 receiver) {
    const Fifo& fifo = lane.at.fifo;
    return {fifo.origin + (link.first_slot + i64(link.steps % fifo.credits)) * fifo.stride, receiver, SCRATCH};
}

// The slot with what `from` has sent.
ROUNDELAY_SHARED Operand arrived(Lane& lane, i32 from) {
    take_up(lane, lane.incoming, from, lane.me);
    tail(lane, false, from);
    return slot_of(lane, lane.incoming, lane.me);
}

// The slot for what is to be sent to `to`.
ROUNDELAY_SHARED Operand vacant(Lane& lane, i32 to) {
    take_up(lane, lane.outgoing, lane.me, to);
    if (lane.outgoing.steps >= lane.at.fifo.credits) lane.wait(to, Signal::Head);
    return slot_of(lane, lane.outgoing, to);
}

ROUNDELAY_SHARED void sent(Lane& lane, i32 to) {
    tail(lane, true, to);
    lane.outgoing.steps += 1;
    lane.outgoing.total += 1;
}

ROUNDELAY_SHARED void taken(Lane& lane, i32 from) {
    lane.post(from, Signal::Head);
    lane.incoming.steps += 1;
    lane.incoming.total += 1;
}

// ---- the primitives ----------------------------------------------------------------------------------------------

// This rank's places of a pass, in their common shape. False: there is nothing to do.
ROUNDELAY_SHARED bool settle_own(Lane& lane, Place* places, int count, int first_written) {
    bool floats = false;
    for (int i = 0; i < count; ++i) floats = floats || places[i].region.floating;
    if (floats) settle(lane, places, count, first_written);
    return lane.active();
}

// A slice of these: where its parts lie, and how long they are.
ROUNDELAY_SHARED u64 cut(const Lane& lane, const Place* places, int count, u32 slice, Operand* operands) {
    const u32 slices = lane.at.fifo.slices;
    u64 length = 0;
    for (int i = 0; i < count; ++i) {
        const Region& whole = places[i].region;
        const Region part = slices == 1 ? whole : whole.split(slices)[slice];
        operands[i] = operand(part.begin(), lane.me, part);
        length = part.length();
    }
    return length;
}

ROUNDELAY_DEVICE Slot lines_of(const Lane& lane, const Link& link, const Operand& slot, bool sends) {
    const u32 flag = u32(link.total) + 1;
    const u64 lines = u64(lane.at.fifo.stride) * sizeof(Element) / sizeof(Vector);
    return {address(lane, slot), flag, sends && wraps(flag) ? lines : 0};
}

// What `perform` does where slots hold lines.
template <bool RECEIVES, bool OWN, bool DST, bool SENDS>
ROUNDELAY_DEVICE void perform_lined(Lane& lane, const Operand (&operands)[RECEIVES + OWN + DST + SENDS], u64 length,
                                    i64 by, u32 step) {
    constexpr int S = RECEIVES + OWN;
    if constexpr (TRACING) trace_operands(operands, S, length, by != 0);
    ++lane.moves;
    ++lane.steps;
    if (!lane.signals.begin_move()) return;
    Slot in{}, out{};
    Local local{};
    if constexpr (OWN) local.own = address(lane, operands[0]);
    if constexpr (DST) local.dst = address(lane, operands[S]);
    if constexpr (RECEIVES) in = lines_of(lane, lane.incoming, operands[OWN], false);
    if constexpr (SENDS) out = lines_of(lane, lane.outgoing, operands[S + DST], true);
    const Waiter waiter = lane.signals.waiter(step, RECEIVES ? lane.incoming.total + 1 : 0);
    if (!pass_lines<RECEIVES, OWN, DST, SENDS>(lane.launch, waiter, in, out, local, length, by)) lane.signals.fail();
}

// What arrived from `from`, if anything, folded into `own`, if anything, goes to `dst` and on to `to`, slice by slice.
template <bool RECEIVES, bool OWN, bool DST, bool SENDS>
ROUNDELAY_SHARED void pass(Lane& lane, i32 from, const Place& own, const Place& dst, i32 to) {
    constexpr int S = RECEIVES + OWN, D = DST + SENDS;
    Place places[2] = {OWN ? own : dst, dst};
    if (!settle_own(lane, places, OWN + DST, OWN)) return;
    for (u32 slice = 0; slice < lane.at.fifo.slices; ++slice) {
        const u32 step = lane.steps;
        // [own] [received] [dst] [sent]
        Operand here[2], operands[S + D];
        const u64 length = cut(lane, places, OWN + DST, slice, here);
        if constexpr (OWN) operands[0] = here[0];
        if constexpr (DST) operands[S] = here[OWN];
        if constexpr (RECEIVES) operands[OWN] = arrived(lane, from);
        if constexpr (SENDS) operands[S + DST] = vacant(lane, to);
        if constexpr (LINED) {
            perform_lined<RECEIVES, OWN, DST, SENDS>(lane, operands, length, divisor(lane), step);
        } else {
            perform<S, D>(lane, operands, length, divisor(lane));
        }
        if constexpr (SENDS) sent(lane, to);
        if constexpr (RECEIVES) taken(lane, from);
    }
}

ROUNDELAY_DEVICE void Peer::send(const Place& src) const { pass<false, true, false, true>(*lane, 0, src, src, rank); }

ROUNDELAY_DEVICE void Peer::recv(const Place& dst) const { pass<true, false, true, false>(*lane, rank, dst, dst, 0); }

ROUNDELAY_DEVICE void Peer::recv_reduce(const Place& dst) const {
    pass<true, true, true, false>(*lane, rank, dst, dst, 0);
}

ROUNDELAY_DEVICE void Peer::recv_copy_send(const Place& dst, const Peer& to) const {
    pass<true, false, true, true>(*lane, rank, dst, dst, to.rank);
}

ROUNDELAY_DEVICE void Peer::recv_reduce_send(const Place& src, const Peer& to) const {
    pass<true, true, false, true>(*lane, rank, src, src, to.rank);
}

ROUNDELAY_DEVICE void Peer::recv_reduce_copy(const Place& src, const Place& dst) const {
    pass<true, true, true, false>(*lane, rank, src, dst, 0);
}

ROUNDELAY_DEVICE void Peer::recv_reduce_copy_send(const Place& src, const Place& dst, const Peer& to) const {
    pass<true, true, true, true>(*lane, rank, src, dst, to.rank);
}

} // namespace roundelay
