// The kernels that vLLM's host code launches, for one type and one number of ranks.
#include "custom_all_reduce.cuh"
static_assert(sizeof(vllm::Signal) == 4864, "the harnesses lay out the signals");
template __global__ void vllm::cross_device_reduce_1stage<TYPE, RANKS>(
    vllm::RankData*, vllm::RankSignals, vllm::Signal*, TYPE*, int, int);
template __global__ void vllm::cross_device_reduce_2stage<TYPE, RANKS>(
    vllm::RankData*, vllm::RankSignals, vllm::Signal*, TYPE*, int, int);
