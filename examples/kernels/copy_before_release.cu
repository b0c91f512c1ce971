// PyTorch, one_shot_all_reduce_copy: each thread copies its part, and a few threads release without
// a barrier of the block.
// https://github.com/pytorch/pytorch/pull/150129
#include "flags.cuh"

extern "C" __global__ void all_reduce(const u32* input, u32* const* shares, u32* const* pads,
                                      u32* output, u32 rank, u32 ranks, u32 count) {
    u32 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (u32 i = first; i < count; i += step) shares[rank][i] = input[i];
#ifndef BAD
    __syncthreads();
#endif
    if (threadIdx.x < ranks) {
        while (cas_release(pads[threadIdx.x] + blockIdx.x * ranks + rank, 0, 1) != 0) {}
        while (cas_acquire(pads[rank] + blockIdx.x * ranks + threadIdx.x, 1, 0) != 1) {}
    }
    __syncthreads();
    for (u32 i = first; i < count; i += step) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += shares[peer][i];
        output[i] = sum;
    }
    __syncthreads();
    if (threadIdx.x < ranks) {
        while (cas_release(pads[threadIdx.x] + blockIdx.x * ranks + rank, 0, 1) != 0) {}
        while (cas_acquire(pads[rank] + blockIdx.x * ranks + threadIdx.x, 1, 0) != 1) {}
    }
}
