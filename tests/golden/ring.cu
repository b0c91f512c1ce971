// RingAllReduce (AllReduce), f32 sum, protocol direct, the author's loops
// AllReduce on a ring: nranks-1 reduce-scatter rounds, then nranks-1 all-gather rounds.
//
// One launch begins and ends all ranks.
// Proved for 8 ranks: 14 steps; at the busiest rank 1 stream, 15 moves, 14 posts, 14 waits.
// The busiest port carries 1.7500 units of the count.
// Signals that others imply are left out: line 28, 29, 36, 37.
#define ROUNDELAY_ELEMENT f32
#define ROUNDELAY_OP Sum
#define ROUNDELAY_PROTOCOL Direct
#define ROUNDELAY_VECTOR 16
#define ROUNDELAY_MOVES(MOVE) MOVE(1, 1) MOVE(2, 1)
#include "roundelay.cuh"

namespace roundelay {

ROUNDELAY_DEVICE void RingAllReduce(
    Lane& lane, const Region input, const Region output, const Ring ring) {
    const i64 nranks = lane.nranks();
    const Peer local = lane.local();
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
        reduce(left[block[b]], local[block[b]]);
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
        copy(left[block[b]], local[block[b]]);
    }
}

} // namespace roundelay

#line 58 "RingAllReduce.cu"
ROUNDELAY_WALK(RingAllReduce) {
    roundelay::Lane lane(launch);
    roundelay::RingAllReduce(lane, lane.input(), lane.output(), lane.ring_param(0));
}
