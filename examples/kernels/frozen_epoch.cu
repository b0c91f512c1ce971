// ROCm/aiter#3928, also sgl-project/sglang#29508: the host counts calls. A graph repeats the count
// of its capture, and the wait for it is over at once.
// https://github.com/ROCm/aiter/pull/3928
#include "flags.cuh"

extern "C" __global__ void all_reduce(const u32* input, u32* const* mail, u32* const* pads,
                                      u32* epochs, u32* output, u32 rank, u32 ranks, u32 count,
                                      u32 frozen) {
#ifdef BAD
    u32 epoch = frozen;
#else
    u32 epoch = epochs[blockIdx.x] + 1;
#endif
    u32 half = (epoch & 1) * ranks * count; // a peer may still read the other half
    u32 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (u32 peer = 0; peer < ranks; peer++) {
        for (u32 i = first; i < count; i += step) mail[peer][half + rank * count + i] = input[i];
    }
    __syncthreads();
    if (threadIdx.x < ranks) {
        put_release(pads[threadIdx.x] + blockIdx.x * ranks + rank, epoch);
#ifdef BAD
        while (get_acquire(pads[rank] + blockIdx.x * ranks + threadIdx.x) != epoch) {}
#else
        while ((int)(get_acquire(pads[rank] + blockIdx.x * ranks + threadIdx.x) - epoch) < 0) {}
#endif
    }
    __syncthreads();
    for (u32 i = first; i < count; i += step) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += mail[rank][half + peer * count + i];
        output[i] = sum;
    }
    if (threadIdx.x == 0) epochs[blockIdx.x] = epoch;
}
