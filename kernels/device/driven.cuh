// One move of a schedule that the host drives, to compare generated kernels with; or a number folded into each element.
#pragma once
// All threads move.
#define ROUNDELAY_MOVERS ROUNDELAY_THREADS
#include "moves.cuh"

namespace roundelay {

struct Driven {
    u64 sources; // 0: a number is folded into each element of the first source
    u64 len;
    i64 divisor; // 0: nothing is divided; the number's bits, where the second source is not its address
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

ROUNDELAY_DEVICE void by_number(const Driven& call) {
    Loaded<Element> number = {{Register(call.divisor)}};
    if (call.from[1] != 0) number = load_unit<Element>(call.from[1]);
    const Portion mine = portion(call.len, gridDim.x, blockIdx.x);
    for (u64 nth = mine.begin + thread(); nth < mine.end; nth += threads()) {
        const u64 at = nth * sizeof(Element);
        const Loaded<Element> got[2] = {load_unit<Element>(call.from[0] + at), number};
        store_unit<Element>(call.to + at, folded<Element>(got, 0));
    }
}

} // namespace roundelay

extern "C" __global__ void __launch_bounds__(ROUNDELAY_THREADS, ROUNDELAY_CTAS)
    roundelay_driven(const __grid_constant__ roundelay::Driven call) {
    switch (call.sources) {
    case 0:
        return roundelay::by_number(call);
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
