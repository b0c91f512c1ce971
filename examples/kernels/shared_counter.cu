// lightseekorg/tokenspeed#351: the flag behind a payload is stored without a release; and kernels
// of different grids count their blocks by one counter, which hangs when they are mixed.
// https://github.com/lightseekorg/tokenspeed/pull/351
#include "flags.cuh"

/// All blocks of the grid meet.
__device__ void meet_in_grid(u32* counter) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        u32 before = atomicAdd(counter, 1);
        u32 all = (before / gridDim.x + 1) * gridDim.x;
        while (*(volatile u32*)counter < all) {}
        __threadfence();
    }
    __syncthreads();
}

extern "C" __global__ void all_reduce(const u32* input, u32* const* mail, u32* const* pads,
                                      u32* counters, u32* output, u32 rank, u32 ranks, u32 count,
                                      u32 epoch, u32 half) {
#ifdef SHARED
    u32* counter = counters;
#else
    u32* counter = counters + half;
#endif
    u32 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    u32 data = half * ranks * count;
    for (u32 peer = 0; peer < ranks; peer++) {
        for (u32 i = first; i < count; i += step) mail[peer][data + rank * count + i] = input[i];
    }
    meet_in_grid(counter);
    if (threadIdx.x < ranks) {
#ifdef RELAXED
        if (blockIdx.x == 0) put_relaxed(pads[threadIdx.x] + half * ranks + rank, epoch);
#else
        if (blockIdx.x == 0) put_release(pads[threadIdx.x] + half * ranks + rank, epoch);
#endif
        while ((int)(get_acquire(pads[rank] + half * ranks + threadIdx.x) - epoch) < 0) {}
    }
    __syncthreads();
    for (u32 i = first; i < count; i += step) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += mail[rank][data + peer * count + i];
        output[i] = sum;
    }
}
