// Tasks as they are enqueued and as they run. The first thing that goes wrong ends the run and is its message.
#include "runtime.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "reduce.h"

namespace hccl {
namespace {

World& Of(HcclDispatcher dispatcher) { return *static_cast<World*>(dispatcher); }

std::string Name(u32 rank) { return "rank " + std::to_string(rank); }

// The memory of a dry run: a range of addresses for each allocation, far from each other.
constexpr u64 DRY_STRIDE = u64(1) << 44;

} // namespace

World::World(const Options& options) : options_(options), ledger_(options.nranks) {}

DeviceMem World::Allocate(u32 rank, u64 bytes, const std::string& name, u32 exposed) {
    Allocation made;
    made.rank = rank;
    made.size = bytes;
    made.name = name;
    made.exposed = exposed;
    u64 address = (memory_.size() + 1) * DRY_STRIDE;
    if (!options_.dry) {
        made.bytes.reset(new u64[bytes / 8 + 1]);
        // Nobody may rely on zeros.
        std::memset(made.bytes.get(), 0xA5, bytes / 8 * 8 + 8);
        address = u64(reinterpret_cast<uintptr_t>(made.bytes.get()));
    }
    memory_.emplace(address, std::move(made));
    if (exposed != 0) {
        shown_[{rank, exposed}] = DeviceMem(address, bytes);
    }
    return DeviceMem(address, bytes);
}

u8* World::Bytes(const DeviceMem& memory) {
    return options_.dry ? nullptr : reinterpret_cast<u8*>(uintptr_t(memory.address()));
}

HcclResult World::Fail(HcclResult code, const std::string& message) {
    if (!failed_) {
        failed_ = true;
        message_ = message;
    }
    return code;
}

const World::Allocation* World::Owner(u64 address, u64 bytes) const {
    auto after = memory_.upper_bound(address);
    if (after == memory_.begin()) {
        return nullptr;
    }
    --after;
    const u64 offset = address - after->first;
    return bytes <= after->second.size && offset <= after->second.size - bytes ? &after->second : nullptr;
}

bool World::IsLocal(const Stream& stream, u64 address, u64 bytes) const {
    const Allocation* owner = Owner(address, bytes);
    return owner != nullptr && owner->rank == stream.rank;
}

HcclResult World::Provide(u32 rank, const AlgResourceRequest& request, AlgResourceResponse& response) {
    response.mainStream.rank = rank;
    for (u32 i = 1; i <= request.streamNum; ++i) {
        Stream slave;
        slave.rank = rank;
        slave.index = i;
        response.slaveStreams.push_back(slave);
    }
    for (u32 i = 0; i < request.notifyNum; ++i) {
        flags_.emplace_back("notify " + std::to_string(i));
        response.notifies.push_back(std::make_shared<LocalNotify>(flags_.size() - 1));
    }
    response.scratch =
        Allocate(rank, request.scratchMemSize, "scratch", static_cast<u32>(UserMemType::SCRATCH_MEM));
    for (u32 level = 0; level < request.opTransport.size(); ++level) {
        std::map<u32, LINK> links;
        for (const u32 peer : request.opTransport[level].peers) {
            if (peer >= options_.nranks || peer == rank) {
                return Fail(HCCL_E_PARA, Name(rank) + " asks for a link to rank " + std::to_string(peer));
            }
            if (options_.dead.count({std::min(rank, peer), std::max(rank, peer)}) != 0) {
                return Fail(HCCL_E_NOT_FOUND, Name(rank) + " asks for a link to rank " + std::to_string(peer) +
                                                  ", and that cable is cut");
            }
            links[peer] = std::make_shared<Transport>(this, rank, peer, level);
        }
        levels_[{rank, level}] = request.opTransport[level];
        response.levels.push_back(links);
    }
    return HCCL_SUCCESS;
}

u64 World::LinkFlag(u32 from, u32 to, u32 level, u32 kind) {
    const auto found = linkFlags_.emplace(std::vector<u32>{from, to, level, kind}, flags_.size());
    if (found.second) {
        const std::string signal = kind == 0 ? "TxAck" : "TxDataSignal";
        flags_.emplace_back(signal + " of rank " + std::to_string(from) + " to rank " + std::to_string(to));
    }
    return found.first->second;
}

HcclResult World::RemoteMem(u32 self, u32 peer, u32 level, UserMemType type, DeviceMem& memory) {
    const u32 bit = static_cast<u32>(type);
    const auto request = levels_.find({peer, level});
    if (request == levels_.end() || (request->second.exposed & bit) == 0) {
        return Fail(HCCL_E_NOT_FOUND, Name(self) + " asks for memory of rank " + std::to_string(peer) +
                                          " that its links do not show");
    }
    memory = shown_[{peer, bit}];
    return HCCL_SUCCESS;
}

// Whether a task of `stream` may touch that memory.
HcclResult World::Reach(const Stream& stream, u64 address, u64 bytes) {
    const Allocation* owner = Owner(address, bytes);
    const std::string who = Name(stream.rank) + ", stream " + std::to_string(stream.index);
    if (owner == nullptr) {
        return Fail(HCCL_E_PARA, who + ": an access of " + std::to_string(bytes) + " bytes beyond any memory");
    }
    if (owner->rank != stream.rank && owner->exposed == 0) {
        return Fail(HCCL_E_PARA, who + ": " + owner->name + " of rank " + std::to_string(owner->rank) + " is private");
    }
    const auto pair = std::minmax(owner->rank, stream.rank);
    if (options_.dead.count({pair.first, pair.second}) != 0) {
        return Fail(HCCL_E_NOT_FOUND,
                    who + ": the cable to rank " + std::to_string(owner->rank) + " is cut");
    }
    return HCCL_SUCCESS;
}

HcclResult World::Enqueue(const Stream& stream, const Task& task) {
    const auto found = queueOf_.emplace(std::make_pair(stream.rank, stream.index), queues_.size());
    if (found.second) {
        queues_.emplace_back(new Queue(stream));
    }
    Queue& queue = *queues_[found.first->second];
    if (task.kind == Task::Kind::COPY || task.kind == Task::Kind::REDUCE) {
        CHK_RET(Reach(stream, task.src, task.bytes));
        CHK_RET(Reach(stream, task.dst, task.bytes));
    }
    queue.tasks.push_back(task);
    return HCCL_SUCCESS;
}

std::string World::Place(const Queue& queue, size_t at) const {
    const Task& task = queue.tasks[at];
    std::string place = Name(queue.stream.rank) + ", stream " + std::to_string(queue.stream.index) + ", task " +
                        std::to_string(at) + ": ";
    switch (task.kind) {
    case Task::Kind::COPY: return place + "copy";
    case Task::Kind::REDUCE: return place + "reduce";
    case Task::Kind::POST: return place + "posts " + flags_[task.flag].name;
    case Task::Kind::WAIT: return place + "waits for " + flags_[task.flag].name;
    }
    return place;
}

bool World::Ready(const Queue& queue) const {
    const Task& task = queue.tasks[queue.done];
    return task.kind != Task::Kind::WAIT || flags_[task.flag].raised;
}

std::string World::Stuck(const std::string& why) const {
    std::string message = why;
    for (const auto& queue : queues_) {
        if (queue->done < queue->tasks.size()) {
            message += "\n  " + Place(*queue, queue->done);
        }
    }
    return message;
}

void World::Move(const Task& task) {
    if (options_.dry) {
        if (task.kind == Task::Kind::COPY) {
            ledger_.Copy(task.dst, task.src, task.bytes);
        } else {
            ledger_.Reduce(task.dst, task.src, task.bytes);
        }
        return;
    }
    u8* const dst = reinterpret_cast<u8*>(uintptr_t(task.dst));
    const u8* const src = reinterpret_cast<const u8*>(uintptr_t(task.src));
    if (task.kind == Task::Kind::COPY) {
        std::memmove(dst, src, task.bytes);
    } else {
        ReduceBytes(task.type, task.op, dst, src, task.bytes);
    }
}

void World::Step(Queue& queue, std::unique_lock<std::mutex>& lock) {
    const Task& task = queue.tasks[queue.done];
    if (task.kind == Task::Kind::COPY || task.kind == Task::Kind::REDUCE) {
        const u32 from = Owner(task.src, task.bytes)->rank, to = Owner(task.dst, task.bytes)->rank;
        if (from != to) {
            traffic_[{from, to}] += task.bytes;
        }
        if (options_.dry) {
            Move(task);
        } else {
            lock.unlock();
            Move(task);
            lock.lock();
        }
    } else {
        Flag& flag = flags_[task.flag];
        const bool post = task.kind == Task::Kind::POST;
        if (post && flag.raised) {
            Fail(HCCL_E_INTERNAL, Place(queue, queue.done) + ", which is lost: the flag is raised, by " +
                                      Place(*flag.by, flag.task));
        }
        if (post) {
            flag.by = &queue;
            flag.task = queue.done;
        }
        flag.raised = post;
        if (post && flag.waiting != nullptr) {
            flag.waiting->ready.notify_one();
        }
    }
    ++queue.done;
    ++progress_;
}

void World::Follow(Queue& queue) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (queue.done < queue.tasks.size() && !failed_) {
        if (Ready(queue)) {
            Step(queue, lock);
            continue;
        }
        Flag& flag = flags_[queue.tasks[queue.done].flag];
        flag.waiting = &queue;
        const u64 seen = progress_;
        const auto deadline = std::chrono::milliseconds(options_.deadlineMillis);
        const bool raised = queue.ready.wait_for(lock, deadline, [&] { return failed_ || flag.raised; });
        flag.waiting = nullptr;
        if (!raised && progress_ == seen) {
            Fail(HCCL_E_INTERNAL, Stuck("nothing happened for " + std::to_string(options_.deadlineMillis) + " ms"));
        }
    }
    // Nobody waits for what will not come.
    for (const auto& other : queues_) {
        if (failed_) {
            other->ready.notify_one();
        }
    }
}

void World::Threads() {
    std::vector<std::thread> threads;
    for (const auto& queue : queues_) {
        threads.emplace_back([this, &queue] { Follow(*queue); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

void World::OneByOne() {
    std::unique_lock<std::mutex> lock(mutex_);
    u64 state = options_.seed;
    std::vector<Queue*> ready;
    while (!failed_) {
        ready.clear();
        bool left = false;
        for (const auto& queue : queues_) {
            const bool more = queue->done < queue->tasks.size();
            left |= more;
            if (more && Ready(*queue)) {
                ready.push_back(queue.get());
            }
        }
        if (ready.empty()) {
            if (left) {
                Fail(HCCL_E_INTERNAL, Stuck("every stream waits for another"));
            }
            return;
        }
        // Knuth's MMIX generator; its high bits are the good ones.
        state = state * 6364136223846793005u + 1442695040888963407u;
        Step(*ready[options_.seed == 0 ? 0 : (state >> 33) % ready.size()], lock);
    }
}

bool World::Run() {
    if (!failed_ && options_.threads) {
        Threads();
    } else if (!failed_) {
        OneByOne();
    }
    for (const Flag& flag : flags_) {
        if (!failed_ && flag.raised) {
            Fail(HCCL_E_INTERNAL, flag.name + " is left raised at the end: " + Place(*flag.by, flag.task));
        }
    }
    return !failed_;
}

// ---- what executors call -------------------------------------------------------------------------------------------

static HcclResult Signal(HcclDispatcher dispatcher, const Stream& stream, Task::Kind kind, u64 flag) {
    Task task;
    task.kind = kind;
    task.flag = flag;
    return Of(dispatcher).Enqueue(stream, task);
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
        return Of(dispatcher).Fail(HCCL_E_PARA, "a copy between memory of different sizes");
    }
    Task task;
    task.kind = Task::Kind::COPY;
    task.dst = dst.address();
    task.src = src.address();
    task.bytes = src.size();
    return Of(dispatcher).Enqueue(stream, task);
}

HcclResult HcclReduceAsync(HcclDispatcher dispatcher, const DeviceMem& src, u64 count, HcclDataType type,
                           HcclReduceOp op, Stream& stream, const DeviceMem& dst, ReduceAttr attr) {
    World& world = Of(dispatcher);
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
