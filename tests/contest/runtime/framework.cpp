// The framework's side of an executor's life: resources asked for, the loop over CCL buffers, executors by name. And
// the calls that an executor makes.
#include <algorithm>
#include <iostream>

#include "door.h"
#include "hccl_stub.h"

namespace hccl {
namespace {

std::string Name(u32 rank) { return "rank " + std::to_string(rank); }

class Framework : public Door {
public:
    Framework(World& world, const Words& words) : world(world), words_(words), ranks_(world.nranks()) {}
    HcclResult Open(u32 rank, bool tells) override;
    HcclResult Call(u32 rank, const UserCall& call) override;
    // Gives `rank` what it asked for.
    HcclResult Provide(u32 rank, const AlgResourceRequest& request, AlgResourceResponse& response);
    // The flag from one rank to another, in a level: 0 TxAck, 1 TxDataSignal.
    u64 LinkFlag(u32 from, u32 to, u32 level, u32 kind);
    HcclResult RemoteMem(u32 self, u32 peer, u32 level, UserMemType type, DeviceMem& memory);

    World& world;

private:
    struct Rank {
        std::unique_ptr<CollExecutorBase> executor;
        AlgResourceResponse resource;
    };
    DeviceMem Show(u32 rank, u64 bytes, const std::string& name, UserMemType type) {
        const u32 bit = static_cast<u32>(type);
        return shown_[{rank, bit}] = world.Allocate(rank, bytes, name, bit);
    }

    Words words_;
    std::vector<Rank> ranks_;
    std::map<std::pair<u32, u32>, DeviceMem> shown_;     // by rank and type
    std::map<std::pair<u32, u32>, LevelRequest> levels_; // by rank and level
    std::map<std::vector<u32>, u64> linkFlags_;
};

Framework& Of(HcclDispatcher dispatcher) { return *static_cast<Framework*>(dispatcher); }

HcclResult Framework::Open(u32 rank, bool tells) {
    Rank& one = ranks_[rank];
    const Site site = {this, rank, world.nranks(), words_.ccl};
    one.executor = CollExecRegistry::Instance().Get(words_.executor, site);
    one.resource.cclInput = Show(rank, words_.ccl, "CCL_IN", UserMemType::INPUT_MEM);
    one.resource.cclOutput = Show(rank, words_.ccl, "CCL_OUT", UserMemType::OUTPUT_MEM);
    AlgResourceRequest request;
    CHK_RET(one.executor->CalcResRequest(request));
    CHK_RET(Provide(rank, request, one.resource));
    if (tells) {
        std::cout << "rank " << rank << " scratch " << request.scratchMemSize << " slaves " << request.streamNum
                  << " notifies " << request.notifyNum << " levels " << request.opTransport.size() << "\n";
    }
    return HCCL_SUCCESS;
}

HcclResult Framework::Call(u32 rank, const UserCall& call) {
    OpParam param;
    param.tag = words_.executor;
    param.input = call.input;
    param.output = call.output;
    param.count = call.count;
    param.dataType = call.type;
    param.reduceType = call.op;
    return ranks_[rank].executor->Orchestrate(param, ranks_[rank].resource);
}

HcclResult Framework::Provide(u32 rank, const AlgResourceRequest& request, AlgResourceResponse& response) {
    response.mainStream.rank = rank;
    for (u32 i = 1; i <= request.streamNum; ++i) {
        Stream slave;
        slave.rank = rank;
        slave.index = i;
        response.slaveStreams.push_back(slave);
    }
    for (u32 i = 0; i < request.notifyNum; ++i) {
        const u64 flag = world.NewFlag("notify " + std::to_string(i));
        response.notifies.push_back(std::make_shared<LocalNotify>(flag));
    }
    response.scratch = Show(rank, request.scratchMemSize, "scratch", UserMemType::SCRATCH_MEM);
    for (u32 level = 0; level < request.opTransport.size(); ++level) {
        std::map<u32, LINK> links;
        for (const u32 peer : request.opTransport[level].peers) {
            if (peer >= world.nranks() || peer == rank) {
                return world.Fail(HCCL_E_PARA, Name(rank) + " asks for a link to rank " + std::to_string(peer));
            }
            if (world.IsDead(rank, peer)) {
                return world.Fail(HCCL_E_NOT_FOUND, Name(rank) + " asks for a link to rank " + std::to_string(peer) +
                                                  ", and that cable is cut");
            }
            links[peer] = std::make_shared<Transport>(this, rank, peer, level);
        }
        levels_[{rank, level}] = request.opTransport[level];
        response.levels.push_back(links);
    }
    return HCCL_SUCCESS;
}

u64 Framework::LinkFlag(u32 from, u32 to, u32 level, u32 kind) {
    const std::vector<u32> key = {from, to, level, kind};
    if (linkFlags_.count(key) == 0) {
        const std::string signal = kind == 0 ? "TxAck" : "TxDataSignal";
        linkFlags_[key] = world.NewFlag(signal + " of " + Name(from) + " to " + Name(to));
    }
    return linkFlags_[key];
}

HcclResult Framework::RemoteMem(u32 self, u32 peer, u32 level, UserMemType type, DeviceMem& memory) {
    const u32 bit = static_cast<u32>(type);
    const auto request = levels_.find({peer, level});
    if (request == levels_.end() || (request->second.exposed & bit) == 0) {
        return world.Fail(HCCL_E_NOT_FOUND, Name(self) + " asks for memory of rank " + std::to_string(peer) +
                                          " that its links do not show");
    }
    memory = shown_[{peer, bit}];
    return HCCL_SUCCESS;
}

} // namespace

std::unique_ptr<Door> MakeDoor(World& world, const Words& words) {
    const Site site = {nullptr, 0, world.nranks(), words.ccl};
    const bool known = CollExecRegistry::Instance().Get(words.executor, site) != nullptr;
    return std::unique_ptr<Door>(known ? new Framework(world, words) : nullptr);
}

std::string KnownExecutors() {
    std::string known;
    for (const std::string& name : CollExecRegistry::Instance().Names()) {
        known += " " + name;
    }
    return known;
}

HcclResult CollExecutorBase::CalcResRequest(AlgResourceRequest& request) {
    CHK_RET(CalcScratchMemSize(request.scratchMemSize));
    CHK_RET(CalcStreamNum(request.streamNum));
    CHK_RET(CalcNotifyNum(request.streamNum, request.notifyNum));
    return CalcCommInfo(request.opTransport);
}

HcclResult CollExecutorBase::Orchestrate(const OpParam& param, AlgResourceResponse& resource) {
    World& world = Of(site_.dispatcher).world;
    algRes_ = &resource;
    const u64 unit = SizeOf(param.dataType);
    const u64 most = CalcLoopMaxCount(site_.cclBufferSize, u32(unit));
    if (most == 0) {
        return world.Fail(HCCL_E_PARA, "the CCL buffers are too small for one element");
    }
    Stream& stream = resource.mainStream;
    for (u64 done = 0; done < param.count;) {
        ExecMem mem;
        mem.count = std::min(param.count - done, most);
        mem.inputMem = resource.cclInput;
        mem.outputMem = resource.cclOutput;
        mem.scratchMem = resource.scratch;
        mem.inputPtr = param.input.address() + done * unit;
        mem.outputPtr = param.output.address() + done * unit;
        const u64 stride = param.count * unit, bytes = mem.count * unit;
        const u64 inputs = param.input.size() / stride, outputs = param.output.size() / stride;
        if (CCLMemSlice_) {
            mem.inputMem = mem.inputMem.range(0, std::min(mem.inputMem.size(), inputs * bytes));
            mem.outputMem = mem.outputMem.range(0, std::min(mem.outputMem.size(), outputs * bytes));
        }
        for (u64 i = 0; i < inputs && !DMAReduceFlag_; ++i) {
            const DeviceMem user(mem.inputPtr + i * stride, bytes);
            CHK_RET(HcclD2DMemcpyAsync(site_.dispatcher, resource.cclInput.range(i * bytes, bytes), user, stream));
        }
        CHK_RET(KernelRun(param, mem));
        for (u64 i = 0; i < outputs && !DMAReduceFlag_; ++i) {
            const DeviceMem user(mem.outputPtr + i * stride, bytes);
            CHK_RET(HcclD2DMemcpyAsync(site_.dispatcher, user, resource.cclOutput.range(i * bytes, bytes), stream));
        }
        done += mem.count;
    }
    return HCCL_SUCCESS;
}

CollExecRegistry& CollExecRegistry::Instance() {
    static CollExecRegistry registry;
    return registry;
}

bool CollExecRegistry::Register(const std::string& name, Creator creator) {
    return creators_.emplace(name, std::move(creator)).second;
}

std::unique_ptr<CollExecutorBase> CollExecRegistry::Get(const std::string& name, const Site& site) const {
    const auto found = creators_.find(name);
    return found == creators_.end() ? nullptr : found->second(site);
}

std::vector<std::string> CollExecRegistry::Names() const {
    std::vector<std::string> names;
    for (const auto& entry : creators_) {
        names.push_back(entry.first);
    }
    return names;
}

// ---- what executors call -------------------------------------------------------------------------------------------

static HcclResult Signal(HcclDispatcher dispatcher, const Stream& stream, Task::Kind kind, u64 flag) {
    Task task;
    task.kind = kind;
    task.flag = flag;
    return Of(dispatcher).world.Enqueue(stream, task);
}

HcclResult LocalNotify::Post(Stream& stream, HcclDispatcher dispatcher, const std::shared_ptr<LocalNotify>& notify) {
    return Signal(dispatcher, stream, Task::Kind::POST, notify->flag_);
}

HcclResult LocalNotify::Wait(Stream& stream, HcclDispatcher dispatcher, const std::shared_ptr<LocalNotify>& notify) {
    return Signal(dispatcher, stream, Task::Kind::WAIT, notify->flag_);
}

HcclResult Transport::TxAck(Stream& stream) {
    return Signal(dispatcher_, stream, Task::Kind::POST, Of(dispatcher_).LinkFlag(self_, peer_, level_, 0));
}

HcclResult Transport::RxAck(Stream& stream) {
    return Signal(dispatcher_, stream, Task::Kind::WAIT, Of(dispatcher_).LinkFlag(peer_, self_, level_, 0));
}

HcclResult Transport::TxDataSignal(Stream& stream) {
    return Signal(dispatcher_, stream, Task::Kind::POST, Of(dispatcher_).LinkFlag(self_, peer_, level_, 1));
}

HcclResult Transport::RxDataSignal(Stream& stream) {
    return Signal(dispatcher_, stream, Task::Kind::WAIT, Of(dispatcher_).LinkFlag(peer_, self_, level_, 1));
}

HcclResult Transport::GetRemoteMem(UserMemType type, DeviceMem& memory) const {
    return Of(dispatcher_).RemoteMem(self_, peer_, level_, type, memory);
}

HcclResult HcclD2DMemcpyAsync(HcclDispatcher dispatcher, const DeviceMem& dst, const DeviceMem& src, Stream& stream) {
    if (dst.size() != src.size()) {
        return Of(dispatcher).world.Fail(HCCL_E_PARA, "a copy between memory of different sizes");
    }
    Task task;
    task.kind = Task::Kind::COPY;
    task.dst = dst.address();
    task.src = src.address();
    task.bytes = src.size();
    return Of(dispatcher).world.Enqueue(stream, task);
}

HcclResult HcclReduceAsync(HcclDispatcher dispatcher, const DeviceMem& src, u64 count, HcclDataType type,
                           HcclReduceOp op, Stream& stream, const DeviceMem& dst, ReduceAttr attr) {
    World& world = Of(dispatcher).world;
    const bool wide = type == HCCL_DATA_TYPE_INT64 || type == HCCL_DATA_TYPE_UINT64 || type == HCCL_DATA_TYPE_FP64;
    const bool odd = type == HCCL_DATA_TYPE_UINT8 || type == HCCL_DATA_TYPE_UINT16 || type == HCCL_DATA_TYPE_UINT32;
    if (attr == ReduceAttr::INLINE && (op == HCCL_REDUCE_PROD || wide || odd)) {
        return world.Fail(HCCL_E_NOT_SUPPORT, "the copy engine does not reduce that type or op");
    }
    Task task;
    task.kind = Task::Kind::REDUCE;
    task.dst = dst.address();
    task.src = src.address();
    task.bytes = count * SizeOf(type);
    task.type = type;
    task.op = op;
    if (task.bytes > dst.size() || task.bytes > src.size()) {
        return world.Fail(HCCL_E_PARA, "a reduction of more elements than its memory holds");
    }
    if (attr == ReduceAttr::LOCAL && !(world.IsLocal(stream, task.dst, task.bytes) &&
                                       world.IsLocal(stream, task.src, task.bytes))) {
        return world.Fail(HCCL_E_PARA, "a rank's cores reduce memory of this rank alone");
    }
    return world.Enqueue(stream, task);
}

} // namespace hccl
