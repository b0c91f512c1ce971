// ROCm/rccl#1556, NVIDIA/FasterTransformer#480: a count that is no multiple of the vectors' four
// elements. Rounded up, the last vector is beyond the buffer. Rounded down, the tail is never
// written.
// https://github.com/ROCm/rccl/pull/1556
#include "flags.cuh"

extern "C" __global__ void all_reduce(u32* const* inputs, u32* output, u32 ranks, u32 count) {
    u32 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
#ifdef ROUNDED_UP
    u32 vectors = (count + 3) / 4;
#else
    u32 vectors = count / 4;
#endif
    for (u32 i = first; i < vectors; i += step) {
        uint4 sum = make_uint4(0, 0, 0, 0);
        for (u32 peer = 0; peer < ranks; peer++) {
            uint4 v = ((const uint4*)inputs[peer])[i];
            sum = make_uint4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
        }
        ((uint4*)output)[i] = sum;
    }
#ifdef SCALAR_TAIL
    for (u32 i = vectors * 4 + first; i < count; i += step) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += inputs[peer][i];
        output[i] = sum;
    }
#endif
}
