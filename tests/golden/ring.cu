// RingAllReduce (AllReduce), f32 sum, protocol direct, the author's loops
// AllReduce on a ring: nranks-1 reduce-scatter rounds, then nranks-1 all-gather rounds.
//
// One launch begins and ends all ranks.
// Proved for 8 ranks: 14 steps; at the busiest rank 1 stream, 15 moves, 14 posts, 14 waits.
// The busiest port carries 1.7500 units of the count.
// Signals that others imply are left out: lines 28, 29, 36, 37.
#define ROUNDELAY_ELEMENT f32
#define ROUNDELAY_OP Sum
#define ROUNDELAY_PROTOCOL Direct
#define ROUNDELAY_VECTOR 16
#define ROUNDELAY_MOVES(MOVE) MOVE(1, 1) MOVE(2, 1)
#define ROUNDELAY_PIECES 8
#include "roundelay.cuh"

namespace roundelay::program {

constexpr num nranks = 8;

ROUNDELAY_DEVICE void RingAllReduce(Lane& lane) {
    const num me = lane.me;
    const num left = (me - 1 + nranks) % nranks;
    const num right = (me + 1) % nranks;
#line 21 "ring.coll"
    lane.copy(lane.mine(INPUT, {0, 8}), lane.mine(OUTPUT, {0, 8})); lane.meet();
    for (num round = 0; round < nranks - 1; ++round) {
        const num b = (me - round - 1 + nranks) % nranks;
#line 25 "ring.coll"
        lane.TxAck(right);
#line 26 "ring.coll"
        lane.RxAck(left);
#line 27 "ring.coll"
        lane.reduce(lane.of(left, OUTPUT, {b, 1}), lane.mine(OUTPUT, {b, 1}));
    }
    for (num round = 0; round < nranks - 1; ++round) {
        const num b = (me - round + nranks) % nranks;
#line 33 "ring.coll"
        lane.TxAck(right);
#line 34 "ring.coll"
        lane.RxAck(left);
#line 35 "ring.coll"
        lane.copy(lane.of(left, OUTPUT, {b, 1}), lane.mine(OUTPUT, {b, 1}));
    }
}

} // namespace roundelay::program

#line 49 "RingAllReduce.cu"
ROUNDELAY_WALK(RingAllReduce) {
    roundelay::Lane lane(launch);
    roundelay::program::RingAllReduce(lane);
}
