// The names of the documented interface for custom communication operators, as far as `emit hcomm` uses them.
//
// Written from the documentation's pages alone (CANN 8.5 and 9.0): no source and no header of the library was read.
// Behind the names stands this folder's runtime, which says of each misuse what it is.
#pragma once
#include <cstddef>

#include "hccl_types.h"

using HcclComm = void*;
using ThreadHandle = uint64_t;
using ChannelHandle = uint64_t;

enum CommEngine {
    COMM_ENGINE_RESERVED = -1,
    COMM_ENGINE_CPU = 0,
    COMM_ENGINE_CPU_TS = 1,
    COMM_ENGINE_AICPU = 2,
    COMM_ENGINE_AICPU_TS = 3,
    COMM_ENGINE_AIV = 4,
    COMM_ENGINE_CCU = 5,
};

enum CommProtocol {
    COMM_PROTOCOL_HCCS = 0,
    COMM_PROTOCOL_ROCE = 1,
    COMM_PROTOCOL_PCIE = 2,
    COMM_PROTOCOL_SIO = 3,
};

enum HcommReduceOp {
    HCOMM_REDUCE_SUM = 0,
    HCOMM_REDUCE_PROD = 1,
    HCOMM_REDUCE_MAX = 2,
    HCOMM_REDUCE_MIN = 3,
    HCOMM_REDUCE_RESERVED = 255,
};

enum HcommDataType {
    HCOMM_DATA_TYPE_INT8 = 0,
    HCOMM_DATA_TYPE_INT16 = 1,
    HCOMM_DATA_TYPE_INT32 = 2,
    HCOMM_DATA_TYPE_FP16 = 3,
    HCOMM_DATA_TYPE_FP32 = 4,
    HCOMM_DATA_TYPE_INT64 = 5,
    HCOMM_DATA_TYPE_UINT64 = 6,
    HCOMM_DATA_TYPE_UINT8 = 7,
    HCOMM_DATA_TYPE_UINT16 = 8,
    HCOMM_DATA_TYPE_UINT32 = 9,
    HCOMM_DATA_TYPE_FP64 = 10,
    HCOMM_DATA_TYPE_BFP16 = 11,
};

struct CommAbiHeader {
    uint32_t version;
    uint32_t magic;
};
struct EndpointDesc {
    CommProtocol protocol;
};
struct HcclChannelDesc {
    CommAbiHeader header;
    uint32_t remoteRank;
    CommProtocol channelProtocol;
    EndpointDesc localEndpoint;
    EndpointDesc remoteEndpoint;
    uint32_t notifyNum;
    void* memHandles;
    uint32_t memHandleNum;
};
struct CommLink {
    CommAbiHeader header;
    struct {
        CommProtocol linkProtocol;
    } linkAttr;
};

// The runtime's part.
using aclError = int;
using aclrtStream = void*;
using aclrtNotify = void*;
using aclrtBinHandle = void*;
using aclrtFuncHandle = void*;
using aclrtArgsHandle = void*;
using aclrtParamHandle = void*;
enum aclrtBinaryLoadOptionType { ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE = 3 };
union aclrtBinaryLoadOptionValue {
    uint32_t isLazyLoad;
    uint32_t magic;
    int32_t cpuKernelMode;
    uint32_t rsv[4];
};
struct aclrtBinaryLoadOption {
    aclrtBinaryLoadOptionType type;
    aclrtBinaryLoadOptionValue value;
};
struct aclrtBinaryLoadOptions {
    aclrtBinaryLoadOption* options;
    size_t numOpt;
};
enum aclrtLaunchKernelAttrId { ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT = 2 };
struct aclrtLaunchKernelAttr {
    aclrtLaunchKernelAttrId id;
    union {
        uint16_t timeout;
    } value;
};
struct aclrtLaunchKernelCfg {
    aclrtLaunchKernelAttr* attrs;
    size_t numAttrs;
};

extern "C" {

// Control plane, on the host.
HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank);
HcclResult HcclGetRankSize(HcclComm comm, uint32_t* ranks);
HcclResult HcclGetCommName(HcclComm comm, char* name);
HcclResult HcclRankGraphGetLayers(HcclComm comm, uint32_t** layers, uint32_t* number);
HcclResult HcclRankGraphGetLinks(HcclComm comm, uint32_t layer, uint32_t source, uint32_t destination, CommLink** links,
                                 uint32_t* number);
HcclResult HcclThreadAcquire(HcclComm comm, CommEngine engine, uint32_t number, uint32_t notifies, ThreadHandle* threads);
HcclResult HcclChannelDescInit(HcclChannelDesc* descriptors, uint32_t number);
HcclResult HcclChannelAcquire(HcclComm comm, CommEngine engine, const HcclChannelDesc* descriptors, uint32_t number,
                              ChannelHandle* channels);
HcclResult HcclGetHcclBuffer(HcclComm comm, void** buffer, uint64_t* bytes);
HcclResult HcclChannelGetHcclBuffer(HcclComm comm, ChannelHandle channel, void** buffer, uint64_t* bytes);
HcclResult HcclEngineCtxCreate(HcclComm comm, const char* tag, CommEngine engine, uint64_t bytes, void** context);
HcclResult HcclEngineCtxGet(HcclComm comm, const char* tag, CommEngine engine, void** context, uint64_t* bytes);
HcclResult HcclEngineCtxCopy(HcclComm comm, CommEngine engine, const char* tag, const void* source, uint64_t bytes,
                             uint64_t offset);

// Data plane: on the host for CPU_TS, in a kernel for AICPU_TS.
int32_t HcommLocalCopyOnThread(ThreadHandle thread, void* dst, const void* src, uint64_t bytes);
int32_t HcommLocalReduceOnThread(ThreadHandle thread, void* dst, const void* src, uint64_t count, HcommDataType type,
                                 HcommReduceOp op);
int32_t HcommThreadNotifyRecordOnThread(ThreadHandle thread, ThreadHandle target, uint32_t notify);
int32_t HcommThreadNotifyWaitOnThread(ThreadHandle thread, uint32_t notify, uint32_t timeout);
int32_t HcommAclrtNotifyRecordOnThread(ThreadHandle thread, uint64_t notify);
int32_t HcommAclrtNotifyWaitOnThread(ThreadHandle thread, uint64_t notify, uint32_t timeout);
int32_t HcommWriteOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src, uint64_t bytes);
int32_t HcommWriteReduceOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src, uint64_t count,
                                 HcommDataType type, HcommReduceOp op);
int32_t HcommReadOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src, uint64_t bytes);
int32_t HcommReadReduceOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src, uint64_t count,
                                HcommDataType type, HcommReduceOp op);
int32_t HcommWriteWithNotifyOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src,
                                     uint64_t bytes, uint32_t notify);
int32_t HcommWriteReduceWithNotifyOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src,
                                           uint64_t count, HcommDataType type, HcommReduceOp op, uint32_t notify);
int32_t HcommChannelNotifyRecordOnThread(ThreadHandle thread, ChannelHandle channel, uint32_t notify);
int32_t HcommChannelNotifyWaitOnThread(ThreadHandle thread, ChannelHandle channel, uint32_t notify, uint32_t timeout);
int32_t HcommBatchModeStart(const char* tag);
int32_t HcommBatchModeEnd(const char* tag);
int32_t HcommAcquireComm(const char* communicator);
int32_t HcommReleaseComm(const char* communicator);

aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag);
aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* id);
aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream);
aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout);
aclError aclrtBinaryLoadFromFile(const char* path, aclrtBinaryLoadOptions* options, aclrtBinHandle* binary);
aclError aclrtBinaryGetFunction(aclrtBinHandle binary, const char* name, aclrtFuncHandle* function);
aclError aclrtKernelArgsInit(aclrtFuncHandle function, aclrtArgsHandle* arguments);
aclError aclrtKernelArgsAppend(aclrtArgsHandle arguments, void* param, size_t bytes, aclrtParamHandle* handle);
aclError aclrtKernelArgsFinalize(aclrtArgsHandle arguments);
aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle function, uint32_t blocks, aclrtStream stream,
                                     aclrtLaunchKernelCfg* config, aclrtArgsHandle arguments, void* reserved);
}
