// vllm-project/vllm#45448: a kernel lets its successor begin before it has stored what the
// successor reads.
// https://github.com/vllm-project/vllm/pull/45448
#include "flags.cuh"

extern "C" __global__ void sum(u32* const* inputs, u32* middle, u32 ranks, u32 count) {
#ifdef BAD
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += inputs[peer][i];
        middle[i] = sum;
    }
#ifndef BAD
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

extern "C" __global__ void use(const u32* middle, u32* output, u32 count) {
#ifndef BAD
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        output[i] = middle[i];
    }
}
