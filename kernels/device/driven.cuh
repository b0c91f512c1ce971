// One move of a schedule that the host drives, to compare generated kernels with.
#pragma once
// All threads move.
#define ROUNDELAY_MOVERS ROUNDELAY_THREADS
#include "moves.cuh"

namespace roundelay {

struct Driven {
    u64 sources;
    u64 len;
    i64 divisor; // 0: nothing is divided
    u64 to;
    u64 from[8];
};

template <int S> ROUNDELAY_DEVICE void driven(const Driven& call) {
    u64 from[S];
#pragma unroll
    for (int s = 0; s < S; ++s) {
        from[s] = call.from[s];
    }
    const u64 to[1] = {call.to};
    const Portion mine = portion(call.len, gridDim.x, blockIdx.x);
    move<S, 1>(from, to, mine.begin, mine.end, call.divisor);
}

} // namespace roundelay

extern "C" __global__ void __launch_bounds__(ROUNDELAY_THREADS, ROUNDELAY_CTAS)
    roundelay_driven(const __grid_constant__ roundelay::Driven call) {
    switch (call.sources) {
    case 1:
        return roundelay::driven<1>(call);
    case 2:
        return roundelay::driven<2>(call);
    case 3:
        return roundelay::driven<3>(call);
    case 4:
        return roundelay::driven<4>(call);
    case 5:
        return roundelay::driven<5>(call);
    case 6:
        return roundelay::driven<6>(call);
    case 7:
        return roundelay::driven<7>(call);
    default:
        return roundelay::driven<8>(call);
    }
}
