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
ROUNDELAY_DEVICE u64* open_link(const Lane& lane, i64 entry) {
    return lane.work + 3 * lane.facts[Header::HeldSlots] + 4 * entry;
}

// Puts away what was counted; the words are in use from here on.
ROUNDELAY_DEVICE void Lane::lay_down(Link& link) {
    if (link.key >= 0 && thread() == 0) {
        open_link(*this, link.entry)[3] = link.steps;
        if constexpr (LINED) launch.steps[link.end + i64(part)] = link.total;
    }
    link.key = -1;
}

ROUNDELAY_DEVICE void Lane::lay_down_links() {
    if (incoming.key < 0 && outgoing.key < 0) return;
    touch();
    lay_down(incoming);
    lay_down(outgoing);
}

// Has this rank's end of the link at hand, in the lane of the walk.
ROUNDELAY_DEVICE void Lane::take_up(Link& link, i64 from, i64 to) {
    const bool sends = from == me;
    const i64 key = (at.lane * ranks + (sends ? to : from)) * 2 + sends;
    if (link.key == key) return;
    touch();
    lay_down(link);
    link.key = key;
    link.entry = at.fifo.first_link;
    while (link.entry < links && i64(open_link(*this, link.entry)[0]) != key) ++link.entry;
    const u64* const words = open_link(*this, link.entry);
    if (link.entry < links) {
        link.first_slot = i64(words[1]);
        link.end = i64(words[2]);
        link.steps = words[3];
    } else {
        const i64 known = facts.find(0, Key::Link, at.fifo.scratch, at.lane, from, to);
        link.first_slot = facts[known];
        link.end = (2 * facts[known + 1] + !sends) * i64(launch.parts);
        link.steps = 0;
        if (thread() == 0) {
            u64* const fresh = open_link(*this, links);
            fresh[0] = u64(key);
            fresh[1] = u64(link.first_slot);
            fresh[2] = u64(link.end);
        }
        ++links;
    }
    if constexpr (LINED) link.total = launch.steps[link.end + i64(part)];
}

ROUNDELAY_DEVICE void Lane::end_fifo() {
    lay_down_links();
    links = at.fifo.first_link;
    const i64 lane = at.called ? at.lane : 0;
    const List owed = list(facts.find(0, Key::EndFifo, at.path, lane, at.fifo.declaration, me), nullptr);
    for (i64 i = 0; i < len(owed); i += 3) {
        for (i64 times = owed[i + 2]; times > 0; --times) wait(owed[i], owed[i + 1], Signal::Head);
    }
}

// ---- the primitives ----------------------------------------------------------------------------------------------

// Where a link's next step finds or leaves data of this shape, at its receiver.
ROUNDELAY_DEVICE Place slot_of(Lane& lane, const Link& link, i64 receiver, const Region& shape) {
    const Fifo& fifo = lane.at.fifo;
    const i64 slot = link.first_slot + i64(remainder(link.steps, u64(fifo.credits)));
    const Region whole = {0, 0, shape.grain, fifo.origin + slot * fifo.stride, SCRATCH + fifo.scratch, slot, true, nullptr};
    return {&lane, receiver, whole.shaped_like(shape)};
}

ROUNDELAY_DEVICE Slot lines_of(const Lane& lane, const Link& link, const Place& slot, bool sends) {
    const u32 flag = u32(link.total) + 1;
    const u64 lines = u64(lane.at.fifo.stride) * sizeof(Element) / sizeof(Vector);
    return {address(lane, slot), flag, sends && wraps(flag) ? lines : 0};
}

// What arrived from `from`, if anything, folded into `own`, if anything, goes to `dst` and on to `to`: one slice.
// Places are [own] [received] [dst] [sent].
template <bool RECEIVES, bool OWN, bool DST, bool SENDS>
ROUNDELAY_DEVICE void pass_slice(Lane& lane, i64 step, const Place (&places)[RECEIVES + OWN + DST + SENDS]) {
    constexpr int S = RECEIVES + OWN, D = DST + SENDS;
    const u64 length = places[0].region.length();
    const i64 by = divisor(lane);
    if constexpr (TRACING) trace_places<S, D>(places, length, by != 0);
    Slot in{}, out{};
    Local local{};
    if constexpr (OWN) local.own = address(lane, places[0]);
    if constexpr (DST) local.dst = address(lane, places[S]);
    if constexpr (RECEIVES) in = lines_of(lane, lane.incoming, places[OWN], false);
    if constexpr (SENDS) out = lines_of(lane, lane.outgoing, places[S + DST], true);
    const u64 expected = RECEIVES ? lane.incoming.total + 1 : 0;
    if (lane.signals.begin_move() &&
        !pass_lines<RECEIVES, OWN, DST, SENDS>(lane.launch, lane.signals.waiter(step, expected), in, out, local, length, by)) {
        lane.signals.fail();
    }
    ++lane.moves;
    ++lane.steps;
}

// That data is there: flags in the lines say so where there are any.
ROUNDELAY_DEVICE void tail(Lane& lane, bool post, i64 peer) {
    const i64 in_lane = lane.at.lane;
    if constexpr (LINED) {
        if constexpr (TRACING) {
            trace_signal(post, int(Signal::Tail), post ? lane.me : peer, post ? peer : lane.me, in_lane);
        }
        ++lane.steps;
    } else if (post) {
        lane.post(peer, in_lane, Signal::Tail);
    } else {
        lane.wait(peer, in_lane, Signal::Tail);
    }
}

template <bool RECEIVES, bool OWN, bool DST, bool SENDS>
ROUNDELAY_DEVICE void pass(Lane& lane, i64 from, const Place* own, const Place* dst, i64 to) {
    Place whole[OWN + DST];
    if constexpr (OWN) whole[0] = located(*own);
    if constexpr (DST) whole[OWN] = located(*dst);
    settle(lane, whole, OWN);
    if (!lane.active()) return;
    const i64 slices = lane.at.fifo.slices;
    for (i64 slice = 0; slice < slices; ++slice) {
        Place places[RECEIVES + OWN + DST + SENDS];
        const auto part = [&](const Place& place) {
            return slices == 1 ? place : Place{&lane, place.rank, place.region.split(slices)[slice]};
        };
        if constexpr (OWN) places[0] = part(whole[0]);
        if constexpr (DST) places[OWN + RECEIVES] = part(whole[OWN]);
        const Region shape = places[OWN ? 0 : RECEIVES].region;
        const i64 step = lane.steps;
        if constexpr (RECEIVES) {
            lane.take_up(lane.incoming, from, lane.me);
            places[OWN] = slot_of(lane, lane.incoming, lane.me, shape);
        }
        if constexpr (SENDS) {
            lane.take_up(lane.outgoing, lane.me, to);
            places[OWN + RECEIVES + DST] = slot_of(lane, lane.outgoing, to, shape);
        }
        if constexpr (RECEIVES) tail(lane, false, from);
        if constexpr (SENDS) {
            if (lane.outgoing.steps >= u64(lane.at.fifo.credits)) lane.wait(to, lane.at.lane, Signal::Head);
        }
        if constexpr (LINED) {
            pass_slice<RECEIVES, OWN, DST, SENDS>(lane, step, places);
        } else {
            perform<RECEIVES + OWN, DST + SENDS>(lane, places, divisor(lane));
        }
        if constexpr (SENDS) tail(lane, true, to);
        if constexpr (RECEIVES) lane.post(from, lane.at.lane, Signal::Head);
        lane.incoming.steps += RECEIVES;
        lane.incoming.total += RECEIVES;
        lane.outgoing.steps += SENDS;
        lane.outgoing.total += SENDS;
    }
}

ROUNDELAY_DEVICE void Peer::send(const Place& src) const { pass<false, true, false, true>(*lane, 0, &src, nullptr, rank); }

ROUNDELAY_DEVICE void Peer::recv(const Place& dst) const { pass<true, false, true, false>(*lane, rank, nullptr, &dst, 0); }

ROUNDELAY_DEVICE void Peer::recv_reduce(const Place& dst) const {
    pass<true, true, true, false>(*lane, rank, &dst, &dst, 0);
}

ROUNDELAY_DEVICE void Peer::recv_copy_send(const Place& dst, const Peer& to) const {
    pass<true, false, true, true>(*lane, rank, nullptr, &dst, to.rank);
}

ROUNDELAY_DEVICE void Peer::recv_reduce_send(const Place& src, const Peer& to) const {
    pass<true, true, false, true>(*lane, rank, &src, nullptr, to.rank);
}

ROUNDELAY_DEVICE void Peer::recv_reduce_copy(const Place& src, const Place& dst) const {
    pass<true, true, true, false>(*lane, rank, &src, &dst, 0);
}

ROUNDELAY_DEVICE void Peer::recv_reduce_copy_send(const Place& src, const Place& dst, const Peer& to) const {
    pass<true, true, true, true>(*lane, rank, &src, &dst, to.rank);
}

} // namespace roundelay
