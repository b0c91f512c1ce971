// FlashInfer, the two-shot all-reduce's communicator: blocks count themselves by a relaxed atomic,
// the first block polls the count, and then stores the epoch that all blocks have loaded, without
// an order.
// https://github.com/flashinfer-ai/flashinfer/blob/main/include/flashinfer/comm/trtllm_allreduce_fusion.cuh
#include "flags.cuh"

#ifdef BAD
#define COUNT "atom.relaxed.gpu.global.add.u32"
#define POLL "ld.volatile.global.u32"
#else
#define COUNT "atom.acq_rel.gpu.global.add.u32"
#define POLL "ld.acquire.gpu.global.u32"
#endif

// The state is the epoch and the count of blocks.
extern "C" __global__ void all_reduce(u32* const* inputs, u32* const* pads, u32* state, u32* output,
                                      u32 rank, u32 ranks, u32 count) {
    u32 epoch = state[0] + 1;
    meet(pads, 0, rank, ranks, epoch);
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        u32 sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += inputs[peer][i];
        output[i] = sum;
    }
    meet(pads, 1, rank, ranks, epoch);
    if (threadIdx.x == 0) {
        u32 blocks;
        asm volatile(COUNT " %0, [%1], 1;" : "=r"(blocks) : "l"(state + 1) : "memory");
        if (blockIdx.x == 0) {
            do {
                asm volatile(POLL " %0, [%1];" : "=r"(blocks) : "l"(state + 1) : "memory");
            } while (blocks != gridDim.x);
            state[0] = epoch;
            state[1] = 0;
        }
    }
}
