// HierarchicalAllReduce (AllReduce), f32 sum, protocol direct, the author's loops
// AllReduce in islands and across them: ReduceScatter inside, AllReduce on each rail, AllGather inside.
//
// One launch begins and ends all ranks.
// Proved for 8 ranks: 4 steps; at the busiest rank 1 stream, 9 moves, 15 posts, 15 waits.
// The busiest port carries 1.7500 units of the count.
#define ROUNDELAY_ELEMENT f32
#define ROUNDELAY_OP Sum
#define ROUNDELAY_PROTOCOL Direct
#define ROUNDELAY_VECTOR 16
#define ROUNDELAY_MOVES(MOVE) MOVE(1, 1) MOVE(2, 1)
#include "roundelay.cuh"

namespace roundelay {

ROUNDELAY_DEVICE void RingReduceScatter(Lane& lane, const Region input, const Region output) {
    const i64 nranks = lane.nranks();
    const Peer local = lane.local();
#line 52 "ring.coll"
    const Ring ring = lane.ring_natural();
#line 53 "ring.coll"
    const Peer left = ring.left();
#line 54 "ring.coll"
    const Peer right = ring.right();
#line 55 "ring.coll"
    const Pieces block = input.split(nranks);
#line 56 "ring.coll"
    const Pieces sum = lane.scratch_blocks(0, 2, block);
#line 58 "ring.coll"
    for (i64 round = 0; round < nranks; ++round) {
#line 59 "ring.coll"
        const i64 b = ring[mod(ring.position() - round - 1, nranks)].number();
#line 60 "ring.coll"
        if (round < nranks - 1) {
#line 61 "ring.coll"
            copy(local[block[b]], local[sum[mod(round, 2)]]); lane.meet();
        } else {
#line 63 "ring.coll"
            copy(local[block[b]], local[output]); lane.meet();
        }
#line 65 "ring.coll"
        if (round > 0) {
#line 66 "ring.coll"
            right.TxAck();
#line 67 "ring.coll"
            left.RxAck();
#line 68 "ring.coll"
            if (round < nranks - 1) {
#line 69 "ring.coll"
                reduce(left[sum[mod(round - 1, 2)]], local[sum[mod(round, 2)]]); lane.meet();
            } else {
#line 71 "ring.coll"
                reduce(left[sum[mod(round - 1, 2)]], local[output]); lane.meet();
            }
#line 73 "ring.coll"
            left.TxDataSignal();
#line 74 "ring.coll"
            right.RxDataSignal();
        }
    }
}

ROUNDELAY_DEVICE void MeshReduceScatter(Lane& lane, const Region input, const Region output) {
    const i64 rank = lane.rank();
    const i64 nranks = lane.nranks();
    const Peer local = lane.local();
#line 90 "mesh.coll"
    const Pieces block = input.split(nranks);
#line 92 "mesh.coll"
    copy(local[block[rank]], local[output]); lane.meet();
#line 94 "mesh.coll"
    for (i64 d = 1; d < nranks; ++d) {
#line 95 "mesh.coll"
        lane.peer(mod(rank - d, nranks)).TxAck();
    }
#line 97 "mesh.coll"
    for (i64 d = 1; d < nranks; ++d) {
#line 98 "mesh.coll"
        const Peer from = lane.peer(mod(rank + d, nranks));
#line 99 "mesh.coll"
        from.RxAck();
#line 100 "mesh.coll"
        reduce(from[block[rank]], local[output]); lane.meet();
#line 101 "mesh.coll"
        from.TxDataSignal();
    }
#line 103 "mesh.coll"
    for (i64 d = 1; d < nranks; ++d) {
#line 104 "mesh.coll"
        lane.peer(mod(rank - d, nranks)).RxDataSignal();
    }
}

ROUNDELAY_DEVICE void RingAllReduce(Lane& lane, const Region input, const Region output) {
    const i64 nranks = lane.nranks();
    const Peer local = lane.local();
#line 15 "ring.coll"
    const Ring ring = lane.ring_natural();
#line 16 "ring.coll"
    const Peer left = ring.left();
#line 17 "ring.coll"
    const Peer right = ring.right();
#line 18 "ring.coll"
    const i64 me = ring.position();
#line 19 "ring.coll"
    const Pieces block = output.split(nranks);
#line 21 "ring.coll"
    copy(local[input], local[output]); lane.meet();
#line 23 "ring.coll"
    for (i64 round = 0; round < nranks - 1; ++round) {
#line 24 "ring.coll"
        const i64 b = mod(me - round - 1, nranks);
#line 25 "ring.coll"
        right.TxAck();
#line 26 "ring.coll"
        left.RxAck();
#line 27 "ring.coll"
        reduce(left[block[b]], local[block[b]]); lane.meet();
#line 28 "ring.coll"
        left.TxDataSignal();
#line 29 "ring.coll"
        right.RxDataSignal();
    }
#line 31 "ring.coll"
    for (i64 round = 0; round < nranks - 1; ++round) {
#line 32 "ring.coll"
        const i64 b = mod(me - round, nranks);
#line 33 "ring.coll"
        right.TxAck();
#line 34 "ring.coll"
        left.RxAck();
#line 35 "ring.coll"
        copy(left[block[b]], local[block[b]]); lane.meet();
#line 36 "ring.coll"
        left.TxDataSignal();
#line 37 "ring.coll"
        right.RxDataSignal();
    }
}

ROUNDELAY_DEVICE void NhrAllReduce(Lane& lane, const Region input, const Region output) {
    const i64 rank = lane.rank();
    const i64 nranks = lane.nranks();
    const Peer local = lane.local();
#line 26 "nhr.coll"
    const bool reorder = false;
#line 27 "nhr.coll"
    const Pieces slice = output.split(nranks);
#line 28 "nhr.coll"
    const i64 steps = ceil_log2(nranks);
#line 32 "nhr.coll"
    const i64 splits = reorder && nranks > 3 ? log2(quo(nranks - 1, 3)) + 1 : 0;
#line 33 "nhr.coll"
    const i64 even = min(splits, trailing_zeros(nranks));
#line 34 "nhr.coll"
    const i64 part = nranks >> even;
#line 35 "nhr.coll"
    const auto pull = [&](const Peer from, const i64 c, const bool add) {
#line 36 "nhr.coll"
        const i64 i = c >> even;
#line 37 "nhr.coll"
        const i64 inside = splits > even ? mod(i, 2) * quo(part + 1, 2) + quo(i, 2) : i;
#line 38 "nhr.coll"
        const i64 place = bit_reverse(mod(c, pow2(even)), even) * part + inside;
#line 39 "nhr.coll"
        if (add) {
#line 40 "nhr.coll"
            reduce(from[slice[place]], local[slice[place]]); lane.meet();
        } else {
#line 42 "nhr.coll"
            copy(from[slice[place]], local[slice[place]]); lane.meet();
        }
    };
#line 46 "nhr.coll"
    copy(local[input], local[output]); lane.meet();
#line 48 "nhr.coll"
    for (i64 k = 0; k < steps; ++k) {
#line 49 "nhr.coll"
        const i64 d = pow2(k);
#line 50 "nhr.coll"
        const Peer below = lane.peer(mod(rank - d, nranks));
#line 51 "nhr.coll"
        const Peer above = lane.peer(mod(rank + d, nranks));
#line 52 "nhr.coll"
        below.TxAck();
#line 53 "nhr.coll"
        above.RxAck();
#line 54 "nhr.coll"
        for (i64 i = 0; i < quo(nranks - 1 + d, 2 * d); ++i) {
#line 55 "nhr.coll"
            pull(above, mod(rank - 2 * d * i, nranks), true);
        }
    }
#line 58 "nhr.coll"
    for (i64 s = 0; s < steps; ++s) {
#line 59 "nhr.coll"
        const i64 d = pow2(steps - 1 - s);
#line 60 "nhr.coll"
        const Peer below = lane.peer(mod(rank - d, nranks));
#line 61 "nhr.coll"
        const Peer above = lane.peer(mod(rank + d, nranks));
#line 62 "nhr.coll"
        above.TxAck();
#line 63 "nhr.coll"
        below.RxAck();
#line 64 "nhr.coll"
        for (i64 i = 0; i < quo(nranks - 1 + d, 2 * d); ++i) {
#line 65 "nhr.coll"
            pull(below, mod(rank - d - 2 * d * i, nranks), false);
        }
#line 67 "nhr.coll"
        below.TxDataSignal();
    }
#line 69 "nhr.coll"
    for (i64 k = 0; k < steps; ++k) {
#line 70 "nhr.coll"
        lane.peer(mod(rank + pow2(k), nranks)).RxDataSignal();
    }
}

ROUNDELAY_DEVICE void RingAllGather(Lane& lane, const Region input, const Region output) {
    const i64 rank = lane.rank();
    const i64 nranks = lane.nranks();
    const Peer local = lane.local();
#line 90 "ring.coll"
    const Ring ring = lane.ring_natural();
#line 91 "ring.coll"
    const Peer left = ring.left();
#line 92 "ring.coll"
    const Peer right = ring.right();
#line 93 "ring.coll"
    const Pieces block = output.split(nranks);
#line 95 "ring.coll"
    copy(local[input], local[block[rank]]); lane.meet();
#line 97 "ring.coll"
    for (i64 round = 0; round < nranks - 1; ++round) {
#line 98 "ring.coll"
        const i64 b = ring[mod(ring.position() - round - 1, nranks)].number();
#line 99 "ring.coll"
        right.TxAck();
#line 100 "ring.coll"
        left.RxAck();
#line 101 "ring.coll"
        copy(left[block[b]], local[block[b]]); lane.meet();
#line 102 "ring.coll"
        left.TxDataSignal();
#line 103 "ring.coll"
        right.RxDataSignal();
    }
}

ROUNDELAY_DEVICE void MeshAllGather(Lane& lane, const Region input, const Region output) {
    const i64 rank = lane.rank();
    const i64 nranks = lane.nranks();
    const Peer local = lane.local();
#line 120 "mesh.coll"
    const Pieces block = output.split(nranks);
#line 122 "mesh.coll"
    copy(local[input], local[block[rank]]); lane.meet();
#line 124 "mesh.coll"
    for (i64 d = 1; d < nranks; ++d) {
#line 125 "mesh.coll"
        lane.peer(mod(rank - d, nranks)).TxAck();
    }
#line 127 "mesh.coll"
    for (i64 d = 1; d < nranks; ++d) {
#line 128 "mesh.coll"
        const Peer from = lane.peer(mod(rank + d, nranks));
#line 129 "mesh.coll"
        from.RxAck();
#line 130 "mesh.coll"
        copy(from[input], local[block[from.number()]]); lane.meet();
#line 131 "mesh.coll"
        from.TxDataSignal();
    }
#line 133 "mesh.coll"
    for (i64 d = 1; d < nranks; ++d) {
#line 134 "mesh.coll"
        lane.peer(mod(rank - d, nranks)).RxDataSignal();
    }
}

ROUNDELAY_DEVICE void HierarchicalAllReduce(
    Lane& lane, const Region input, const Region output, const Groups groups, const bool ring_inside, const bool ring_across) {
    const i64 rank = lane.rank();
    const i64 nranks = lane.nranks();
#line 25 "hierarchical.coll"
    const Region mine = output.split(len(groups.mine()))[groups.position()];
#line 27 "hierarchical.coll"
    lane.within(groups.mine(), [&]([[maybe_unused]] const i64 rank, [[maybe_unused]] const i64 nranks) {
#line 28 "hierarchical.coll"
        if (ring_inside) {
#line 29 "hierarchical.coll"
            lane.call(5, 1, 0, input, output, [&](const Region input, const Region output) {
#line 29 "hierarchical.coll"
                RingReduceScatter(lane, input, output);
            });
        } else {
#line 31 "hierarchical.coll"
            lane.call(6, 1, 0, input, output, [&](const Region input, const Region output) {
#line 31 "hierarchical.coll"
                MeshReduceScatter(lane, input, output);
            });
        }
    });
#line 34 "hierarchical.coll"
    lane.within(groups.across(), [&]([[maybe_unused]] const i64 rank, [[maybe_unused]] const i64 nranks) {
#line 35 "hierarchical.coll"
        if (ring_across) {
#line 36 "hierarchical.coll"
            lane.call(9, 0, 0, mine, mine, [&](const Region input, const Region output) {
#line 36 "hierarchical.coll"
                RingAllReduce(lane, input, output);
            });
        } else {
#line 38 "hierarchical.coll"
            lane.call(10, 0, 0, mine, mine, [&](const Region input, const Region output) {
#line 38 "hierarchical.coll"
                NhrAllReduce(lane, input, output);
            });
        }
    });
#line 41 "hierarchical.coll"
    lane.within(groups.mine(), [&]([[maybe_unused]] const i64 rank, [[maybe_unused]] const i64 nranks) {
#line 42 "hierarchical.coll"
        if (ring_inside) {
#line 43 "hierarchical.coll"
            lane.call(13, 0, 1, output, output, [&](const Region input, const Region output) {
#line 43 "hierarchical.coll"
                RingAllGather(lane, input, output);
            });
        } else {
#line 45 "hierarchical.coll"
            lane.call(14, 0, 1, output, output, [&](const Region input, const Region output) {
#line 45 "hierarchical.coll"
                MeshAllGather(lane, input, output);
            });
        }
    });
}

} // namespace roundelay

#line 345 "HierarchicalAllReduce.cu"
ROUNDELAY_WALK(HierarchicalAllReduce) {
    roundelay::Lane lane(launch);
    roundelay::HierarchicalAllReduce(lane, lane.input(), lane.output(), lane.groups_param(0), lane.bool_param(1), lane.bool_param(2));
}
