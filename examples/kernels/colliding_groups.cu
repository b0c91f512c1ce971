// pytorch/pytorch#192581: a slot is named by the rank within its group. Groups {0, 1, 2} and {0, 2}
// share a pad, where the second rank of each has the same slot.
// https://github.com/pytorch/pytorch/issues/192581
#include "flags.cuh"

// The group has every step-th rank.
extern "C" __global__ void all_reduce(const u32* input, u32* const* shares, u32* const* pads,
                                      u32* output, u32 rank, u32 ranks, u32 step, u32 count) {
    u32 size = (ranks + step - 1) / step, own = rank / step;
    if (rank % step != 0) return;
#ifdef BAD
    u32 pad = blockIdx.x * ranks;
#else
    u32 pad = ((step - 1) * gridDim.x + blockIdx.x) * ranks; // a pad for each group
#endif
    u32 first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    for (u32 i = first; i < count; i += stride) shares[rank][i] = input[i];
    __syncthreads();
    if (threadIdx.x < size) {
        while (cas_release(pads[threadIdx.x * step] + pad + own, 0, 1) != 0) {}
        while (cas_acquire(pads[rank] + pad + threadIdx.x, 1, 0) != 1) {}
    }
    __syncthreads();
    for (u32 i = first; i < count; i += stride) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer += step) sum += shares[peer][i];
        output[i] = sum;
    }
}
