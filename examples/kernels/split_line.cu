// vLLM, the push all-reduce by lines {data, flag, data, flag}: in PTX, a vector of four words is
// four accesses, and a flag may be seen before its data. A vector of two words of 8 bytes is two.
// https://github.com/vllm-project/vllm/blob/main/csrc/custom_collective_common.cuh
#include "flags.cuh"

__device__ void put(uint4* at, u32 a, u32 b, u32 flag) {
#ifdef BAD
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %2};"
                 ::"l"(at), "r"(a), "r"(flag), "r"(b) : "memory");
#else
    u64 high = (u64)flag << 32;
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};"
                 ::"l"(at), "l"(high | a), "l"(high | b) : "memory");
#endif
}

__device__ uint4 get(const uint4* at) {
    uint4 v;
#ifdef BAD
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at) : "memory");
#else
    u64 a, b;
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(a), "=l"(b) : "l"(at) : "memory");
    v = make_uint4((u32)a, (u32)(a >> 32), (u32)b, (u32)(b >> 32));
#endif
    return v;
}

// A line has two elements.
extern "C" __global__ void all_reduce(const uint2* input, uint4* const* mail, u32* epochs,
                                      uint2* output, u32 rank, u32 ranks, u32 lines) {
    u32 epoch = epochs[blockIdx.x] + 1, half = (epoch & 1) * ranks * lines;
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += gridDim.x * blockDim.x) {
        uint2 own = input[i], sum = make_uint2(0, 0);
        for (u32 peer = 0; peer < ranks; peer++) {
            put(mail[peer] + half + rank * lines + i, own.x, own.y, epoch);
        }
        for (u32 peer = 0; peer < ranks; peer++) {
            uint4 v = make_uint4(0, 0, 0, 0);
            while (v.y != epoch || v.w != epoch) v = get(mail[rank] + half + peer * lines + i);
            sum = make_uint2(sum.x + v.x, sum.y + v.z);
        }
        output[i] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) epochs[blockIdx.x] = epoch;
}
