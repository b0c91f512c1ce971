// The kernels of FlashInfer's copy of vLLM's file, for one type and one number of ranks.
#include <stdexcept>
#include <string>
#include <flashinfer/comm/vllm_custom_all_reduce.cuh>
static_assert(sizeof(vllm::Signal) == 3456, "the harnesses lay out the signals");
template __global__ void vllm::cross_device_reduce_1stage<TYPE, RANKS>(
    vllm::RankData*, vllm::RankSignals, vllm::Signal*, TYPE*, int, int);
template __global__ void vllm::cross_device_reduce_2stage<TYPE, RANKS>(
    vllm::RankData*, vllm::RankSignals, vllm::Signal*, TYPE*, int, int);
