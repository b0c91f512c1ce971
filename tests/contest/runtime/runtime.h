// What runs an executor's tasks: streams, one-shot flags, memory with owners, links with dead cables.
#pragma once
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hccl_types.h"
#include "ledger.h"

namespace hccl {

// One entry of a stream.
struct Task {
    enum class Kind { COPY, REDUCE, POST, WAIT };
    Kind kind = Kind::COPY;
    u64 flag = 0;
    u64 dst = 0;
    u64 src = 0;
    u64 bytes = 0;
    HcclDataType type = HCCL_DATA_TYPE_INT8;
    HcclReduceOp op = HCCL_REDUCE_SUM;
    u32 peer = ~u32(0); // of a push, to whom; of a post, who hears it
};

// When the data of a push arrive.
enum class Arrival { AT_ONCE, BEFORE_A_SIGNAL, AT_THE_END };

struct Options {
    u32 nranks = 0;
    std::set<std::pair<u32, u32>> dead; // the lower rank first
    bool dry = false;                   // memory is addresses; what would be there is kept in a ledger
    bool threads = true;                // a thread a stream; else one task at a time, drawn by the seed
    u64 seed = 0;                       // 0: the first stream that can go on does, as far as it can
    bool counts = false;                // a flag counts its posts, so that none is lost
    Arrival arrival = Arrival::AT_ONCE;
    u32 deadlineMillis = 60000;         // without any progress, with threads
};

class World {
public:
    explicit World(const Options& options);

    // Memory of a rank; `exposed` is 0 where no peer may reach it.
    DeviceMem Allocate(u32 rank, u64 bytes, const std::string& name, u32 exposed);
    // The memory itself; null in a dry run.
    u8* Bytes(const DeviceMem& memory);

    // A flag; no task has raised it.
    u64 NewFlag(const std::string& name);
    bool IsDead(u32 one, u32 other) const;
    u32 nranks() const { return options_.nranks; }

    HcclResult Enqueue(const Stream& stream, const Task& task);
    // Whether memory is the stream's own rank's.
    bool IsLocal(const Stream& stream, u64 address, u64 bytes) const;
    HcclResult Fail(HcclResult code, const std::string& message);

    // Runs all that was enqueued; whether it all went well.
    bool Run();
    const std::string& message() const { return message_; }
    // Bytes that went from one rank to another.
    const std::map<std::pair<u32, u32>, u64>& traffic() const { return traffic_; }
    Ledger& ledger() { return ledger_; }

private:
    struct Allocation {
        u32 rank = 0;
        u64 size = 0;
        std::string name;
        u32 exposed = 0;
        std::unique_ptr<u64[]> bytes;
    };
    struct Queue {
        explicit Queue(const Stream& of) : stream(of) {}
        Stream stream;
        std::vector<Task> tasks;
        size_t done = 0;
        // Pushes whose data have not arrived, each with the bytes that it read.
        std::vector<std::pair<Task, std::vector<u8>>> pushes;
        std::condition_variable ready;
    };
    struct Flag {
        explicit Flag(const std::string& flag) : name(flag) {}
        std::string name;
        u32 raised = 0; // how often
        const Queue* by = nullptr; // who raised it last, and with which task
        size_t task = 0;
        Queue* waiting = nullptr; // who sleeps until it is raised
    };

    const Allocation* Owner(u64 address, u64 bytes) const;
    HcclResult Reach(const Stream& stream, u64 address, u64 bytes);
    bool Ready(const Queue& queue) const;
    std::string Place(const Queue& queue, size_t at) const;
    std::string Stuck(const std::string& why) const;
    // Does the next task, which is ready; the lock is held, and let go of for a move.
    void Step(Queue& queue, std::unique_lock<std::mutex>& lock);
    void Move(const Task& task);
    // Lets data of pushes arrive, those to `peer` or all.
    void Arrive(Queue& queue, u32 peer);
    void Follow(Queue& queue);
    void OneByOne();
    void Threads();

    Options options_;
    std::map<u64, Allocation> memory_; // by address
    std::vector<Flag> flags_;
    std::map<std::pair<u32, u32>, size_t> queueOf_;
    std::vector<std::unique_ptr<Queue>> queues_;
    std::map<std::pair<u32, u32>, u64> traffic_;
    Ledger ledger_;

    std::mutex mutex_;
    u64 progress_ = 0;
    bool failed_ = false;
    std::string message_;
};

} // namespace hccl
