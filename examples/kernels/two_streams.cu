// pytorch/pytorch#189228: two streams share a pad of signals. No order of their kernels is the same
// on all ranks.
// https://github.com/pytorch/pytorch/issues/189228
#include "flags.cuh"

extern "C" __global__ void all_reduce(const u32* input, u32* const* shares, u32* const* pads,
                                      u32* output, u32 rank, u32 ranks, u32 count, u32 stream) {
#ifdef BAD
    u32 channel = blockIdx.x;
#else
    u32 channel = stream * gridDim.x + blockIdx.x;
#endif
    u32 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (u32 i = first; i < count; i += step) shares[rank][i] = input[i];
    __syncthreads();
    if (threadIdx.x < ranks) {
        while (cas_release(pads[threadIdx.x] + channel * ranks + rank, 0, 1) != 0) {}
        while (cas_acquire(pads[rank] + channel * ranks + threadIdx.x, 1, 0) != 1) {}
    }
    __syncthreads();
    for (u32 i = first; i < count; i += step) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += shares[peer][i];
        output[i] = sum;
    }
}
