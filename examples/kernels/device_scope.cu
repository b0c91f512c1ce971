// ROCm/aiter#4786: the flag of a peer is polled at the scope of the device.
// https://github.com/ROCm/aiter/pull/4786
#include "flags.cuh"

#ifdef BAD
#define POLL "ld.acquire.gpu.global.u32"
#else
#define POLL "ld.acquire.sys.global.u32"
#endif

extern "C" __global__ void all_reduce(const u32* input, u32* const* mail, u32* const* pads,
                                      u32* output, u32 rank, u32 ranks, u32 count) {
    u32 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (u32 peer = 0; peer < ranks; peer++) {
        for (u32 i = first; i < count; i += step) mail[peer][rank * count + i] = input[i];
    }
    __syncthreads();
    if (threadIdx.x < ranks) {
        put_release(pads[threadIdx.x] + blockIdx.x * ranks + rank, 1);
        u32* flag = pads[rank] + blockIdx.x * ranks + threadIdx.x;
        u32 seen = 0;
        while (seen == 0) asm volatile(POLL " %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    }
    __syncthreads();
    for (u32 i = first; i < count; i += step) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += mail[rank][peer * count + i];
        output[i] = sum;
    }
}
