// The names that a contest-style executor is written against, as far as `emit hccl-cpp` uses them.
//
// A design of this project's own: the life cycle and the names of its methods are public, what stands behind them
// here is not anybody's code but this folder's. An exported executor includes this header alone; runtime.cpp runs it
// on threads of a CPU, or dry, on addresses that hold nothing. C++14, as the runtimes that executors are built into.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hccl_types.h"

// What enqueues tasks: the runtime that the executor runs in.
using HcclDispatcher = void*;

#define CHK_RET(call)                                                                                                  \
    do {                                                                                                               \
        const HcclResult checked = (call);                                                                             \
        if (checked != HCCL_SUCCESS) {                                                                                 \
            return checked;                                                                                            \
        }                                                                                                              \
    } while (0)

namespace hccl {

// A one-shot flag between two streams of a rank: a post before the wait that takes the last one is lost.
class LocalNotify {
public:
    explicit LocalNotify(u64 flag) : flag_(flag) {}
    static HcclResult Post(Stream& stream, HcclDispatcher dispatcher, const std::shared_ptr<LocalNotify>& notify);
    static HcclResult Wait(Stream& stream, HcclDispatcher dispatcher, const std::shared_ptr<LocalNotify>& notify);

private:
    u64 flag_;
};

// The memory of a rank that its peers may reach through a link: one bit each.
enum class UserMemType : u32 {
    INPUT_MEM = 1,   // CCL_IN
    OUTPUT_MEM = 2,  // CCL_OUT
    SCRATCH_MEM = 4, // scratch
};

// One end of a link to another rank. It has two one-shot flags each way, whatever stream uses them.
class Transport {
public:
    Transport(HcclDispatcher dispatcher, u32 self, u32 peer, u32 level)
        : dispatcher_(dispatcher), self_(self), peer_(peer), level_(level) {}
    HcclResult TxAck(Stream& stream);
    HcclResult RxAck(Stream& stream);
    HcclResult TxDataSignal(Stream& stream);
    HcclResult RxDataSignal(Stream& stream);
    // The peer's memory of that kind, if CalcCommInfo had it exposed.
    HcclResult GetRemoteMem(UserMemType type, DeviceMem& memory) const;
    u32 GetRemoteRank() const { return peer_; }

private:
    HcclDispatcher dispatcher_;
    u32 self_;
    u32 peer_;
    u32 level_;
};
using LINK = std::shared_ptr<Transport>;

// Copies `src` to `dst`, of the same size; either may be a peer's.
HcclResult HcclD2DMemcpyAsync(HcclDispatcher dispatcher, const DeviceMem& dst, const DeviceMem& src, Stream& stream);

// How a reduction is done.
enum class ReduceAttr {
    INLINE, // inside the copy engine, on its way: few types and ops, but either operand may be a peer's
    LOCAL,  // by the rank's own cores: every type and op, on memory of this rank alone
};

// dst = src op dst, for `count` elements.
HcclResult HcclReduceAsync(HcclDispatcher dispatcher, const DeviceMem& src, u64 count, HcclDataType type,
                           HcclReduceOp op, Stream& stream, const DeviceMem& dst, ReduceAttr attr);

// What a call asks for.
struct OpParam {
    std::string tag;
    DeviceMem input;  // the user's
    DeviceMem output; // the user's
    u64 count = 0;    // elements a unit
    HcclDataType dataType = HCCL_DATA_TYPE_FP32;
    HcclReduceOp reduceType = HCCL_REDUCE_SUM;
};

// What one KernelRun works on.
struct ExecMem {
    u64 count = 0;        // elements a unit of this loop
    DeviceMem inputMem;   // CCL_IN
    DeviceMem outputMem;  // CCL_OUT
    DeviceMem scratchMem; // besides the two
    u64 inputPtr = 0;     // the user's, at this loop's first element
    u64 outputPtr = 0;
};

// The links of a level: to whom, and which memory they show (bits of UserMemType).
struct LevelRequest {
    std::vector<u32> peers;
    u32 exposed = 0;
};

// What an executor needs, and what it is given.
struct AlgResourceRequest {
    u64 scratchMemSize = 0;
    u32 streamNum = 0; // slaves
    u32 notifyNum = 0; // between main and slaves
    std::vector<LevelRequest> opTransport;
};
struct AlgResourceResponse {
    DeviceMem cclInput;
    DeviceMem cclOutput;
    DeviceMem scratch;
    Stream mainStream;
    std::vector<Stream> slaveStreams;
    std::vector<std::shared_ptr<LocalNotify>> notifies;
    std::vector<std::map<u32, LINK>> levels; // by peer
};

// Who an executor works for.
struct Site {
    HcclDispatcher dispatcher = nullptr;
    u32 userRank = 0;
    u32 userRankSize = 0;
    u64 cclBufferSize = 0; // of each of the two
};

// The life of an executor: constructor flags, the Calc* methods once a tag, KernelRun once a loop.
class CollExecutorBase {
public:
    explicit CollExecutorBase(const Site& site) : site_(site) {}
    virtual ~CollExecutorBase() = default;

    // Everything the Calc* methods say.
    HcclResult CalcResRequest(AlgResourceRequest& request);
    // Enqueues a call: KernelRun for min(left, max) elements at a time, the user's memory advancing.
    HcclResult Orchestrate(const OpParam& param, AlgResourceResponse& resource);

protected:
    virtual HcclResult CalcScratchMemSize(u64& scratchMemSize) = 0;
    virtual HcclResult CalcStreamNum(u32& streamNum) = 0;
    virtual HcclResult CalcNotifyNum(u32 streamNum, u32& notifyNum) = 0;
    virtual HcclResult CalcCommInfo(std::vector<LevelRequest>& opTransport) = 0;
    virtual u64 CalcLoopMaxCount(u64 cclBuffSize, u32 unitSize) = 0;
    virtual HcclResult KernelRun(const OpParam& param, ExecMem& execMem) = 0;

    Site site_;
    AlgResourceResponse* algRes_ = nullptr;
    // The executor moves the user's memory itself; else the framework copies in and out, one unit of each.
    bool DMAReduceFlag_ = false;
    // The CCL windows that KernelRun sees end where the loop's elements do.
    bool CCLMemSlice_ = true;
};

// Executors by name.
class CollExecRegistry {
public:
    using Creator = std::function<std::unique_ptr<CollExecutorBase>(const Site&)>;
    static CollExecRegistry& Instance();
    bool Register(const std::string& name, Creator creator);
    // Null if there is none.
    std::unique_ptr<CollExecutorBase> Get(const std::string& name, const Site& site) const;
    std::vector<std::string> Names() const;

private:
    std::map<std::string, Creator> creators_;
};

#define REGISTER_EXEC(NAME, TAG, CLASS)                                                                                \
    static const bool g_registered_##TAG = hccl::CollExecRegistry::Instance().Register(                               \
        NAME, [](const hccl::Site& site) { return std::unique_ptr<hccl::CollExecutorBase>(new CLASS(site)); })

} // namespace hccl
