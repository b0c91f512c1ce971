// vllm-project/vllm#2760: each rank stores its own byte of a word of 8 bytes, which its peer reads
// as one.
// https://github.com/vllm-project/vllm/pull/2760
#include "flags.cuh"

extern "C" __global__ void all_reduce(u32* const* inputs, u32* const* pads, u32* output, u32 rank,
                                      u32 ranks, u32 count) {
    if (threadIdx.x < ranks) {
        __threadfence_system();
#ifdef BAD
        u32* there = pads[threadIdx.x] + blockIdx.x * 2;
        ((volatile unsigned char*)there)[rank] = 1;
        volatile u64* here = (volatile u64*)(pads[rank] + blockIdx.x * 2);
        u64 all = 0x0101010101010101ull >> (64 - 8 * ranks);
        while (*here != all) {}
#else
        volatile u32* there = pads[threadIdx.x] + blockIdx.x * ranks;
        there[rank] = 1;
        volatile u32* here = pads[rank] + blockIdx.x * ranks;
        while (here[threadIdx.x] != 1) {}
#endif
        __threadfence_system();
    }
    __syncthreads();
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += inputs[peer][i];
        output[i] = sum;
    }
}
