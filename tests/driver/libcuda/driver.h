// What the parts of the driver for tests share: a driver of our own, the functions of libcuda that the engine and its
// tests call, on a CPU and over several processes. Streams are threads with a queue, so everything is as asynchronous
// as on a GPU; memory is full of 0xa5 until somebody writes it, and has pages around it that nobody reaches. Types
// and names are those of cuda.h, so that g++ checks each function against it.
//
// Variables of the environment:
//   ROUNDELAY_FAKE             the folder of kernels: HASH.so is a text, compiled by g++ with the shim (libnvrtc.cpp)
//   ROUNDELAY_FAKE_DEVICES     the number of devices, of which the last reaches no other; each has 64 MiB a process
//   ROUNDELAY_FAKE_VISIBLE     the devices that the process sees and their order, such as `1,0`
//   ROUNDELAY_FAKE_LINK        `nvlink`, or `pcie` for links without native atomics
//   ROUNDELAY_FAKE_ATTRIBUTES  values of devices' attributes by number, such as `103=0,20=3`
//   ROUNDELAY_FAKE_SLICE       microseconds for which a process has a device while others want it; else all run at once
//   ROUNDELAY_FAKE_MACHINE     a folder of the processes that share devices in slices, or take one alone (`20=3`)
#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <cuda.h>

// Returns from a function of the driver what refuses the call.
#define TRY(...)                                                                                                       \
    if (const CUresult refused = (__VA_ARGS__); refused != CUDA_SUCCESS) {                                             \
        return refused;                                                                                                \
    }

namespace fake {

using i32 = int32_t;
using u32 = uint32_t;
using u64 = uint64_t;

constexpr u64 PAGE = 4096, ROOM = 64 << 20, GRANULARITY = 2 << 20;
constexpr int MOST_DEVICES = 16;

constexpr u64 rounded(u64 bytes, u64 to) { return (bytes + to - 1) / to * to; }

// ---- devices.cpp -------------------------------------------------------------------------------------------

// How many devices the process sees.
int device_count();
// The device of the machine that the process knows by an ordinal, and the reverse: -1 for none.
int device_of(int ordinal);
int ordinal_of(int device);
// Whether a device of the machine reaches the memory of another, or its own.
bool reaches(int from, int to);
int attribute(int number, int device);

// ---- streams.cpp -------------------------------------------------------------------------------------------

// What streams did while they were captured, a lane for each: works, and waits for the first works of another lane.
struct Graph {
    struct Node {
        std::function<void()> run; // or none
        size_t lane = 0, works = 0; // that it waits for
    };
    std::vector<std::vector<Node>> lanes;
};

// What streams do from the beginning of a capture to its end goes to a graph.
struct Capture {
    CUstreamCaptureMode mode;
    std::thread::id thread;
    u64 id;
    CUstream origin;
    bool invalid = false;
    CUgraph handle = nullptr;
    std::shared_ptr<Graph> graph = std::make_shared<Graph>();
    struct Lane {
        CUstream stream;
        size_t awaited = 0; // by other lanes
    };
    std::vector<Lane> lanes{};

    // The lane of a stream that is in it.
    size_t lane(CUstream stream) const {
        size_t found = 0;
        while (lanes[found].stream != stream) {
            ++found;
        }
        return found;
    }
    void enter(CUstream stream);
    void add(CUstream stream, Graph::Node node) { graph->lanes[lane(stream)].push_back(std::move(node)); }
};

// Those that are open. Whoever begins, joins, uses or ends one has the lock.
struct Captures {
    std::mutex mutex;
    std::vector<std::shared_ptr<Capture>> open;
};
extern Captures captures;

std::shared_ptr<CUstream_st> new_stream(CUcontext context);
// The stream that a caller names, which may be a default one of the current context.
CUstream stream_of(CUstream stream);
// Has a stream do something after all that it was told before; a capture notes it instead.
CUresult push(CUstream stream, std::function<void()> run);
// The same of something that uses the device.
CUresult push_copy(CUstream stream, std::function<void()> run);
// Waits until a stream, or all streams of the current context, have done their work.
CUresult finish(CUstream stream);
CUresult finish_all();

// ---- graphs.cpp --------------------------------------------------------------------------------------------

// Whether captures allow this thread a call that none of them sees; those that do not are lost.
CUresult outside_captures();
// Whether a stream may wait for an event of a capture, and the other way round; it joins the capture.
CUresult join(CUstream stream, CUevent event);

// ---- contexts.cpp ------------------------------------------------------------------------------------------

extern thread_local CUcontext current;
// Whether the thread is in a function of the caller's, which may not call the driver.
extern thread_local bool in_callback;
// Whether the driver may be called here, and whether there is a context too.
CUresult callable();
CUresult usable();

// ---- memory.cpp --------------------------------------------------------------------------------------------

enum class Kind { PLAIN, POOL, MAPPED, OPENED, HOST, REGISTERED };

// Memory of cuMemCreate, which lives while a handle or a mapping of any process does.
struct Physical {
    u64 handle, bytes;
    int device, fd;
    u64 types;
    CUcontext counted;
    int members = 0; // of a multicast object, the devices that it is for
    ~Physical();
};

// Memory that the driver knows.
struct Range {
    u64 base, bytes;
    Kind kind;
    int device; // of the machine
    CUcontext context;
    u64 id;                             // no two allocations of a process have the same one
    int fd;                             // that others open, or -1
    unsigned flags;                     // of the host's memory
    std::shared_ptr<Physical> physical; // of mapped memory
    std::array<int, MOST_DEVICES> access;
    u64 end() const { return base + bytes; }
};

struct Memory {
    std::mutex mutex;
    std::map<u64, Range> ranges;
    std::atomic<u64> next_id{1};
};
extern Memory memory;

// The range of an address, or none; the lock is held.
Range* range_at(u64 address);
// Notes a range; the lock is not held.
void enter(Range range);
// Addresses between pages that nobody reaches, of whole pages; and what ends their use.
u64 reserve(u64 bytes, u64 alignment, u64 wish);
void withdraw(u64 base, u64 bytes);
void unreserve(u64 base, u64 bytes);
// Puts a file's bytes at reserved addresses.
bool show(u64 base, u64 bytes, int fd, int protection);
// A new file of memory, full of 0xa5, or -1.
int new_file(const std::string& name, u64 bytes);
// Whether work of the current context may touch these bytes.
CUresult reachable(u64 address, u64 bytes);
// Counts memory of a device for this process.
CUresult take(CUcontext context, u64 bytes);

// ---- events.cpp --------------------------------------------------------------------------------------------

// How often an event was recorded, and up to which of these its streams have come. Words of a page that processes
// share, or of this process alone.
struct Counters {
    std::atomic<u32> recorded, done, destroyed;
    // The nanoseconds of the last.
    std::atomic<u64> time;
};
// Those in a page of a file.
std::shared_ptr<Counters> counters_in(int fd);

// ---- slices.cpp --------------------------------------------------------------------------------------------

// What a thread calls before and after it uses a device, where processes have it in turns.
struct Turns {
    void (*begin)(void* of);
    void (*end)(void* of);
    void* of;
};
Turns turns_of(int device);
// Takes a device for this process alone: a descriptor that keeps it, or -1 where another process has it.
int occupy(int device);

// ---- faults.cpp --------------------------------------------------------------------------------------------

// Has a fault say what the driver knows of its address before the process ends of it.
void explain_faults();

} // namespace fake

struct CUctx_st {
    int ordinal, device;
    CUstream all; // the default stream
    std::mutex mutex;
    std::vector<std::shared_ptr<CUstream_st>> streams;
    std::atomic<fake::u64> used{0};
    std::map<CUcontext, bool> opened; // contexts whose memory it reaches
    std::atomic<int> retained{0};
    int occupied = -1;
};

struct CUstream_st {
    CUcontext context;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> queue;
    fake::u64 pushed = 0, done = 0;
    bool ends = false;
    std::shared_ptr<fake::Capture> capture; // while there is one
};

struct CUevent_st {
    std::shared_ptr<fake::Counters> counters;
    int fd;      // that other processes open, or -1
    bool opened; // from another process
    // Where a capture recorded it last: a lane, and how many works it had.
    std::weak_ptr<fake::Capture> capture;
    bool captured;
    size_t lane, works;
    bool timed;
};
