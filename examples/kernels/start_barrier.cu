// vllm-project/vllm#57059: a one-shot all-reduce whose start barrier orders nothing. An earlier
// kernel wrote the input.
// https://github.com/vllm-project/vllm/issues/57059
#include "flags.cuh"

#ifdef BAD
#define PUT put_relaxed
#define GET get_relaxed
#else
#define PUT put_release
#define GET get_acquire
#endif

extern "C" __global__ void all_reduce(u32* const* inputs, u32* const* pads, u32* epochs,
                                      u32* output, u32 rank, u32 ranks, u32 count) {
    u32 epoch = epochs[blockIdx.x] + 1;
    if (threadIdx.x < ranks) {
        PUT(pads[threadIdx.x] + blockIdx.x * ranks + rank, epoch);
        while (GET(pads[rank] + blockIdx.x * ranks + threadIdx.x) != epoch) {}
    }
    __syncthreads();
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += inputs[peer][i];
        output[i] = sum;
    }
    meet(pads, 1, rank, ranks, epoch);
    if (threadIdx.x == 0) epochs[blockIdx.x] = epoch;
}
