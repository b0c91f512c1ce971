// A review of NVIDIA/TensorRT-LLM#8018 feared it: the number of a block in a grid of two axes, with
// the axes mixed up. Two blocks have one number, and one number has no block, whose part of the
// mail is never cleared.
// https://github.com/NVIDIA/TensorRT-LLM/pull/8018
#include "flags.cuh"

#define EMPTY 0x80000000u

extern "C" __global__ void all_reduce(const u32* input, u32* const* mail, u32* calls, u32* output,
                                      u32 rank, u32 ranks, u32 count) {
    u32 block = blockIdx.y * gridDim.x + blockIdx.x, blocks = gridDim.x * gridDim.y;
    u32 call = calls[block], part = count / blocks;
    u32* own = mail[rank] + call % 3 * ranks * count;
    for (u32 i = threadIdx.x; i < part; i += blockDim.x) {
        u32 at = block * part + i;
        for (u32 peer = 0; peer < ranks; peer++) {
            put_release(mail[peer] + (call % 3 * ranks + rank) * count + at, input[at]);
        }
    }
#ifdef BAD
    u32 cleared = blockIdx.x * gridDim.x + blockIdx.y;
#else
    u32 cleared = block;
#endif
    u32* before = mail[rank] + (call + 2) % 3 * ranks * count;
    for (u32 i = threadIdx.x; i < part; i += blockDim.x) {
        for (u32 peer = 0; peer < ranks; peer++) {
            put_relaxed(before + peer * count + cleared * part + i, EMPTY);
        }
    }
    for (u32 i = threadIdx.x; i < part; i += blockDim.x) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) {
            u32 value = EMPTY;
            while (value == EMPTY) value = get_acquire(own + peer * count + block * part + i);
            sum += value;
        }
        output[block * part + i] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) calls[block] = call + 1;
}
