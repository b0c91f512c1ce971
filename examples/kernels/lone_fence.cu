// AMD-AGI/Primus-Turbo#482: one thread fences and signals, and no barrier is between it and the
// stores of the other warps.
// https://github.com/AMD-AGI/Primus-Turbo/pull/482
#include "flags.cuh"

extern "C" __global__ void all_reduce(const u32* input, u32* const* mail, u32* const* pads,
                                      u32* output, u32 rank, u32 ranks, u32 count) {
    u32 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (u32 peer = 0; peer < ranks; peer++) {
        for (u32 i = first; i < count; i += step) mail[peer][rank * count + i] = input[i];
    }
#ifndef BAD
    __syncthreads();
#endif
    if (threadIdx.x == 0) {
        __threadfence_system();
        for (u32 peer = 0; peer < ranks; peer++) {
            put_relaxed(pads[peer] + blockIdx.x * ranks + rank, 1);
        }
    }
    if (threadIdx.x < ranks) {
        while (get_acquire(pads[rank] + blockIdx.x * ranks + threadIdx.x) != 1) {}
    }
    __syncthreads();
    for (u32 i = first; i < count; i += step) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += mail[rank][peer * count + i];
        output[i] = sum;
    }
}
