// The methods of peers and objects, which need the whole `Lane`.
#pragma once
#include "lane.cuh"

namespace roundelay {

// ---- peers ---------------------------------------------------------------------------------------------------

ROUNDELAY_DEVICE i64 Peer::number() const { return lane->at.seen == seen ? known : number_of(lane->at.seen, rank); }

ROUNDELAY_DEVICE void Peer::TxAck() const { lane->post(rank, Signal::Ack); }

ROUNDELAY_DEVICE void Peer::RxAck() const { lane->wait(rank, Signal::Ack); }

ROUNDELAY_DEVICE void Peer::TxDataSignal() const { lane->post(rank, Signal::Data); }

ROUNDELAY_DEVICE void Peer::RxDataSignal() const { lane->wait(rank, Signal::Data); }

// ---- rings -----------------------------------------------------------------------------------------------------

ROUNDELAY_DEVICE Ring::Ring(Lane& lane, const List& order, const Members* made)
    : lane(&lane), made(made), order(order), count(made == nullptr ? lane.ranks : made->count),
      mine(made == nullptr ? lane.me : made->me) {
    const i32 me = mine;
    for (i32 i = 0; i < len(order); ++i) mine = order[i] == me ? i : mine;
}

ROUNDELAY_DEVICE Peer Ring::operator[](i64 position) const {
    const i32 there = i32(number(position));
    return {lane, rank_of(made, there), there, made};
}

ROUNDELAY_DEVICE Peer Ring::left() const { return (*this)[mine == 0 ? count - 1 : mine - 1]; }

ROUNDELAY_DEVICE Peer Ring::right() const { return (*this)[mine == count - 1 ? 0 : mine + 1]; }

ROUNDELAY_DEVICE i64 Ring::position_of(i64 rank) const {
    const i64 there = number_of(made, rank_of(lane->at.seen, rank));
    i64 position = len(order) == 0 ? there : 0;
    for (i32 i = 0; i < len(order); ++i) position = order[i] == there ? i : position;
    return position;
}

// ---- the other objects ---------------------------------------------------------------------------------------------

ROUNDELAY_DEVICE Object::Object(Lane& lane, i64 offset) : Object(lane, offset, lane.at.seen) {}

ROUNDELAY_DEVICE Object::Object(Lane& lane, i64 offset, const Members* made)
    : lane(&lane), made(made), words(offset == 0 ? nullptr : lane.facts.words + offset) {}

ROUNDELAY_DEVICE i32 Object::me() const { return made == nullptr ? lane->me : made->me; }

ROUNDELAY_DEVICE Peer Object::peer(i64 number) const {
    return {lane, rank_of(made, number), i32(number), made};
}

ROUNDELAY_DEVICE List Object::list(i64 first, i64 count) const { return {words + first, count, made, lane->at.seen}; }

// Row `index` of a table: the offsets of the rows, one more than there are rows, stand before the rows' items.
ROUNDELAY_DEVICE List Object::row(i64 offsets, i64 index, i64 rows) const {
    if (u64(index) >= u64(rows)) return List();
    const i64 first = word(offsets + index);
    return list(offsets + rows + 1 + first, word(offsets + index + 1) - first);
}

ROUNDELAY_DEVICE Ring Rings::operator[](i64 index) const {
    const i64 order = u64(index) < u64(word(0)) ? word(1 + index) : 0;
    return {*lane, lane->list(order, made), made};
}

ROUNDELAY_DEVICE Peer Tree::root() const { return peer(word(1)); }

ROUNDELAY_DEVICE Peer Tree::parent() const { return peer(max(of_mine(0), 0)); }

ROUNDELAY_DEVICE List Trees::weights_of(i64 rank) const {
    const i64 ranks = 2 + 3 * word(1), n = word(ranks), root = number_of(made, rank_of(lane->at.seen, rank));
    if (u64(root) >= u64(n)) return List();
    const i64 first = word(ranks + 1 + root);
    return {words + ranks + 2 + n + first, word(ranks + 2 + root) - first};
}

ROUNDELAY_DEVICE i64 Groups::of_rank(i64 table, i64 rank) const {
    return of(table, number_of(made, rank_of(lane->at.seen, rank)));
}

ROUNDELAY_DEVICE List Topology::neighbors(i64 rank) const {
    const i64 n = word(1), firsts = 2 + n * n;
    if (u64(rank) >= u64(n)) return List();
    const i64 first = word(firsts + rank);
    return {words + firsts + n + 1 + first, word(firsts + rank + 1) - first};
}

} // namespace roundelay
