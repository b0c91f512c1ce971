// The framework's side of an executor's life: resources asked for, the loop over CCL buffers, executors by name.
#include "runtime.h"

#include <algorithm>

namespace hccl {

u32 SizeOf(HcclDataType type) {
    switch (type) {
    case HCCL_DATA_TYPE_INT8:
    case HCCL_DATA_TYPE_UINT8: return 1;
    case HCCL_DATA_TYPE_INT16:
    case HCCL_DATA_TYPE_UINT16:
    case HCCL_DATA_TYPE_FP16:
    case HCCL_DATA_TYPE_BFP16: return 2;
    case HCCL_DATA_TYPE_INT32:
    case HCCL_DATA_TYPE_UINT32:
    case HCCL_DATA_TYPE_FP32: return 4;
    case HCCL_DATA_TYPE_INT64:
    case HCCL_DATA_TYPE_UINT64:
    case HCCL_DATA_TYPE_FP64: return 8;
    }
    return 0;
}

HcclResult CollExecutorBase::CalcResRequest(AlgResourceRequest& request) {
    CHK_RET(CalcScratchMemSize(request.scratchMemSize));
    CHK_RET(CalcStreamNum(request.streamNum));
    CHK_RET(CalcNotifyNum(request.streamNum, request.notifyNum));
    return CalcCommInfo(request.opTransport);
}

HcclResult CollExecutorBase::Orchestrate(const OpParam& param, AlgResourceResponse& resource) {
    World& world = *static_cast<World*>(site_.dispatcher);
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

} // namespace hccl
