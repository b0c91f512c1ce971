// The types that both interfaces have: results, element types, reduce ops; and memory and streams of this runtime.
#pragma once
#include <cstdint>

using s32 = int32_t;
using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using s64 = int64_t;
using u64 = uint64_t;

// The codes of the documentation's page on results.
enum HcclResult {
    HCCL_SUCCESS = 0,
    HCCL_E_PARA = 1,        // an argument that makes no sense
    HCCL_E_PTR = 2,         // a null pointer
    HCCL_E_MEMORY = 3,      // too little memory
    HCCL_E_INTERNAL = 4,    // see the runtime's message
    HCCL_E_NOT_SUPPORT = 5, // what this engine cannot do
    HCCL_E_NOT_FOUND = 6,   // no such link, stream, memory or executor
    HCCL_E_UNAVAIL = 7,     // a resource that is taken
    HCCL_E_SYSCALL = 8,
    HCCL_E_TIMEOUT = 9,
    HCCL_E_OPEN_FILE_FAILURE = 10,
    HCCL_E_TCP_CONNECT = 11,
    HCCL_E_ROCE_CONNECT = 12,
    HCCL_E_TCP_TRANSFER = 13,
    HCCL_E_ROCE_TRANSFER = 14,
    HCCL_E_RUNTIME = 15,
    HCCL_E_DRV = 16,
    HCCL_E_PROFILING = 17,
    HCCL_E_CCE = 18,
    HCCL_E_NETWORK = 19,
    HCCL_E_AGAIN = 20,
    HCCL_E_REMOTE = 21,
    HCCL_E_SUSPENDING = 22,
};

enum HcclDataType {
    HCCL_DATA_TYPE_INT8 = 0,
    HCCL_DATA_TYPE_INT16 = 1,
    HCCL_DATA_TYPE_INT32 = 2,
    HCCL_DATA_TYPE_FP16 = 3,
    HCCL_DATA_TYPE_FP32 = 4,
    HCCL_DATA_TYPE_INT64 = 5,
    HCCL_DATA_TYPE_UINT64 = 6,
    HCCL_DATA_TYPE_UINT8 = 7,
    HCCL_DATA_TYPE_UINT16 = 8,
    HCCL_DATA_TYPE_UINT32 = 9,
    HCCL_DATA_TYPE_FP64 = 10,
    HCCL_DATA_TYPE_BFP16 = 11,
};

enum HcclReduceOp {
    HCCL_REDUCE_SUM = 0,
    HCCL_REDUCE_PROD = 1,
    HCCL_REDUCE_MAX = 2,
    HCCL_REDUCE_MIN = 3,
};

namespace hccl {

// Bytes of an element; 0 for a type that is not there.
u32 SizeOf(HcclDataType type);

// Bytes of device memory: an address and a size, nothing that is owned.
class DeviceMem {
public:
    DeviceMem() = default;
    DeviceMem(u64 address, u64 size) : address_(address), size_(size) {}
    u64 address() const { return address_; }
    u64 size() const { return size_; }
    DeviceMem range(u64 offset, u64 size) const { return {address_ + offset, size}; }

private:
    u64 address_ = 0;
    u64 size_ = 0;
};

// A queue of tasks that run one after the other, beside those of other streams.
struct Stream {
    u32 rank = 0;
    u32 index = 0; // 0 is the main one
};

} // namespace hccl
