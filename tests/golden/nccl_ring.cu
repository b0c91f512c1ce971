// NcclRingAllReduce (AllReduce), f32 sum, protocol simple, the author's loops
// AllReduce on a ring as NCCL runs it: every chunk passes twice around, through the slots of a fifo.
//
// One launch begins and ends all ranks.
// Proved for 8 ranks: 14 steps; at the busiest rank 1 stream, 30 moves, 56 posts, 56 waits.
// The busiest port carries 1.7500 units of the count.
#define ROUNDELAY_ELEMENT f32
#define ROUNDELAY_OP Sum
#define ROUNDELAY_PROTOCOL Simple
#define ROUNDELAY_VECTOR 16
#define ROUNDELAY_MOVES(MOVE) MOVE(1, 1) MOVE(1, 2) MOVE(2, 1) MOVE(2, 2)
#define ROUNDELAY_PIECES 16
#include "roundelay.cuh"

namespace roundelay::program {

constexpr num nranks = 8;

ROUNDELAY_DEVICE void NcclRingAllReduce(Lane& lane) {
    const num me = lane.me;
    const num loops = 1;
    const num handshake = 0;
    const num left = (me - 1 + nranks) % nranks;
    const num right = (me + 1) % nranks;
    const num last = handshake ? 1 : me;
    for (num l = 0; l < loops; ++l) {
        for (num slice = 0; slice < 2; ++slice) {
            const num begin = l * 16 + (last - 1 + nranks) % nranks * 2 + slice;
#line 42 "nccl_ring.coll"
            lane.copy(lane.mine(INPUT, {begin, 1}),
                lane.of(right, SCRATCH, {begin, 1, slice, begin}));
#line 42 "nccl_ring.coll"
            lane.TxTail(right);
        }
        for (num j = 2; j < nranks; ++j) {
            for (num slice = 0; slice < 2; ++slice) {
                const num begin = l * 16 + (last - j + nranks) % nranks * 2 + slice;
#line 44 "nccl_ring.coll"
                lane.RxTail(left);
                if (2 * (j - 2) + 2 + slice >= 4) {
#line 44 "nccl_ring.coll"
                    lane.RxHead(right);
                }
#line 44 "nccl_ring.coll"
                lane.fold({lane.mine(INPUT, {begin, 1}),
                    lane.mine(SCRATCH, {begin, 1, (2 * (j - 2) + slice) % 4, begin})}, {lane.of(right, SCRATCH, {begin, 1, (2 * (j - 2) + 2 + slice) % 4, begin})});
#line 44 "nccl_ring.coll"
                lane.TxTail(right);
#line 44 "nccl_ring.coll"
                lane.TxHead(left);
            }
        }
        const num done = last % nranks;
        for (num slice = 0; slice < 2; ++slice) {
            const num begin = l * 16 + done * 2 + slice;
#line 47 "nccl_ring.coll"
            lane.RxTail(left);
#line 47 "nccl_ring.coll"
            lane.RxHead(right);
#line 47 "nccl_ring.coll"
            lane.fold({lane.mine(INPUT, {begin, 1}),
                lane.mine(SCRATCH, {begin, 1, slice, begin})}, {lane.mine(OUTPUT, {begin, 1}),
                lane.of(right, SCRATCH, {begin, 1, 2 + slice, begin})});
#line 47 "nccl_ring.coll"
            lane.TxTail(right);
#line 47 "nccl_ring.coll"
            lane.TxHead(left);
        }
        for (num j = 1; j < nranks - 1; ++j) {
            for (num slice = 0; slice < 2; ++slice) {
                const num begin = l * 16 + (last - j + nranks) % nranks * 2 + slice;
#line 49 "nccl_ring.coll"
                lane.RxTail(left);
#line 49 "nccl_ring.coll"
                lane.RxHead(right);
#line 49 "nccl_ring.coll"
                lane.copy(lane.mine(SCRATCH, {begin, 1, (2 * (j - 1) + 14 + slice) % 4, begin}),
                    lane.mine(OUTPUT, {begin, 1}),
                    lane.of(right, SCRATCH, {begin, 1, (2 * (j - 1) + 16 + slice) % 4, begin}));
#line 49 "nccl_ring.coll"
                lane.TxTail(right);
#line 49 "nccl_ring.coll"
                lane.TxHead(left);
            }
        }
        for (num slice = 0; slice < 2; ++slice) {
            const num begin = l * 16 + (last + 1) % nranks * 2 + slice;
#line 51 "nccl_ring.coll"
            lane.RxTail(left);
#line 51 "nccl_ring.coll"
            lane.copy(lane.mine(SCRATCH, {begin, 1, 2 + slice, begin}),
                lane.mine(OUTPUT, {begin, 1}));
#line 51 "nccl_ring.coll"
            lane.TxHead(left);
        }
    }
    for (num credit = 0; credit < 4; ++credit) {
#line 34 "nccl_ring.coll"
        lane.RxHead((me + 1) % nranks);
    }
}

} // namespace roundelay::program

#line 106 "NcclRingAllReduce.cu"
ROUNDELAY_WALK(NcclRingAllReduce) {
    roundelay::Lane lane(launch);
    roundelay::program::NcclRingAllReduce(lane);
}
