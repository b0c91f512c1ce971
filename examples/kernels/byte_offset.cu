// ParallelKernelBench, an example that was removed and 34 solutions after it: the place of a signal
// is counted in words and added to an address of bytes.
// https://github.com/togethercomputer/ParallelKernelBench/commit/e6e9efb
#include "flags.cuh"

extern "C" __global__ void all_reduce(u32* const* inputs, const u64* pads, u32* output, u32 rank,
                                      u32 ranks, u32 count) {
    if (threadIdx.x < ranks) {
#ifdef BAD
        u32 size = 1;
#else
        u32 size = sizeof(u32);
#endif
        u32* there = (u32*)(pads[threadIdx.x] + (blockIdx.x * ranks + rank) * size);
        u32* here = (u32*)(pads[rank] + (blockIdx.x * ranks + threadIdx.x) * size);
        while (cas_release(there, 0, 1) != 0) {}
        while (cas_acquire(here, 1, 0) != 1) {}
    }
    __syncthreads();
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += inputs[peer][i];
        output[i] = sum;
    }
}
