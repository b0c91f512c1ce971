// The few names of ATen that the device code of symmetric memory has.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <cuda_bf16.h>
#define TORCH_CHECK(...)
#define CUDA_KERNEL_ASSERT(condition)
namespace at {
using BFloat16 = __nv_bfloat16;
template <typename T>
__host__ __device__ inline T round_up(T value, T unit) { return (value + unit - 1) / unit * unit; }
}  // namespace at
