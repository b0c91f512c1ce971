// Vectors as ATen has them: weak loads and stores of 4, 8 and 16 bytes.
#pragma once
#include <ATen/ATen.h>
namespace at::native::memory {
template <class...>
inline constexpr bool dependent_false = false;
template <int Bytes>
union Vec;
template <>
union Vec<4> { uint16_t u16[2]; uint32_t u32, as_scalar; float f32; };
template <>
union Vec<8> { uint16_t u16[4]; uint32_t u32[2]; uint64_t u64, as_scalar; float f32[2]; };
template <>
union alignas(16) Vec<16> { uint16_t u16[8]; uint32_t u32[4]; uint64_t u64[2]; uint4 as_scalar; float f32[4]; };
inline size_t get_alignment(size_t bytes) { return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 2; }
template <int Bytes, typename T>
__device__ __forceinline__ Vec<Bytes> ld_vec(const T* from) {
  Vec<Bytes> vec;
  vec.as_scalar = *reinterpret_cast<const decltype(vec.as_scalar)*>(from);
  return vec;
}
template <int Bytes, typename T>
__device__ __forceinline__ void st_vec(T* to, const Vec<Bytes>& vec) {
  *reinterpret_cast<decltype(Vec<Bytes>::as_scalar)*>(to) = vec.as_scalar;
}
}  // namespace at::native::memory
