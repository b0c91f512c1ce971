// TwistedRingAllReduce (AllReduce), f32 sum, protocol direct, the author's loops
// AllReduce on a ring in both directions at once: half of the data travels each way, on a stream of
// its own, so a full-duplex link is busy both ways.
//
// One launch begins and ends all ranks.
// Proved for 8 ranks: 14 steps; at the busiest rank 2 streams, 30 moves, 30 posts, 30 waits.
// The busiest port carries 1.7500 units of the count.
// Signals that others imply are left out: lines 34, 35, 42, 43.
#define ROUNDELAY_ELEMENT f32
#define ROUNDELAY_OP Sum
#define ROUNDELAY_PROTOCOL Direct
#define ROUNDELAY_VECTOR 16
#define ROUNDELAY_MOVES(MOVE) MOVE(1, 1) MOVE(2, 1)
#define ROUNDELAY_PIECES 16
#include "roundelay.cuh"

namespace roundelay::program {

constexpr num nranks = 8;

ROUNDELAY_DEVICE void TwistedRingAllReduce(Lane& lane) {
    const num me = lane.me;
#line 21 "twisted_ring.coll"
    lane.parallel<false>(0, 2, [&](const num way) {
        const num to = way == 0 ? (me + 1) % nranks : (me - 1 + nranks) % nranks;
        const num from = way == 0 ? (me - 1 + nranks) % nranks : (me + 1) % nranks;
        const num sign = way == 0 ? 1 : -1;
#line 27 "twisted_ring.coll"
        lane.copy(lane.mine(INPUT, {way * 8, 8}), lane.mine(OUTPUT, {way * 8, 8})); lane.meet();
        for (num round = 0; round < nranks - 1; ++round) {
            const num b = (me - sign * (round + 1) + nranks) % nranks;
#line 31 "twisted_ring.coll"
            lane.TxAck(to);
#line 32 "twisted_ring.coll"
            lane.RxAck(from);
#line 33 "twisted_ring.coll"
            lane.reduce(lane.of(from, OUTPUT, {way * 8 + b, 1}),
                lane.mine(OUTPUT, {way * 8 + b, 1}));
        }
        for (num round = 0; round < nranks - 1; ++round) {
            const num b = (me - sign * round + nranks) % nranks;
#line 39 "twisted_ring.coll"
            lane.TxAck(to);
#line 40 "twisted_ring.coll"
            lane.RxAck(from);
#line 41 "twisted_ring.coll"
            lane.copy(lane.of(from, OUTPUT, {way * 8 + b, 1}), lane.mine(OUTPUT, {way * 8 + b, 1}));
        }
    });
}

} // namespace roundelay::program

#line 55 "TwistedRingAllReduce.cu"
ROUNDELAY_WALK(TwistedRingAllReduce) {
    roundelay::Lane lane(launch);
    roundelay::program::TwistedRingAllReduce(lane);
}
