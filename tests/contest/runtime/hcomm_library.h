// What stands behind the documented calls of HCOMM: the communicators, threads and channels of all ranks, and the rules of
// a data-plane call.
#pragma once
#include <algorithm>
#include <iostream>
#include <list>

#include "door.h"
#include "operator.h"

namespace hccl {

constexpr u32 CALLER = 1000; // the stream of the caller, among the queues of a rank
constexpr u32 MAGIC = 0x4c4e4843;

inline std::string Name(u32 rank) { return "rank " + std::to_string(rank); }

struct Communicator {
    u32 rank = 0;
    std::string name;
    DeviceMem buffer;
    u32 threads = 0;
    u32 notifies = 0;
    bool locked = false;
    std::map<std::string, std::vector<u64>> contexts; // by tag; words, so that they are aligned
    std::map<u32, u64> channels;                      // by peer
    std::vector<CommLink> links;
};
struct Thread {
    u32 rank = 0;
    u32 index = 0;
    std::vector<u64> notifies; // flags
};
struct Channel {
    u32 rank = 0;
    u32 peer = 0;
    std::vector<u64> own; // flags that this end waits for
};
struct Arguments {
    std::vector<u64> bytes;
    bool final = false;
};

class Library;
extern Library* g_library;

class Library : public Door {
public:
    Library(World& made, const Words& words) : world(made), profile(words.profile), ccl_(words.ccl) {
        g_library = this;
        for (u32 rank = 0; rank < world.nranks(); ++rank) {
            Communicator one;
            one.rank = rank;
            one.name = "communicator of " + Name(rank);
            one.buffer = world.Allocate(rank, 2 * ccl_, "the HCCL buffer", 1);
            comms.push_back(one);
        }
    }
    HcclResult Open(u32, bool tells) override {
        tells_ = tells;
        return HCCL_SUCCESS;
    }
    HcclResult Call(u32 rank, const UserCall& call) override {
        Stream stream;
        stream.rank = rank;
        stream.index = CALLER;
        streams_.push_back(stream);
        void* const in = reinterpret_cast<void*>(uintptr_t(call.input.address()));
        void* const out = reinterpret_cast<void*>(uintptr_t(call.output.address()));
        Communicator& comm = comms[rank];
        calling = rank;
        const HcclResult result = CallOperator(in, out, call.count, call.type, call.op, &comm, &streams_.back());
        if (result == HCCL_SUCCESS && batch != 0) {
            return world.Fail(HCCL_E_INTERNAL, Name(rank) + ": a batch is open after the call");
        }
        if (result == HCCL_SUCCESS && comm.locked) {
            return world.Fail(HCCL_E_INTERNAL, Name(rank) + ": the communicator is locked after the call");
        }
        if (tells_ && rank == 0) {
            std::cout << "pass " << OperatorPass(call.count, call.type, 2 * ccl_) << " threads " << comm.threads
                      << " notifies " << comm.notifies << "\n";
        }
        if (result != HCCL_SUCCESS) {
            world.Fail(result, "the operator refuses with code " + std::to_string(result));
        }
        return result;
    }
    HcclResult Close() override {
        for (const Channel& one : channels) {
            for (const Channel& other : channels) {
                if (one.rank == other.peer && one.peer == other.rank && one.own.size() != other.own.size()) {
                    return world.Fail(HCCL_E_PARA, "the ends of a channel of " + Name(one.rank) + " and " +
                                                       Name(one.peer) + " have different numbers of notifies");
                }
            }
        }
        return HCCL_SUCCESS;
    }

    int32_t Fail(u32 rank, const std::string& why) {
        world.Fail(HCCL_E_PARA, Name(rank) + ": " + why);
        return 1;
    }
    // The thread of a data-plane call, if it may be made here.
    const Thread* On(ThreadHandle handle) {
        if (handle == 0 || handle > threads.size()) {
            Fail(calling, "a thread that was never acquired");
            return nullptr;
        }
        const Thread& thread = threads[handle - 1];
        if (thread.rank != calling) {
            Fail(calling, "a thread of " + Name(thread.rank));
        } else if ((profile != "a2") != inKernel) {
            Fail(calling, inKernel ? "a kernel on a2" : "a task that the host enqueues for the device's engine");
        } else if (batch == 0 && profile != "350") {
            Fail(calling, "a task outside of a batch");
        } else if (profile == "a3" && !comms[calling].locked) {
            Fail(calling, "a task without the communicator's lock");
        } else {
            return &thread;
        }
        return nullptr;
    }
    const Channel* Over(ChannelHandle handle) {
        if (handle == 0 || handle > channels.size() || channels[handle - 1].rank != calling) {
            Fail(calling, "a channel that it never acquired");
            return nullptr;
        }
        return &channels[handle - 1];
    }
    int32_t Put(const Thread& thread, const Task& task) {
        Stream stream;
        stream.rank = thread.rank;
        stream.index = thread.index;
        return world.Enqueue(stream, task) == HCCL_SUCCESS ? 0 : 1;
    }
    int32_t Signal(const Thread* thread, Task::Kind kind, const std::vector<u64>& flags, u64 index, u32 peer = ~u32(0)) {
        if (thread == nullptr) {
            return 1;
        }
        if (index >= flags.size()) {
            return Fail(calling, "notify " + std::to_string(index) + " of " + std::to_string(flags.size()));
        }
        Task task;
        task.kind = kind;
        task.flag = flags[index];
        task.peer = peer;
        return Put(*thread, task);
    }
    // The end of the channel at the peer, which the peer may acquire later.
    const std::vector<u64>& FarEnd(const Channel& channel) {
        return ChannelEnd(channel.peer, channel.rank, u32(channel.own.size()));
    }
    std::vector<u64>& ChannelEnd(u32 rank, u32 peer, u32 many) {
        std::vector<u64>& end = ends_[{rank, peer}];
        while (end.size() < many) {
            end.push_back(world.NewFlag("notify " + std::to_string(end.size()) + " of " + Name(peer) + " at " +
                                        Name(rank)));
        }
        return end;
    }
    bool Within(const DeviceMem& whole, u64 address, u64 bytes) const {
        return address >= whole.address() && bytes <= whole.size() && address - whole.address() <= whole.size() - bytes;
    }
    // A move; `into` and `from` say whether that end is at the peer.
    int32_t Move(ThreadHandle handle, ChannelHandle over, void* dst, const void* src, u64 bytes, bool into, bool from,
                 const Task& like) {
        const Thread* const thread = On(handle);
        if (thread == nullptr) {
            return 1;
        }
        Task task = like;
        task.dst = u64(reinterpret_cast<uintptr_t>(dst));
        task.src = u64(reinterpret_cast<uintptr_t>(src));
        task.bytes = bytes;
        if (into || from) {
            const Channel* const channel = Over(over);
            if (channel == nullptr) {
                return 1;
            }
            if (!Within(comms[channel->peer].buffer, into ? task.dst : task.src, bytes)) {
                return Fail(calling, "memory that is not in the HCCL buffer of " + Name(channel->peer));
            }
            task.peer = into ? channel->peer : ~u32(0);
        }
        Stream stream;
        stream.rank = calling;
        for (const u64 near : {into ? task.src : task.dst, from ? task.dst : task.src}) {
            if (!world.IsLocal(stream, near, bytes)) {
                return Fail(calling, "memory that is not its own");
            }
        }
        return Put(*thread, task);
    }
    int32_t Reduce(ThreadHandle handle, ChannelHandle over, void* dst, const void* src, u64 count, HcommDataType type,
                   HcommReduceOp op, bool into, bool from, bool fused) {
        const bool six = type == HCOMM_DATA_TYPE_INT8 || type == HCOMM_DATA_TYPE_INT16 || type == HCOMM_DATA_TYPE_INT32 ||
                         type == HCOMM_DATA_TYPE_FP16 || type == HCOMM_DATA_TYPE_FP32 || type == HCOMM_DATA_TYPE_BFP16;
        const bool odd = type == HCOMM_DATA_TYPE_UINT8 || type == HCOMM_DATA_TYPE_UINT16 || type == HCOMM_DATA_TYPE_UINT32;
        if (!(six || (fused && odd)) ||
            (op != HCOMM_REDUCE_SUM && op != HCOMM_REDUCE_MAX && op != HCOMM_REDUCE_MIN)) {
            return Fail(calling, "a reduction of a type or by an op that the engine has not");
        }
        Task task;
        task.kind = Task::Kind::REDUCE;
        task.type = static_cast<HcclDataType>(type);
        task.op = static_cast<HcclReduceOp>(op);
        return Move(handle, over, dst, src, count * SizeOf(task.type), into, from, task);
    }

    World& world;
    std::string profile;
    std::vector<Communicator> comms;
    std::vector<Thread> threads;
    std::vector<Channel> channels;
    std::vector<u64> runtime; // flags of the runtime's notifies
    u32 calling = 0;
    u32 batch = 0;
    std::string tag;
    bool inKernel = false;

private:
    u64 ccl_;
    bool tells_ = false;
    std::list<Stream> streams_; // of the calls
    std::map<std::pair<u32, u32>, std::vector<u64>> ends_; // by rank and peer
};

inline Library& The() { return *g_library; }
inline Communicator& Of(HcclComm comm) { return *static_cast<Communicator*>(comm); }

inline HcclResult Refuse(HcclComm comm, HcclResult code, const std::string& why) {
    return The().world.Fail(code, Name(Of(comm).rank) + ": " + why);
}

} // namespace hccl
