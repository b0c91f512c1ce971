// flashinfer-ai/flashinfer#3053: lanes of a warp leave the loop of polls one by one, and a shuffle
// in it waits for all.
// https://github.com/flashinfer-ai/flashinfer/issues/3053
#include "flags.cuh"

extern "C" __global__ void all_reduce(const u32* input, u32* const* mail, u32* const* pads,
                                      u32* output, u32 rank, u32 ranks, u32 count) {
    u32 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (u32 peer = 0; peer < ranks; peer++) {
        for (u32 i = first; i < count; i += step) mail[peer][rank * count + i] = input[i];
    }
    __syncthreads();
    if (threadIdx.x < ranks) put_release(pads[threadIdx.x] + blockIdx.x * ranks + rank, 1);
    // Each lane waits for a rank, and adds what came from it.
    u32 lane = threadIdx.x % 32, from = lane % ranks;
    u32 seen = 0;
#ifdef BAD
    while (seen == 0) {
        seen = get_acquire(pads[rank] + blockIdx.x * ranks + from);
        seen = __shfl_sync(~0u, seen, lane);
    }
#else
    while (seen == 0) seen = get_acquire(pads[rank] + blockIdx.x * ranks + from);
    __syncwarp();
#endif
    for (u32 part = blockIdx.x * blockDim.x; part < count; part += step) {
        u32 end = min(part + blockDim.x, count);
        for (u32 i = part + threadIdx.x / 32; i < end; i += blockDim.x / 32) {
            u32 sum = lane < ranks ? mail[rank][from * count + i] : 0;
            for (u32 far = 16; far > 0; far /= 2) sum += __shfl_down_sync(~0u, sum, far);
            if (lane == 0) output[i] = sum;
        }
    }
}
