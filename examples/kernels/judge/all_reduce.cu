// An all-reduce by one kernel: every rank shares its input, and sums what all share. Each macro
// makes one mistake of the field; without one of them no case of the judge has a finding.
#include "../flags.cuh"

#ifdef RELAXED  // the flags order nothing
#define PUT put_relaxed
#define GET get_relaxed
#else
#define PUT put_release
#define GET get_acquire
#endif
#ifdef DEADLINE  // who has polled for so long ends the communicator
#define TRIES 28
#else
#define TRIES 0
#endif

extern "C" __global__ void all_reduce(const float* input, float* const* shares, u32* const* pads,
                                      u32* epochs, float* output, u32 rank, u32 ranks, u32 count) {
    u32 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    u32 epoch = epochs[blockIdx.x] + 1;
    if (epoch == 0) return;
#ifdef CONSTANT_FLAG  // the flags of the call before are still there
    epoch = 1;
#endif
#ifdef WHOLE_VECTORS  // the tail is left out
    count = count / 4 * 4;
#endif
    for (u32 i = first; i < count; i += step) shares[rank][i] = input[i];
    __syncthreads();
    u32 tries = 0;
    if (threadIdx.x < ranks) {
        PUT(pads[threadIdx.x] + blockIdx.x * ranks + rank, epoch);
        const u32* flag = pads[rank] + blockIdx.x * ranks + threadIdx.x;
        while ((int)(GET(flag) - epoch) < 0 && ++tries != TRIES) {}
    }
    if (__syncthreads_or(TRIES && tries == TRIES)) {
        if (threadIdx.x == 0) epochs[blockIdx.x] = ~0u;
        return;
    }
    for (u32 i = first; i < count; i += step) {
        float sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += shares[peer][i];
        output[i] = sum;
    }
    meet(pads, 1, rank, ranks, epoch);
    if (threadIdx.x == 0) epochs[blockIdx.x] = epoch;
}
