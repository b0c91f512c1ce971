// pytorch/pytorch#170785: a thread for each peer signals and waits, and the block has fewer threads
// than there are ranks.
// https://github.com/pytorch/pytorch/pull/170785
#include "flags.cuh"

extern "C" __global__ void all_reduce(const u32* input, u32* const* mail, u32* const* pads,
                                      u32* output, u32 rank, u32 ranks, u32 count) {
    u32 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (u32 peer = 0; peer < ranks; peer++) {
        for (u32 i = first; i < count; i += step) mail[peer][rank * count + i] = input[i];
    }
    __syncthreads();
#ifdef BAD
    u32 served = threadIdx.x + 1;
#else
    u32 served = ranks;
#endif
    for (u32 peer = threadIdx.x; peer < served && peer < ranks; peer += blockDim.x) {
        put_release(pads[peer] + blockIdx.x * ranks + rank, 1);
    }
    for (u32 peer = threadIdx.x; peer < served && peer < ranks; peer += blockDim.x) {
        while (get_acquire(pads[rank] + blockIdx.x * ranks + peer) != 1) {}
    }
    __syncthreads();
    for (u32 i = first; i < count; i += step) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += mail[rank][peer * count + i];
        output[i] = sum;
    }
}
