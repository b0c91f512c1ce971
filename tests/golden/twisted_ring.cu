// TwistedRingAllReduce (AllReduce), f32 sum, protocol direct, the author's loops
// AllReduce on a ring in both directions at once: half of the data travels each way, on a stream of
// its own, so a full-duplex link is busy both ways.
//
// One launch begins and ends all ranks.
// Proved for 8 ranks: 14 steps; at the busiest rank 2 streams, 30 moves, 30 posts, 30 waits.
// The busiest port carries 1.7500 units of the count.
// Signals that others imply are left out: line 34, 35, 42, 43.
#define ROUNDELAY_ELEMENT f32
#define ROUNDELAY_OP Sum
#define ROUNDELAY_PROTOCOL Direct
#define ROUNDELAY_VECTOR 16
#define ROUNDELAY_MOVES(MOVE) MOVE(1, 1) MOVE(2, 1)
#include "roundelay.cuh"

namespace roundelay {

ROUNDELAY_DEVICE void TwistedRingAllReduce(
    Lane& lane, const Region input, const Region output, const Ring ring) {
    const i64 nranks = lane.nranks();
    const Peer local = lane.local();
#line 20 "twisted_ring.coll"
    const Pieces half = output.split(2);
#line 21 "twisted_ring.coll"
    lane.parallel<false>(0, 2, [&](const i64 way) {
#line 22 "twisted_ring.coll"
        const Peer to = way == 0 ? ring.right() : ring.left();
#line 23 "twisted_ring.coll"
        const Peer from = way == 0 ? ring.left() : ring.right();
#line 24 "twisted_ring.coll"
        const i64 sign = way == 0 ? 1 : -1;
#line 25 "twisted_ring.coll"
        const Pieces block = half[way].split(nranks);
#line 27 "twisted_ring.coll"
        copy(local[input.split(2)[way]], local[half[way]]); lane.meet();
#line 29 "twisted_ring.coll"
        for (i64 round = 0; round < nranks - 1; ++round) {
#line 30 "twisted_ring.coll"
            const i64 b = mod(ring.position() - sign * (round + 1), nranks);
#line 31 "twisted_ring.coll"
            to.TxAck();
#line 32 "twisted_ring.coll"
            from.RxAck();
#line 33 "twisted_ring.coll"
            reduce(from[block[b]], local[block[b]]);
        }
#line 37 "twisted_ring.coll"
        for (i64 round = 0; round < nranks - 1; ++round) {
#line 38 "twisted_ring.coll"
            const i64 b = mod(ring.position() - sign * round, nranks);
#line 39 "twisted_ring.coll"
            to.TxAck();
#line 40 "twisted_ring.coll"
            from.RxAck();
#line 41 "twisted_ring.coll"
            copy(from[block[b]], local[block[b]]);
        }
    });
}

} // namespace roundelay

#line 64 "TwistedRingAllReduce.cu"
ROUNDELAY_WALK(TwistedRingAllReduce) {
    roundelay::Lane lane(launch);
    roundelay::TwistedRingAllReduce(lane, lane.input(), lane.output(), lane.ring_param(0));
}
