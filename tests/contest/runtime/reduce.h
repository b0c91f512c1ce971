// dst = src op dst: the arithmetic that the host's kernels have, bit for bit, but for which NaN a NaN is.
#pragma once
#include "hccl_types.h"

namespace hccl {

// `bytes` bytes of elements of `type`; a rest that is no whole element is left alone.
void ReduceBytes(HcclDataType type, HcclReduceOp op, u8* dst, const u8* src, u64 bytes);

} // namespace hccl
