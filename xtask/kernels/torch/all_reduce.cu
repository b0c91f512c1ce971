// The kernels of symmetric memory, without the host code around them, for f32 and one number of ranks.
#include <torch/csrc/distributed/c10d/symm_mem/CUDASymmetricMemory-inl.cuh>
using namespace c10d::symmetric_memory;
constexpr size_t two_shot_all_reduce_max_num_threads = 1024;
#include "one_shot.cuh"
#include "two_shot.cuh"
template __global__ void one_shot_all_reduce_kernel<float, 16, RANKS>(
    float**, float*, float*, size_t, size_t, uint32_t**, size_t, size_t);
template __global__ void two_shot_all_reduce_kernel<float, 16, RANKS>(
    float**, float*, size_t, size_t, uint32_t**, size_t, size_t, size_t);
template __global__ void two_shot_all_reduce_kernel_inplace<float, 16, RANKS>(
    float**, size_t, size_t, uint32_t**, size_t, size_t);
