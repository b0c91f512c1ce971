// Puts the callers' buffers into a table of ranks' memory. The kernel is launched before the main kernel, on the same
// stream: its arguments are values, so a graph replays it with the addresses of its capture.
#pragma once
#include "base.cuh"

namespace roundelay {

// The ranks that one launch binds: with the words before them, well below the limit of a launch's arguments.
constexpr int BOUND_AT_ONCE = 64;

struct Addresses {
    Memory* ranks;
    u64 first;
    u64 count;
    // The input and the output of each rank.
    u64 at[2 * BOUND_AT_ONCE];
};

} // namespace roundelay

extern "C" __global__ void roundelay_bind(const __grid_constant__ roundelay::Addresses addresses) {
    const unsigned i = threadIdx.x;
    if (i < addresses.count) {
        roundelay::Memory& rank = addresses.ranks[addresses.first + i];
        rank.input = addresses.at[2 * i];
        rank.output = addresses.at[2 * i + 1];
    }
}
