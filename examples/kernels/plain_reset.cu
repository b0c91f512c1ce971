// vLLM and SGLang, the push all-reduces by a sentinel: the receiver resets its mail by a plain store, which nothing orders
// before the push of a peer two calls later.
// https://github.com/vllm-project/vllm/blob/main/csrc/custom_collective_common.cuh
#include "flags.cuh"

#define EMPTY 0x80000000u

extern "C" __global__ void all_reduce(const u32* input, u32* const* mail, u32* calls, u32* output, u32 rank, u32 ranks,
                                      u32 count) {
    u32 call = calls[blockIdx.x], half = (call & 1) * ranks * count;
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) put_relaxed(mail[peer] + half + rank * count + i, input[i]);
        for (u32 peer = 0; peer < ranks; peer++) {
            u32* from = mail[rank] + half + peer * count + i;
            u32 value = EMPTY;
            while (value == EMPTY) value = get_relaxed(from);
#ifdef BAD
            *from = EMPTY;
#else
            put_relaxed(from, EMPTY);
#endif
            sum += value;
        }
        output[i] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) calls[blockIdx.x] = call + 1;
}
