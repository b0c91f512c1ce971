// NVIDIA/TensorRT-LLM#6237: of three buffers, each call clears the one of the call before, as far
// as its own size goes.
// https://github.com/NVIDIA/TensorRT-LLM/pull/6237
#include "flags.cuh"

#define EMPTY 0x80000000u

// The calls so far, and the size of the last one, are in device memory. The grid has one block.
extern "C" __global__ void all_reduce(const u32* input, u32* const* mail, u32* state, u32* output,
                                      u32 rank, u32 ranks, u32 count, u32 most) {
    u32 call = state[0], size = count;
#ifndef BAD
    size = state[1];
#endif
    u32* own = mail[rank] + call % 3 * ranks * most;
    u32* before = mail[rank] + (call + 2) % 3 * ranks * most;
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) {
        for (u32 peer = 0; peer < ranks; peer++) {
            put_release(mail[peer] + call % 3 * ranks * most + rank * most + i, input[i]);
        }
    }
    for (u32 i = threadIdx.x; i < size; i += blockDim.x) {
        for (u32 peer = 0; peer < ranks; peer++) before[peer * most + i] = EMPTY;
    }
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) {
            u32 value = EMPTY;
            while (value == EMPTY) value = get_acquire(own + peer * most + i);
            sum += value;
        }
        output[i] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) state[0] = call + 1, state[1] = count;
}
