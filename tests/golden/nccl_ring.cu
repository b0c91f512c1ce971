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
#include "roundelay.cuh"

namespace roundelay {

ROUNDELAY_DEVICE void NcclRingAllReduce(
    Lane& lane, const Region input, const Region output, const Ring ring, const i64 credits, const i64 slices, const i64 loops, const bool handshake) {
    const i64 nranks = lane.nranks();
    const Peer local = lane.local();
#line 29 "nccl_ring.coll"
    const Peer left = ring.left();
#line 30 "nccl_ring.coll"
    const Peer right = ring.right();
#line 31 "nccl_ring.coll"
    const i64 last = handshake ? ring.position() + 1 : ring.position();
#line 32 "nccl_ring.coll"
    const Pieces from = input.split(loops);
#line 33 "nccl_ring.coll"
    const Pieces into = output.split(loops);
#line 34 "nccl_ring.coll"
    lane.fifo(0, from[0].split(nranks), credits, slices);
#line 36 "nccl_ring.coll"
    for (i64 l = 0; l < loops; ++l) {
#line 37 "nccl_ring.coll"
        const Pieces src = from[l].split(nranks);
#line 38 "nccl_ring.coll"
        const Pieces dst = into[l].split(nranks);
#line 39 "nccl_ring.coll"
        if (nranks == 1) {
#line 40 "nccl_ring.coll"
            copy(local[src[0]], local[dst[0]]);
        } else {
#line 42 "nccl_ring.coll"
            right.send(local[src[mod(last - 1, nranks)]]);
#line 43 "nccl_ring.coll"
            for (i64 j = 2; j < nranks; ++j) {
#line 44 "nccl_ring.coll"
                left.recv_reduce_send(local[src[mod(last - j, nranks)]], right);
            }
#line 46 "nccl_ring.coll"
            const i64 done = mod(last, nranks);
#line 47 "nccl_ring.coll"
            left.recv_reduce_copy_send(local[src[done]], local[dst[done]], right);
#line 48 "nccl_ring.coll"
            for (i64 j = 1; j < nranks - 1; ++j) {
#line 49 "nccl_ring.coll"
                left.recv_copy_send(local[dst[mod(last - j, nranks)]], right);
            }
#line 51 "nccl_ring.coll"
            left.recv(local[dst[mod(last + 1, nranks)]]);
        }
    }
    lane.end_fifo();
}

} // namespace roundelay

#line 69 "NcclRingAllReduce.cu"
ROUNDELAY_WALK(NcclRingAllReduce) {
    roundelay::Lane lane(launch);
    roundelay::NcclRingAllReduce(lane, lane.input(), lane.output(), lane.ring_param(0), lane.int_param(1), lane.int_param(2), lane.int_param(3), lane.bool_param(4));
}
