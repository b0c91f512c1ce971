// The documented calls of HCOMM on this folder's runtime. The first misuse ends the run, and is its message.
#include <cstring>

#include "hcomm_library.h"

namespace hccl {

Library* g_library = nullptr;

std::unique_ptr<Door> MakeDoor(World& world, const Words& words) {
    const bool known = words.profile == "a2" || words.profile == "a3" || words.profile == "350";
    return std::unique_ptr<Door>(known ? new Library(world, words) : nullptr);
}

std::string KnownExecutors() { return " profiles a2, a3 and 350"; }

} // namespace hccl

using namespace hccl;

extern "C" {

HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) {
    *rank = Of(comm).rank;
    return HCCL_SUCCESS;
}

HcclResult HcclGetRankSize(HcclComm, uint32_t* ranks) {
    *ranks = The().world.nranks();
    return HCCL_SUCCESS;
}

HcclResult HcclGetCommName(HcclComm comm, char* name) {
    std::strcpy(name, Of(comm).name.c_str());
    return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetLayers(HcclComm, uint32_t** layers, uint32_t* number) {
    static uint32_t all[] = {0, 1};
    *layers = all;
    *number = 2;
    return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetLinks(HcclComm comm, uint32_t layer, uint32_t source, uint32_t destination, CommLink** links,
                                 uint32_t* number) {
    Communicator& own = Of(comm);
    own.links.assign(1, CommLink());
    *links = own.links.data();
    *number = layer == 0 && !The().world.IsDead(source, destination) ? 1 : 0;
    return HCCL_SUCCESS;
}

HcclResult HcclThreadAcquire(HcclComm comm, CommEngine engine, uint32_t number, uint32_t notifies, ThreadHandle* threads) {
    Communicator& own = Of(comm);
    if ((engine == COMM_ENGINE_CPU_TS) != (The().profile == "a2")) {
        return Refuse(comm, HCCL_E_NOT_SUPPORT, "threads of an engine that the product has not");
    }
    if (own.threads + number > 40) {
        return Refuse(comm, HCCL_E_UNAVAIL, std::to_string(own.threads + number) + " threads of 40");
    }
    if (own.notifies + number * notifies > 64) {
        return Refuse(comm, HCCL_E_UNAVAIL, std::to_string(own.notifies + number * notifies) + " notifies of 64");
    }
    for (u32 i = 0; i < number; ++i) {
        Thread thread;
        thread.rank = own.rank;
        thread.index = own.threads++;
        for (u32 notify = 0; notify < notifies; ++notify) {
            const std::string name = "notify " + std::to_string(notify) + " of thread " + std::to_string(thread.index);
            thread.notifies.push_back(The().world.NewFlag(name + " of " + Name(own.rank)));
        }
        The().threads.push_back(thread);
        threads[i] = The().threads.size();
    }
    own.notifies += number * notifies;
    return HCCL_SUCCESS;
}

HcclResult HcclChannelDescInit(HcclChannelDesc* descriptors, uint32_t number) {
    for (u32 i = 0; i < number; ++i) {
        descriptors[i] = HcclChannelDesc();
        descriptors[i].header.magic = MAGIC;
    }
    return HCCL_SUCCESS;
}

HcclResult HcclChannelAcquire(HcclComm comm, CommEngine, const HcclChannelDesc* descriptors, uint32_t number,
                              ChannelHandle* channels) {
    Communicator& own = Of(comm);
    for (u32 i = 0; i < number; ++i) {
        const HcclChannelDesc& wanted = descriptors[i];
        if (wanted.header.magic != MAGIC && The().profile != "350") {
            return Refuse(comm, HCCL_E_PARA, "a descriptor without HcclChannelDescInit");
        }
        if (wanted.notifyNum > 64) {
            return Refuse(comm, HCCL_E_PARA, std::to_string(wanted.notifyNum) + " notifies of a channel, and 64 is the most");
        }
        if (wanted.remoteRank >= The().world.nranks() || wanted.remoteRank == own.rank) {
            return Refuse(comm, HCCL_E_PARA, "a channel to rank " + std::to_string(wanted.remoteRank));
        }
        if (The().world.IsDead(own.rank, wanted.remoteRank)) {
            return Refuse(comm, HCCL_E_NOT_FOUND, "a channel to " + Name(wanted.remoteRank) + ", and that cable is cut");
        }
        // A channel is known by communicator, engine, rank and protocol: asked for again it is the same one.
        u64& handle = own.channels[wanted.remoteRank];
        if (handle == 0) {
            Channel channel;
            channel.rank = own.rank;
            channel.peer = wanted.remoteRank;
            channel.own = The().ChannelEnd(own.rank, wanted.remoteRank, wanted.notifyNum);
            channel.own.resize(wanted.notifyNum);
            The().channels.push_back(channel);
            handle = The().channels.size();
        }
        channels[i] = handle;
    }
    return HCCL_SUCCESS;
}

HcclResult HcclGetHcclBuffer(HcclComm comm, void** buffer, uint64_t* bytes) {
    *buffer = reinterpret_cast<void*>(uintptr_t(Of(comm).buffer.address()));
    *bytes = Of(comm).buffer.size();
    return HCCL_SUCCESS;
}

HcclResult HcclChannelGetHcclBuffer(HcclComm comm, ChannelHandle channel, void** buffer, uint64_t* bytes) {
    if (channel == 0 || channel > The().channels.size()) {
        return Refuse(comm, HCCL_E_PARA, "a channel that it never acquired");
    }
    return HcclGetHcclBuffer(&The().comms[The().channels[channel - 1].peer], buffer, bytes);
}

HcclResult HcclEngineCtxCreate(HcclComm comm, const char* tag, CommEngine, uint64_t bytes, void** context) {
    if (std::strlen(tag) > 255) {
        return Refuse(comm, HCCL_E_PARA, "a tag of more than 255 characters");
    }
    std::vector<u64>& words = Of(comm).contexts[tag];
    words.assign(bytes / 8 + 1, ~u64(0));
    *context = words.data();
    return HCCL_SUCCESS;
}

HcclResult HcclEngineCtxGet(HcclComm comm, const char* tag, CommEngine, void** context, uint64_t* bytes) {
    const auto found = Of(comm).contexts.find(tag);
    if (found == Of(comm).contexts.end()) {
        return HCCL_E_NOT_FOUND;
    }
    *context = found->second.data();
    *bytes = (found->second.size() - 1) * 8;
    return HCCL_SUCCESS;
}

HcclResult HcclEngineCtxCopy(HcclComm comm, CommEngine, const char* tag, const void* source, uint64_t bytes,
                             uint64_t offset) {
    std::vector<u64>& words = Of(comm).contexts[tag];
    if (offset + bytes > words.size() * 8) {
        return Refuse(comm, HCCL_E_PARA, "a copy beyond an engine's context");
    }
    std::memcpy(reinterpret_cast<char*>(words.data()) + offset, source, bytes);
    return HCCL_SUCCESS;
}

int32_t HcommLocalCopyOnThread(ThreadHandle thread, void* dst, const void* src, uint64_t bytes) {
    return The().Move(thread, 0, dst, src, bytes, false, false, Task());
}

int32_t HcommLocalReduceOnThread(ThreadHandle thread, void* dst, const void* src, uint64_t count, HcommDataType type,
                                 HcommReduceOp op) {
    return The().Reduce(thread, 0, dst, src, count, type, op, false, false, false);
}

int32_t HcommThreadNotifyRecordOnThread(ThreadHandle thread, ThreadHandle target, uint32_t notify) {
    const Thread* const to = The().On(target);
    return to == nullptr ? 1 : The().Signal(The().On(thread), Task::Kind::POST, to->notifies, notify);
}

int32_t HcommThreadNotifyWaitOnThread(ThreadHandle thread, uint32_t notify, uint32_t) {
    const Thread* const on = The().On(thread);
    return on == nullptr ? 1 : The().Signal(on, Task::Kind::WAIT, on->notifies, notify);
}

int32_t HcommAclrtNotifyRecordOnThread(ThreadHandle thread, uint64_t notify) {
    return The().Signal(The().On(thread), Task::Kind::POST, The().runtime, notify);
}

int32_t HcommAclrtNotifyWaitOnThread(ThreadHandle thread, uint64_t notify, uint32_t) {
    if (The().profile == "350") {
        return The().Fail(The().calling, "a runtime notify on 350");
    }
    return The().Signal(The().On(thread), Task::Kind::WAIT, The().runtime, notify);
}

int32_t HcommWriteOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src, uint64_t bytes) {
    return The().Move(thread, channel, dst, src, bytes, true, false, Task());
}

int32_t HcommWriteReduceOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src, uint64_t count,
                                 HcommDataType type, HcommReduceOp op) {
    return The().Reduce(thread, channel, dst, src, count, type, op, true, false, false);
}

int32_t HcommReadOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src, uint64_t bytes) {
    return The().Move(thread, channel, dst, src, bytes, false, true, Task());
}

int32_t HcommReadReduceOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src, uint64_t count,
                                HcommDataType type, HcommReduceOp op) {
    return The().Reduce(thread, channel, dst, src, count, type, op, false, true, false);
}

int32_t HcommChannelNotifyRecordOnThread(ThreadHandle thread, ChannelHandle channel, uint32_t notify) {
    const Channel* const over = The().Over(channel);
    return over == nullptr
               ? 1
               : The().Signal(The().On(thread), Task::Kind::POST, The().FarEnd(*over), notify, over->peer);
}

int32_t HcommChannelNotifyWaitOnThread(ThreadHandle thread, ChannelHandle channel, uint32_t notify, uint32_t) {
    const Channel* const over = The().Over(channel);
    return over == nullptr ? 1 : The().Signal(The().On(thread), Task::Kind::WAIT, over->own, notify);
}

int32_t HcommWriteWithNotifyOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src,
                                     uint64_t bytes, uint32_t notify) {
    if (The().profile != "350") {
        return The().Fail(The().calling, "a push with a notify, which 350 alone has");
    }
    const int32_t wrote = HcommWriteOnThread(thread, channel, dst, src, bytes);
    return wrote != 0 ? wrote : HcommChannelNotifyRecordOnThread(thread, channel, notify);
}

int32_t HcommWriteReduceWithNotifyOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src,
                                           uint64_t count, HcommDataType type, HcommReduceOp op, uint32_t notify) {
    if (The().profile != "350") {
        return The().Fail(The().calling, "a push with a notify, which 350 alone has");
    }
    const int32_t wrote = The().Reduce(thread, channel, dst, src, count, type, op, true, false, true);
    return wrote != 0 ? wrote : HcommChannelNotifyRecordOnThread(thread, channel, notify);
}

int32_t HcommBatchModeStart(const char* tag) {
    if (The().batch++ != 0) {
        return The().Fail(The().calling, "a batch inside of a batch");
    }
    The().tag = tag;
    return 0;
}

int32_t HcommBatchModeEnd(const char* tag) {
    if (The().batch == 0 || The().tag != tag) {
        return The().Fail(The().calling, "the end of a batch that was not begun by that tag");
    }
    The().batch = 0;
    return 0;
}

int32_t HcommAcquireComm(const char* communicator) {
    Communicator& own = The().comms[The().calling];
    if (The().profile != "a3" || own.name != communicator || own.locked || !The().inKernel) {
        return The().Fail(The().calling, "a lock that cannot be taken");
    }
    own.locked = true;
    return 0;
}

int32_t HcommReleaseComm(const char* communicator) {
    Communicator& own = The().comms[The().calling];
    if (own.name != communicator || !own.locked) {
        return The().Fail(The().calling, "the release of a lock that is not held");
    }
    own.locked = false;
    return 0;
}

aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t) {
    The().runtime.push_back(The().world.NewFlag("a notify of the runtime of " + Name(The().calling)));
    *notify = reinterpret_cast<void*>(uintptr_t(The().runtime.size()));
    return 0;
}

aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* id) {
    *id = u32(reinterpret_cast<uintptr_t>(notify)) - 1;
    return 0;
}

static aclError OnStream(aclrtNotify notify, aclrtStream stream, Task::Kind kind) {
    const u64 number = reinterpret_cast<uintptr_t>(notify);
    if (number == 0 || number > The().runtime.size()) {
        return The().Fail(The().calling, "a notify of the runtime that was never made");
    }
    Task task;
    task.kind = kind;
    task.flag = The().runtime[number - 1];
    return The().world.Enqueue(*static_cast<Stream*>(stream), task) == HCCL_SUCCESS ? 0 : 1;
}

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) { return OnStream(notify, stream, Task::Kind::POST); }

aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t) {
    return OnStream(notify, stream, Task::Kind::WAIT);
}

aclError aclrtBinaryLoadFromFile(const char* path, aclrtBinaryLoadOptions* options, aclrtBinHandle* binary) {
    *binary = reinterpret_cast<void*>(uintptr_t(1));
    const bool custom = options->numOpt == 1 && options->options[0].value.cpuKernelMode == 1;
    return path[0] == '/' && custom ? 0 : 1;
}

aclError aclrtBinaryGetFunction(aclrtBinHandle binary, const char*, aclrtFuncHandle* function) {
    *function = reinterpret_cast<void*>(OperatorKernel);
    return binary != nullptr && OperatorKernel != nullptr ? 0 : 1;
}

aclError aclrtKernelArgsInit(aclrtFuncHandle, aclrtArgsHandle* arguments) {
    *arguments = new Arguments();
    return 0;
}

aclError aclrtKernelArgsAppend(aclrtArgsHandle arguments, void* param, size_t bytes, aclrtParamHandle*) {
    std::vector<u64>& words = static_cast<Arguments*>(arguments)->bytes;
    words.resize(bytes / 8 + 1);
    std::memcpy(words.data(), param, bytes);
    return 0;
}

aclError aclrtKernelArgsFinalize(aclrtArgsHandle arguments) {
    static_cast<Arguments*>(arguments)->final = true;
    return 0;
}

aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle function, uint32_t blocks, aclrtStream, aclrtLaunchKernelCfg* config,
                                     aclrtArgsHandle arguments, void*) {
    const std::unique_ptr<Arguments> own(static_cast<Arguments*>(arguments));
    if (function == nullptr || blocks != 1 || config->numAttrs != 1 || !own->final) {
        return The().Fail(The().calling, "a launch that is not as the documentation's");
    }
    The().inKernel = true;
    const unsigned int result = OperatorKernel(own->bytes.data());
    The().inKernel = false;
    return result == 0 ? 0 : 1;
}
}
