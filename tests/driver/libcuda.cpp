// A driver of our own: the few functions of libcuda that the engine calls, on a CPU. Streams are threads with a queue, so
// everything is as asynchronous as on a GPU; memory is the process's, full of 0xa5 until somebody writes it.
//
// A module is found by a hash of its machine code: ROUNDELAY_FAKE/HASH.so is its text, compiled by g++ with the shim, which
// libnvrtc.cpp puts there.
// ROUNDELAY_FAKE_DEVICES devices, of which the last reaches no other; each holds 16 x 2 CTAs and 64 MiB.
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

#include <dlfcn.h>
#include <elf.h>

#include "hash.h"

using u32 = uint32_t;
using u64 = uint64_t;

namespace {

using Graph = std::vector<std::function<void()>>;

enum Result { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, PEER_ALREADY = 704, NOT_FOUND = 500, NOT_READY = 600, CAPTURE_UNSUPPORTED = 900 };

constexpr u64 ROOM = 64 << 20;
constexpr int MULTIPROCESSORS = 16, RESIDENT = 2;

int device_count() {
    const char* given = getenv("ROUNDELAY_FAKE_DEVICES");
    return given == nullptr ? 1 : atoi(given);
}

struct Flag {
    std::mutex mutex;
    std::condition_variable changed;
    bool set = false;

    void raise() {
        std::lock_guard<std::mutex> hold(mutex);
        set = true;
        changed.notify_all();
    }
    void wait() {
        std::unique_lock<std::mutex> hold(mutex);
        changed.wait(hold, [this] { return set; });
    }
    bool is_set() {
        std::lock_guard<std::mutex> hold(mutex);
        return set;
    }
};

struct Stream {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> queue;
    // While it captures, what a graph will do.
    std::shared_ptr<Graph> captured;

    Stream() {
        std::thread([this] {
            for (;;) {
                std::unique_lock<std::mutex> hold(mutex);
                changed.wait(hold, [this] { return !queue.empty(); });
                const auto work = std::move(queue.front());
                queue.pop_front();
                hold.unlock();
                work();
            }
        }).detach();
    }

    void push(std::function<void()> work) {
        std::lock_guard<std::mutex> hold(mutex);
        if (captured != nullptr) {
            captured->push_back(std::move(work));
            return;
        }
        queue.push_back(std::move(work));
        changed.notify_all();
    }

    void finish() {
        const auto flag = std::make_shared<Flag>();
        push([flag] { flag->raise(); });
        flag->wait();
    }
};

struct Event {
    std::shared_ptr<Flag> last;
};

struct Context {
    int device;
    Stream all; // the default stream
    std::mutex mutex;
    std::vector<Stream*> streams;
    std::atomic<u64> used{0};
    std::map<Context*, bool> reaches;
};

Context& context(int device) {
    static std::mutex mutex;
    static std::map<int, Context*> contexts;
    std::lock_guard<std::mutex> hold(mutex);
    Context*& found = contexts[device];
    if (found == nullptr) {
        found = new Context{};
        found->device = device;
    }
    return *found;
}

thread_local Context* current = nullptr;

Stream& stream_of(void* stream) { return stream == nullptr ? current->all : *static_cast<Stream*>(stream); }

// Bytes before and behind each block that nobody may write, and their value.
constexpr u64 GUARD = 256;
constexpr unsigned char UNTOUCHED = 0xc3;

// How long each block is, and whose.
struct Blocks {
    std::mutex mutex;
    std::map<u64, std::pair<u64, Context*>> all;
} blocks;

int allocate(u64* at, u64 bytes) {
    if (bytes == 0) {
        return INVALID_VALUE;
    }
    if (current->used + bytes > ROOM) {
        return OUT_OF_MEMORY;
    }
    current->used += bytes;
    void* memory = nullptr;
    if (posix_memalign(&memory, GUARD, GUARD + bytes + GUARD) != 0) {
        return OUT_OF_MEMORY;
    }
    memset(memory, UNTOUCHED, GUARD + bytes + GUARD);
    *at = u64(memory) + GUARD;
    memset(reinterpret_cast<void*>(*at), 0xa5, bytes);
    std::lock_guard<std::mutex> hold(blocks.mutex);
    blocks.all[*at] = {bytes, current};
    return SUCCESS;
}

void release(u64 at) {
    std::lock_guard<std::mutex> hold(blocks.mutex);
    const auto found = blocks.all.find(at);
    if (found == blocks.all.end()) {
        fprintf(stderr, "the driver for tests: no block begins at %#llx\n", static_cast<unsigned long long>(at));
        abort();
    }
    const auto [bytes, of] = found->second;
    for (u64 i = 0; i < GUARD; ++i) {
        const auto* whole = reinterpret_cast<const unsigned char*>(at);
        if (whole[i - GUARD] != UNTOUCHED || whole[bytes + i] != UNTOUCHED) {
            fprintf(stderr, "the driver for tests: a write beyond a block of %llu bytes\n",
                    static_cast<unsigned long long>(bytes));
            abort();
        }
    }
    of->used -= bytes;
    memset(reinterpret_cast<void*>(at - GUARD), 0x5a, GUARD + bytes + GUARD);
    free(reinterpret_cast<void*>(at - GUARD));
    blocks.all.erase(found);
}

struct Module {
    void* library;
};

struct Function {
    Module* module;
    std::string name;
};

// Bytes of an image, which begins with its own table of contents.
u64 size_of(const unsigned char* image) {
    const auto* elf = reinterpret_cast<const Elf64_Ehdr*>(image);
    u64 size = elf->e_shoff + u64(elf->e_shnum) * elf->e_shentsize;
    size = std::max(size, elf->e_phoff + u64(elf->e_phnum) * elf->e_phentsize);
    for (int i = 0; i < elf->e_shnum; ++i) {
        const auto* section = reinterpret_cast<const Elf64_Shdr*>(image + elf->e_shoff + u64(i) * elf->e_shentsize);
        if (section->sh_type != SHT_NOBITS) {
            size = std::max(size, section->sh_offset + section->sh_size);
        }
    }
    return size;
}

using Run = void (*)(const char* name, unsigned grid, const void* launch);

struct Addresses {
    u64 (*ranks)[5];
    u64 first, count, at[64][2];
};

int launch(Function* function, unsigned grid, void* stream, void** params) {
    if (function->name == "roundelay_bind") {
        const Addresses call = *static_cast<Addresses*>(params[0]);
        stream_of(stream).push([call] {
            for (u64 i = 0; i < call.count; ++i) {
                call.ranks[call.first + i][0] = call.at[i][0];
                call.ranks[call.first + i][1] = call.at[i][1];
            }
        });
        return SUCCESS;
    }
    // What is driven from the host takes so many words, and a kernel fewer.
    const size_t words = function->name == "roundelay_driven" ? 12 : 10;
    const auto* first = static_cast<const u64*>(params[0]);
    const auto run = reinterpret_cast<Run>(dlsym(function->module->library, "fake_run"));
    stream_of(stream).push([=, argument = std::vector<u64>(first, first + words)] {
        run(function->name.c_str(), grid, argument.data());
    });
    return SUCCESS;
}

} // namespace

extern "C" {

int cuInit(unsigned) { return SUCCESS; }
// NVRTC asks the driver for a cache of its own, and does without.
int cuGetExportTable(const void**, const void*) { return NOT_FOUND; }
int cuGetErrorString(int error, const char** text) {
    *text = error == OUT_OF_MEMORY ? "out of memory" : "an error of the driver for tests";
    return SUCCESS;
}
int cuGetErrorName(int, const char** text) {
    *text = "FAKE";
    return SUCCESS;
}
int cuDeviceGetCount(int* count) {
    *count = device_count();
    return SUCCESS;
}
int cuDeviceGet(int* device, int ordinal) {
    *device = ordinal;
    return ordinal < device_count() ? SUCCESS : INVALID_DEVICE;
}
int cuDeviceGetName(char* name, int, int device) {
    sprintf(name, "Paper GPU %d", device);
    return SUCCESS;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
    switch (attribute) {
    case 16: *value = MULTIPROCESSORS; break;
    case 75: *value = 9; break;
    case 76: *value = 0; break;
    default: *value = 1; break;
    }
    return SUCCESS;
}
int cuDeviceGetMemPool(void** pool, int) {
    *pool = nullptr;
    return SUCCESS;
}
int cuMemPoolSetAccess(void*, const void*, size_t) { return SUCCESS; }
int cuDeviceCanAccessPeer(int* can, int a, int b) {
    const int alone = device_count() - 1;
    *can = a != alone && b != alone;
    return SUCCESS;
}
int cuCtxEnablePeerAccess(void* peer, unsigned) {
    bool& reaches = current->reaches[static_cast<Context*>(peer)];
    const int result = reaches ? PEER_ALREADY : SUCCESS;
    reaches = true;
    return result;
}
int cuDevicePrimaryCtxRetain(void** ctx, int device) {
    *ctx = &context(device);
    return SUCCESS;
}
int cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
int cuCtxGetCurrent(void** ctx) {
    *ctx = current;
    return SUCCESS;
}
int cuCtxSetCurrent(void* ctx) {
    current = static_cast<Context*>(ctx);
    return SUCCESS;
}
int cuCtxSynchronize() {
    current->all.finish();
    std::vector<Stream*> streams;
    {
        std::lock_guard<std::mutex> hold(current->mutex);
        streams = current->streams;
    }
    for (Stream* stream : streams) {
        stream->finish();
    }
    return SUCCESS;
}
int cuMemGetInfo_v2(size_t* left, size_t* total) {
    *left = ROOM - current->used;
    *total = ROOM;
    return SUCCESS;
}
int cuMemAlloc_v2(u64* at, size_t bytes) { return allocate(at, bytes); }
int cuMemAllocAsync(u64* at, size_t bytes, void*) { return allocate(at, bytes); }
int cuMemFree_v2(u64 at) {
    release(at);
    return SUCCESS;
}
int cuMemFreeAsync(u64 at, void* stream) {
    stream_of(stream).push([at] { release(at); });
    return SUCCESS;
}
int cuMemHostAlloc(void** at, size_t bytes, unsigned) {
    *at = malloc(bytes);
    memset(*at, 0xa5, bytes);
    return SUCCESS;
}
int cuMemFreeHost(void* at) {
    free(at);
    return SUCCESS;
}
int cuMemHostGetDevicePointer_v2(u64* device, void* at, unsigned) {
    *device = u64(at);
    return SUCCESS;
}
int cuMemsetD8Async(u64 at, unsigned char value, size_t bytes, void* stream) {
    stream_of(stream).push([=] { memset(reinterpret_cast<void*>(at), value, bytes); });
    return SUCCESS;
}
// Memory of the host that is not pinned is read before the call returns.
int cuMemcpyHtoDAsync_v2(u64 to, const void* from, size_t bytes, void* stream) {
    const auto* begin = static_cast<const char*>(from);
    stream_of(stream).push([=, copy = std::vector<char>(begin, begin + bytes)] {
        memcpy(reinterpret_cast<void*>(to), copy.data(), bytes);
    });
    return SUCCESS;
}
int cuMemcpyDtoHAsync_v2(void* to, u64 from, size_t bytes, void* stream) {
    stream_of(stream).push([=] { memcpy(to, reinterpret_cast<void*>(from), bytes); });
    return SUCCESS;
}
int cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t bytes, void* stream) {
    stream_of(stream).push([=] { memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes); });
    return SUCCESS;
}
int cuStreamCreate(void** stream, unsigned) {
    auto* made = new Stream;
    std::lock_guard<std::mutex> hold(current->mutex);
    current->streams.push_back(made);
    *stream = made;
    return SUCCESS;
}
int cuStreamDestroy_v2(void*) { return SUCCESS; }
int cuStreamSynchronize(void* stream) {
    stream_of(stream).finish();
    return SUCCESS;
}
int cuStreamIsCapturing(void* stream, int* status) {
    *status = stream_of(stream).captured != nullptr;
    return SUCCESS;
}
// As on a GPU, the default stream captures nothing.
int cuStreamBeginCapture_v2(void* stream, int) {
    if (stream == nullptr) {
        return CAPTURE_UNSUPPORTED;
    }
    stream_of(stream).captured = std::make_shared<Graph>();
    return SUCCESS;
}
int cuStreamEndCapture(void* stream, void** graph) {
    *graph = new std::shared_ptr<Graph>(std::move(stream_of(stream).captured));
    return SUCCESS;
}
int cuGraphInstantiateWithFlags(void** made, void* graph, unsigned long long) {
    *made = new std::shared_ptr<Graph>(*static_cast<std::shared_ptr<Graph>*>(graph));
    return SUCCESS;
}
int cuGraphLaunch(void* graph, void* stream) {
    const auto works = *static_cast<std::shared_ptr<Graph>*>(graph);
    stream_of(stream).push([works] {
        for (const auto& work : *works) {
            work();
        }
    });
    return SUCCESS;
}
int cuGraphExecDestroy(void* graph) {
    delete static_cast<std::shared_ptr<Graph>*>(graph);
    return SUCCESS;
}
int cuGraphDestroy(void* graph) {
    delete static_cast<std::shared_ptr<Graph>*>(graph);
    return SUCCESS;
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
    if (const auto last = static_cast<Event*>(event)->last) {
        stream_of(stream).push([last] { last->wait(); });
    }
    return SUCCESS;
}
int cuEventCreate(void** event, unsigned) {
    *event = new Event;
    return SUCCESS;
}
int cuEventDestroy_v2(void* event) {
    delete static_cast<Event*>(event);
    return SUCCESS;
}
int cuEventRecord(void* event, void* stream) {
    const auto flag = std::make_shared<Flag>();
    static_cast<Event*>(event)->last = flag;
    stream_of(stream).push([flag] { flag->raise(); });
    return SUCCESS;
}
int cuEventQuery(void* event) {
    const auto last = static_cast<Event*>(event)->last;
    return last && !last->is_set() ? NOT_READY : SUCCESS;
}
int cuEventSynchronize(void* event) {
    if (const auto last = static_cast<Event*>(event)->last) {
        last->wait();
    }
    return SUCCESS;
}
int cuModuleLoadData(void** module, const void* image) {
    const auto* code = static_cast<const unsigned char*>(image);
    const char* folder = getenv("ROUNDELAY_FAKE");
    const std::string path = std::string(folder == nullptr ? "." : folder) + "/" + hex(hash(code, size_of(code))) + ".so";
    // What binds is in here.
    *module = new Module{dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)};
    return SUCCESS;
}
int cuModuleUnload(void*) { return SUCCESS; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
    auto* of = static_cast<Module*>(module);
    const std::string wanted = name;
    if (of->library == nullptr && wanted != "roundelay_bind") {
        return NOT_FOUND;
    }
    *function = new Function{of, wanted};
    return SUCCESS;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void*, int, size_t, unsigned) {
    *blocks = RESIDENT;
    return SUCCESS;
}
int cuLaunchKernel(void* function, unsigned grid, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void* stream,
                   void** params, void**) {
    return launch(static_cast<Function*>(function), grid, stream, params);
}
int cuLaunchCooperativeKernel(void* function, unsigned grid, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              void* stream, void** params) {
    return launch(static_cast<Function*>(function), grid, stream, params);
}
}
