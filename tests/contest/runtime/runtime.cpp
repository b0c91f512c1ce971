// Tasks as they are enqueued and as they run. The first thing that goes wrong ends the run and is its message.
#include "runtime.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "reduce.h"

namespace hccl {
namespace {

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

u64 World::NewFlag(const std::string& name) {
    flags_.emplace_back(name);
    return flags_.size() - 1;
}

bool World::IsDead(u32 one, u32 other) const { return options_.dead.count(std::minmax(one, other)) != 0; }

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
    if (IsDead(owner->rank, stream.rank)) {
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
        for (const u64 address : {task.src, task.dst}) {
            const HcclResult reached = Reach(stream, address, task.bytes);
            if (reached != HCCL_SUCCESS) {
                return reached;
            }
        }
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
    return task.kind != Task::Kind::WAIT || flags_[task.flag].raised > 0;
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

void World::Arrive(Queue& queue, u32 peer) {
    std::vector<std::pair<Task, std::vector<u8>>> left;
    for (auto& push : queue.pushes) {
        if (peer != ~u32(0) && push.first.peer != peer) {
            left.push_back(std::move(push));
            continue;
        }
        Task task = push.first;
        task.src = u64(reinterpret_cast<uintptr_t>(push.second.data()));
        Move(task);
    }
    queue.pushes.swap(left);
}

void World::Step(Queue& queue, std::unique_lock<std::mutex>& lock) {
    const Task& task = queue.tasks[queue.done];
    if (task.kind == Task::Kind::COPY || task.kind == Task::Kind::REDUCE) {
        const u32 from = Owner(task.src, task.bytes)->rank, to = Owner(task.dst, task.bytes)->rank;
        if (from != to) {
            traffic_[{from, to}] += task.bytes;
        }
        if (task.peer != ~u32(0) && options_.arrival != Arrival::AT_ONCE) {
            const u8* const src = reinterpret_cast<const u8*>(uintptr_t(task.src));
            queue.pushes.emplace_back(task, std::vector<u8>(src, src + task.bytes));
        } else if (options_.dry) {
            Move(task);
        } else {
            lock.unlock();
            Move(task);
            lock.lock();
        }
    } else {
        Flag& flag = flags_[task.flag];
        const bool post = task.kind == Task::Kind::POST;
        if (post && options_.arrival == Arrival::BEFORE_A_SIGNAL) {
            Arrive(queue, task.peer);
        }
        if (post && flag.raised > 0 && !options_.counts) {
            Fail(HCCL_E_INTERNAL, Place(queue, queue.done) + ", which is lost: the flag is raised, by " +
                                      Place(*flag.by, flag.task));
        }
        if (post) {
            flag.by = &queue;
            flag.task = queue.done;
        }
        flag.raised += post ? 1 : -1;
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
        const bool raised = queue.ready.wait_for(lock, deadline, [&] { return failed_ || flag.raised > 0; });
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
    for (const auto& queue : queues_) {
        Arrive(*queue, ~u32(0));
    }
    for (const Flag& flag : flags_) {
        if (!failed_ && flag.raised > 0) {
            Fail(HCCL_E_INTERNAL, flag.name + " is left raised at the end: " + Place(*flag.by, flag.task));
        }
    }
    return !failed_;
}

} // namespace hccl
