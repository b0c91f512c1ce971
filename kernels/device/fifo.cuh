// NCCL's primitives: data passes through slots at the receiver, in slices. A sender has as many credits as a link has
// slots; it waits for a credit where all are spent, and the receiver waits for data.
#pragma once
#include "data.cuh"
#include "ll.cuh"

namespace roundelay {

enum class Protocol { Direct, Simple, Ll };

// Whether slots hold lines, whose flags tell that they have arrived.
constexpr bool LINED = Protocol::ROUNDELAY_PROTOCOL == Protocol::Ll;

// ---- links -----------------------------------------------------------------------------------------------------

// The work words of an open link: its key, first slot, ends, and steps.
ROUNDELAY_DEVICE u64* open_link(const Lane& lane, i32 entry) {
    return lane.work + HELD_WORDS * lane.facts[Header::Slots] + LINK_WORDS * entry;
}

// Stores the counts of the link at hand.
ROUNDELAY_DEVICE void lay_down(const Lane& lane, Link& link) {
    if (link.key >= 0 && leads()) {
        open_link(lane, link.entry)[3] = link.steps;
        if constexpr (LINED) lane.launch.steps[link.end + lane.part] = link.total;
    }
    link.key = -1;
}

ROUNDELAY_DEVICE void Lane::lay_down_links() {
    if (incoming.key < 0 && outgoing.key < 0) return;
    lay_down(*this, incoming);
    lay_down(*this, outgoing);
    walker_sync();
}

// Makes this rank's end of a link the link at hand, in the lane of the walk.
ROUNDELAY_SHARED void take_up(Lane& lane, Link& link, i32 from, i32 to) {
    const bool sends = from == lane.me;
    const i32 key = (lane.at.lane * lane.ranks + (sends ? to : from)) * 2 + sends;
    if (link.key == key) return;
    lay_down(lane, link);
    walker_sync();
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
        if (leads()) {
            words[0] = u64(key);
            words[1] = u64(link.first_slot);
            words[2] = u64(link.end);
        }
        ++lane.links;
        walker_sync();
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
        const i64 link = owed + 1 + CREDIT_WORDS * i; // peer, lane, times
        at.lane = i32(lane.facts[link + 1]);
        for (i64 times = lane.facts[link + 2]; times > 0; --times) lane.wait(i32(lane.facts[link]), Signal::Head);
    }
    at.lane = outer;
}

ROUNDELAY_DEVICE void Lane::end_fifo() { take_credits_back(*this); }

// ---- the signals of a slice ---------------------------------------------------------------------------------------

// Signals or waits that data has arrived; the flags in the lines do so where there are lines.
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

// ---- the primitives ----------------------------------------------------------------------------------------------

// A pass: the data from `from`, if it receives, is folded into the own place, if any, and goes to the destination, if
// any, and on to `to`, if it sends.
struct Pass {
    bool receives, own, dst, sends;
    i32 from, to;
};

// Settles the places of a pass, all of this rank; returns whether this CTA has work to do.
ROUNDELAY_SHARED bool begin_pass(Lane& lane, bool own, bool dst) {
    const int places = own + dst;
    if (lane.places[0].region.floating || lane.places[places - 1].region.floating) settle(lane, places, own);
    return lane.active();
}

// The operand of a slice of place `i`.
ROUNDELAY_DEVICE Operand slice_of(Lane& lane, int i, u32 slice) {
    const Place& whole = lane.places[i];
    const u32 slices = lane.at.fifo.slices;
    const Region region = slices == 1 ? whole.region : whole.region.split(slices)[slice];
    lane.length = region.length();
    return operand(whole.rank, region);
}

// Waits for data, and for a free slot to send it on to. Operands are [own] [received] [dst] [sent].
ROUNDELAY_SHARED void begin_slice(Lane& lane, Pass pass, u32 slice) {
    int next = 0;
    if (pass.own) lane.operands[next++] = slice_of(lane, 0, slice);
    if (pass.receives) {
        take_up(lane, lane.incoming, pass.from, lane.me);
        tail(lane, false, pass.from);
        lane.operands[next++] = slot_of(lane, lane.incoming, lane.me);
    }
    if (pass.dst) lane.operands[next++] = slice_of(lane, pass.own, slice);
    if (pass.sends) {
        take_up(lane, lane.outgoing, lane.me, pass.to);
        if (lane.outgoing.steps >= lane.at.fifo.credits) lane.wait(pass.to, Signal::Head);
        lane.operands[next] = slot_of(lane, lane.outgoing, pass.to);
    }
}

// Signals the end of both.
ROUNDELAY_SHARED void end_slice(Lane& lane, Pass pass) {
    if (pass.sends) {
        tail(lane, true, pass.to);
        lane.outgoing.steps += 1;
        lane.outgoing.total += 1;
    }
    if (pass.receives) {
        lane.post(pass.from, Signal::Head);
        lane.incoming.steps += 1;
        lane.incoming.total += 1;
    }
}

ROUNDELAY_DEVICE Slot lines_of(const Lane& lane, const Link& link, const Operand& slot) {
    const u32 flag = u32(link.total) + 1;
    const u64 lines = u64(lane.at.fifo.stride) * sizeof(Element) / sizeof(Vector);
    return {address(lane, slot), flag, wraps(flag) ? lines : 0};
}

// The form of `perform` for slots that hold lines.
template <bool RECEIVES, bool OWN, bool DST, bool SENDS> ROUNDELAY_SHARED void perform_lined(Lane& lane, i64 by, u32 step) {
    constexpr int S = RECEIVES + OWN;
    const Operand* const operands = lane.operands;
    if constexpr (TRACING) trace_operands(lane, S, DST + SENDS, by != 0);
    ++lane.moves;
    ++lane.steps;
    Slot in{}, out{};
    Local local{};
    if constexpr (OWN) local.own = address(lane, operands[0]);
    if constexpr (DST) local.dst = address(lane, operands[S]);
    if constexpr (RECEIVES) in = lines_of(lane, lane.incoming, operands[OWN]);
    if constexpr (SENDS) out = lines_of(lane, lane.outgoing, operands[S + DST]);
    lane.walker.put([&](Entry& entry) {
        entry.does = Does::Pass;
        entry.shape = u32(RECEIVES) * Has::RECEIVES | u32(OWN) * Has::OWN | u32(DST) * Has::DST | u32(SENDS) * Has::SENDS;
        entry.step = step;
        entry.end = lane.length;
        entry.divisor = by;
        entry.at[0] = local.own;
        entry.at[1] = local.dst;
        entry.in = in;
        entry.out = out;
        entry.expected = RECEIVES ? lane.incoming.total + 1 : 0;
    });
}

// Performs a pass slice by slice.
template <bool RECEIVES, bool OWN, bool DST, bool SENDS>
ROUNDELAY_DEVICE void pass(Lane& lane, i32 from, const Place& own, const Place& dst, i32 to) {
    if constexpr (OWN) lane.places[0] = own;
    if constexpr (DST) lane.places[OWN] = dst;
    if (!begin_pass(lane, OWN, DST)) return;
    const Pass pass = {RECEIVES, OWN, DST, SENDS, from, to};
    for (u32 slice = 0; slice < lane.at.fifo.slices; ++slice) {
        const u32 step = lane.steps;
        begin_slice(lane, pass, slice);
        if constexpr (LINED) {
            perform_lined<RECEIVES, OWN, DST, SENDS>(lane, divisor(lane), step);
        } else {
            perform(lane, RECEIVES + OWN, DST + SENDS, divisor(lane));
        }
        end_slice(lane, pass);
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
