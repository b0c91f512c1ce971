// RingAllReduce (AllReduce), f32 sum, protocol direct, a table of ops
//
// One launch begins and ends all ranks.
// Proved for 8 ranks: 14 steps; at the busiest rank 1 stream, 15 moves, 14 posts, 14 waits.
// The busiest port carries 1.7500 units of the count.
#define ROUNDELAY_ELEMENT f32
#define ROUNDELAY_OP Sum
#define ROUNDELAY_PROTOCOL Direct
#define ROUNDELAY_VECTOR 16
#define ROUNDELAY_MOVES(MOVE) MOVE(1, 1) MOVE(2, 1)
#include "roundelay.cuh"

#line 14 "RingAllReduce.cu"
ROUNDELAY_WALK(RingAllReduce) {
    roundelay::Lane lane(launch);
    roundelay::run_table(lane);
}
