// vLLM and SGLang, the push all-reduces by a sentinel: the receiver resets its mail by a plain
// store, which nothing orders before the push of a peer two calls later.
// https://github.com/vllm-project/vllm/blob/main/csrc/custom_collective_common.cuh
#include "flags.cuh"

#define EMPTY 0x80000000u

#if defined(BAD) || defined(STRONG)
#define PUT put_relaxed
#define GET get_relaxed
#else
#define PUT put_release
#define GET get_acquire
#endif

extern "C" __global__ void all_reduce(const u32* input, u32* const* mail, u32* calls, u32* output,
                                      u32 rank, u32 ranks, u32 count) {
    u32 call = calls[blockIdx.x], half = (call & 1) * ranks * count;
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) {
            PUT(mail[peer] + half + rank * count + i, input[i]);
        }
        for (u32 peer = 0; peer < ranks; peer++) {
            u32* from = mail[rank] + half + peer * count + i;
            u32 value = EMPTY;
            while (value == EMPTY) value = GET(from);
#ifdef STRONG
            put_relaxed(from, EMPTY);
#else
            *from = EMPTY;
#endif
            sum += value;
        }
        output[i] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) calls[blockIdx.x] = call + 1;
}
