// HierarchicalAllReduce (AllReduce), f32 sum, protocol direct, the author's loops
// AllReduce in islands and across them: ReduceScatter inside, AllReduce on each rail, AllGather inside.
//
// One launch begins and ends all ranks.
// Proved for 8 ranks: 4 steps; at the busiest rank 1 stream, 9 moves, 5 posts, 5 waits.
// The busiest port carries 1.7500 units of the count.
// Signals that others imply are left out: lines 95 of mesh.coll, 99 of mesh.coll, 101 of mesh.coll, 104 of mesh.coll, 131 of mesh.coll, 134 of mesh.coll, 67 of nhr.coll, 70 of nhr.coll.
#define ROUNDELAY_ELEMENT f32
#define ROUNDELAY_OP Sum
#define ROUNDELAY_PROTOCOL Direct
#define ROUNDELAY_VECTOR 16
#define ROUNDELAY_MOVES(MOVE) MOVE(1, 1) MOVE(2, 1)
#define ROUNDELAY_PIECES 8
#include "roundelay.cuh"

namespace roundelay::program {


ROUNDELAY_DEVICE void HierarchicalAllReduce(Lane& lane) {
    const num me = lane.me;
    {
        const num index = me % 4;
        const num first = me - index;
#line 92 "mesh.coll"
        lane.copy(lane.mine(INPUT, {index * 2, 2}), lane.mine(OUTPUT, {index * 2, 2}));
        for (num d = 1; d < 4; ++d) {
            const num from = first + (index + d) % 4;
#line 100 "mesh.coll"
            lane.reduce(lane.of(from, INPUT, {index * 2, 2}), lane.mine(OUTPUT, {index * 2, 2})); lane.meet();
        }
    }
    {
        const num index = me / 4;
        const num first = me % 4;
        const num reorder = 0;
        const num steps = 1;
        const num splits = reorder && 0 ? log2(0) + 1 : 0;
        const num even = min(splits, 1);
        const num part = 2 >> even;
        for (num k = 0; k < steps; ++k) {
            const num d = pow2(k);
            const num below = first + (index - d + 2) % 2 * 4;
            const num above = first + (index + d) % 2 * 4;
#line 52 "nhr.coll"
            lane.TxAck(below);
#line 53 "nhr.coll"
            lane.RxAck(above);
            for (num i = 0; i < quo(1 + d, 2 * d); ++i) {
                const num c = (index - 2 * d * i) % 2;
                const num i_2 = c >> even;
                const num inside = splits > even ? i_2 % 2 * ((part + 1) / 2) + i_2 / 2 : i_2;
                const num place = bit_reverse(mod(c, pow2(even)), even) * part + inside;
#line 40 "nhr.coll"
                lane.reduce(lane.of(above, OUTPUT, {me % 4 * 2 + place, 1}),
                    lane.mine(OUTPUT, {me % 4 * 2 + place, 1}));
            }
        }
        for (num s = 0; s < steps; ++s) {
            const num d = pow2(steps - 1 - s);
            const num below = first + (index - d + 2) % 2 * 4;
            const num above = first + (index + d) % 2 * 4;
#line 62 "nhr.coll"
            lane.TxAck(above);
#line 63 "nhr.coll"
            lane.RxAck(below);
            for (num i = 0; i < quo(1 + d, 2 * d); ++i) {
                const num c = (index - d - 2 * d * i + 2) % 2;
                const num i_2 = c >> even;
                const num inside = splits > even ? i_2 % 2 * ((part + 1) / 2) + i_2 / 2 : i_2;
                const num place = bit_reverse(mod(c, pow2(even)), even) * part + inside;
#line 42 "nhr.coll"
                lane.copy(lane.of(below, OUTPUT, {me % 4 * 2 + place, 1}),
                    lane.mine(OUTPUT, {me % 4 * 2 + place, 1}));
            }
        }
    }
    const num index = me % 4;
    const num first = me - index;
    for (num d = 1; d < 4; ++d) {
#line 125 "mesh.coll"
        lane.TxAck(first + (index - d + 4) % 4);
    }
    for (num d = 1; d < 4; ++d) {
        const num from = first + (index + d) % 4;
#line 129 "mesh.coll"
        lane.RxAck(from);
#line 130 "mesh.coll"
        lane.copy(lane.of(from, OUTPUT, {from % 4 * 2, 2}), lane.mine(OUTPUT, {from % 4 * 2, 2}));
    }
}

} // namespace roundelay::program

#line 95 "HierarchicalAllReduce.cu"
ROUNDELAY_WALK(HierarchicalAllReduce) {
    roundelay::Lane lane(launch);
    roundelay::program::HierarchicalAllReduce(lane);
}
