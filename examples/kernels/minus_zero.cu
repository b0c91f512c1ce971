// lightseekorg/tokenspeed#1383: an empty slot is -0.0, and a result of -0.0 is sent as it is. The
// receiver waits for ever.
// https://github.com/lightseekorg/tokenspeed/pull/1383
#include "flags.cuh"

#define EMPTY 0x80000000u

extern "C" __global__ void all_reduce(const float* input, u32* const* mail, float* output, u32 rank,
                                      u32 ranks, u32 count) {
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        u32 own = __float_as_uint(input[i]);
#ifndef BAD
        if (own == EMPTY) own = 0;
#endif
        for (u32 peer = 0; peer < ranks; peer++) put_relaxed(mail[peer] + rank * count + i, own);
        float sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) {
            u32 value = EMPTY;
            while (value == EMPTY) value = get_relaxed(mail[rank] + peer * count + i);
            sum += __uint_as_float(value);
        }
        output[i] = sum;
    }
}
