// sgl-project/sglang#30209: a poll of data that has no end. A rank that left out a call hangs all
// others.
// https://github.com/sgl-project/sglang/issues/30209
#include "flags.cuh"

#define EMPTY 0x80000000u
#define MOST_POLLS 64

extern "C" __global__ void all_reduce(const u32* input, u32* const* mail, u32* output, u32* failed,
                                      u32 rank, u32 ranks, u32 count) {
    u32 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (u32 i = first; i < count; i += step) {
        for (u32 peer = 0; peer < ranks; peer++) {
            put_relaxed(mail[peer] + rank * count + i, input[i]);
        }
    }
    for (u32 i = first; i < count; i += step) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) {
            u32 value = EMPTY;
#ifdef BAD
            while (value == EMPTY) value = get_relaxed(mail[rank] + peer * count + i);
#else
            for (u32 poll = 0; value == EMPTY && poll < MOST_POLLS; poll++) {
                value = get_relaxed(mail[rank] + peer * count + i);
            }
            if (value == EMPTY) put_relaxed(failed, peer + 1); // the host ends the job
#endif
            sum += value;
        }
        output[i] = sum;
    }
}
