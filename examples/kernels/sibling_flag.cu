// NVIDIA/nccl#2303: two handles count their own calls and share two slots. A flag of 1 that the
// sibling set is taken for a new one.
// https://github.com/NVIDIA/nccl/issues/2303
#include "flags.cuh"

extern "C" __global__ void all_reduce(const u32* input, u32* const* mail, u32* const* pads,
                                      u32* calls, u32* output, u32 rank, u32 ranks, u32 count,
                                      u32 handle) {
#ifdef BAD
    u32* counter = calls + handle * gridDim.x + blockIdx.x;
    u32 call = *counter + 1, flag = 1;
#else
    u32* counter = calls + blockIdx.x; // the calls of both handles
    u32 call = *counter + 1, flag = call;
#endif
    u32 half = call & 1, data = half * ranks * count, pad = (half * gridDim.x + blockIdx.x) * ranks;
    u32 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (u32 peer = 0; peer < ranks; peer++) {
        for (u32 i = first; i < count; i += step) mail[peer][data + rank * count + i] = input[i];
    }
    __syncthreads();
    if (threadIdx.x < ranks) {
        put_release(pads[threadIdx.x] + pad + rank, flag);
        while (get_acquire(pads[rank] + pad + threadIdx.x) != flag) {}
    }
    __syncthreads();
    for (u32 i = first; i < count; i += step) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += mail[rank][data + peer * count + i];
        output[i] = sum;
    }
#ifdef BAD
    if (threadIdx.x < ranks) put_relaxed(pads[rank] + pad + threadIdx.x, 0);
#endif
    if (threadIdx.x == 0) *counter = call;
}
