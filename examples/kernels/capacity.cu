// pytorch/pytorch#191618: the check of a channel multiplies the pad's capacity by the number of
// ranks instead of dividing it, so a signal of a high channel is beyond the pad.
// https://github.com/pytorch/pytorch/issues/191618
#include "flags.cuh"

// The capacity of the pad is one of signals; a refusal is told by the word.
extern "C" __global__ void barrier(u32* const* pads, u32* refused, u32 rank, u32 ranks,
                                   u32 capacity, u32 channel) {
#ifdef BAD
    bool fits = channel < capacity * ranks;
#else
    bool fits = channel < capacity / ranks;
#endif
    if (!fits) {
        if (threadIdx.x == 0) *refused = 1;
        return;
    }
    if (threadIdx.x < ranks) {
        while (cas_release(pads[threadIdx.x] + channel * ranks + rank, 0, 1) != 0) {}
        while (cas_acquire(pads[rank] + channel * ranks + threadIdx.x, 1, 0) != 1) {}
    }
}
