// One interface, as the driver of a program reaches it.
#pragma once
#include "runtime.h"

namespace hccl {

// What a rank calls for.
struct UserCall {
    DeviceMem input;
    DeviceMem output;
    u64 count = 0; // elements a unit
    HcclDataType type = HCCL_DATA_TYPE_FP32;
    HcclReduceOp op = HCCL_REDUCE_SUM;
};

// The words of the command line that an interface reads.
struct Words {
    std::string executor;
    std::string profile;
    u64 ccl = 0; // bytes of a CCL buffer, or of half an HCCL buffer
};

class Door {
public:
    virtual ~Door() = default;
    // Makes the resources of a rank; where `tells`, prints them.
    virtual HcclResult Open(u32 rank, bool tells) = 0;
    // Enqueues a call of a rank.
    virtual HcclResult Call(u32 rank, const UserCall& call) = 0;
    // Says what the calls left open.
    virtual HcclResult Close() { return HCCL_SUCCESS; }
};

// The door of the interface that this program was linked with. Null where it has no such executor.
std::unique_ptr<Door> MakeDoor(World& world, const Words& words);
// What a user may name, for an error.
std::string KnownExecutors();

} // namespace hccl
