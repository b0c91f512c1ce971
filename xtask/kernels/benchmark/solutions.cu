// The device code of a solution, and torch's barrier of a channel, which solutions launch between their kernels.
#include <cstdint>
#if defined(ALL_GATHER_GEMINI)
#include "all_gather_gemini.cuh"
#elif defined(ALL_GATHER_CLAUDE)
#include "all_gather_claude.cuh"
#elif defined(ALL_GATHER_GPT)
#include "all_gather_gpt.cuh"
#elif defined(ALL_TO_ALL_GEMINI)
#include "all_to_all_gemini.cuh"
#elif defined(ALL_TO_ALL_CLAUDE)
#include "all_to_all_claude.cuh"
#elif defined(REDUCE_SCATTER_GEMINI)
#include <cuda_bf16.h>
#include "reduce_scatter_gemini.cuh"
#else
#include "all_reduce_gemini.cuh"
#endif

__device__ void exchange(unsigned* at, unsigned from, unsigned to, bool is_release) {
  unsigned old;
  do {
    if (is_release) {
      asm volatile("atom.global.release.sys.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(at), "r"(from), "r"(to) : "memory");
    } else {
      asm volatile("atom.global.acquire.sys.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(at), "r"(from), "r"(to) : "memory");
    }
  } while (old != from);
}

extern "C" __global__ void barrier(unsigned** pads, int channel, int rank, int ranks) {
  int peer = threadIdx.x;
  if (peer >= ranks || peer == rank) return;
  exchange(pads[peer] + ranks * channel + rank, 0, 1, true);
  exchange(pads[rank] + ranks * channel + peer, 1, 0, false);
}
