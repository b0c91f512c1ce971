// Memory: blocks of a device and of the host, what the driver knows of an address, and copies.
#include "driver.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace fake {

Memory memory;

// The value of the bytes behind a block, up to the end of its last page.
static constexpr unsigned char UNTOUCHED = 0xc3;
static constexpr int ANYWHERE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

static void* pointer(u64 address) { return reinterpret_cast<void*>(address); }

// ---- addresses ---------------------------------------------------------------------------------------------

// Addresses without a use, by their bytes: the next block gets those of the last one that was freed, as on a GPU.
static std::mutex unused_mutex;
static std::map<u64, std::vector<u64>> unused;

u64 reserve(u64 bytes, u64 alignment, u64 wish) {
    {
        std::lock_guard<std::mutex> hold(unused_mutex);
        std::vector<u64>& fitting = unused[bytes];
        for (size_t i = fitting.size(); i-- > 0;) {
            const u64 base = fitting[i];
            if (base % alignment == 0 && (wish == 0 || wish == base)) {
                fitting.erase(fitting.begin() + long(i));
                return base;
            }
        }
    }
    if (wish != 0 && wish % alignment == 0) {
        void* at = mmap(pointer(wish - PAGE), bytes + 2 * PAGE, PROT_NONE, ANYWHERE | MAP_FIXED_NOREPLACE, -1, 0);
        if (at == pointer(wish - PAGE)) {
            return wish;
        }
    }
    void* at = mmap(nullptr, bytes + 2 * PAGE + alignment, PROT_NONE, ANYWHERE, -1, 0);
    return at == MAP_FAILED ? 0 : rounded(u64(at) + PAGE, alignment);
}

void withdraw(u64 base, u64 bytes) { mmap(pointer(base), bytes, PROT_NONE, ANYWHERE | MAP_FIXED, -1, 0); }

void unreserve(u64 base, u64 bytes) {
    withdraw(base, bytes);
    std::lock_guard<std::mutex> hold(unused_mutex);
    unused[bytes].push_back(base);
}

bool show(u64 base, u64 bytes, int fd, int protection) {
    return mmap(pointer(base), bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
}

int new_file(const std::string& name, u64 bytes) {
    const int fd = memfd_create(name.c_str(), MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, off_t(bytes)) != 0) {
        return -1;
    }
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        close(fd);
        return -1;
    }
    memset(at, 0xa5, bytes);
    munmap(at, bytes);
    return fd;
}

// ---- ranges ------------------------------------------------------------------------------------------------

Range* range_at(u64 address) {
    auto after = memory.ranges.upper_bound(address);
    if (after == memory.ranges.begin()) {
        return nullptr;
    }
    Range& range = std::prev(after)->second;
    return address < range.end() ? &range : nullptr;
}

void enter(Range range) {
    range.id = memory.next_id++;
    std::lock_guard<std::mutex> hold(memory.mutex);
    memory.ranges[range.base] = std::move(range);
}

CUresult reachable(u64 address, u64 bytes) {
    std::lock_guard<std::mutex> hold(memory.mutex);
    for (u64 at = address; at < address + bytes;) {
        const Range* range = range_at(at);
        if (range == nullptr) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (range->kind == Kind::MAPPED && range->access[size_t(current->device)] == 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        // Blocks that lie side by side are not one, but mappings are.
        if (range->kind != Kind::MAPPED && address + bytes > range->end()) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        at = range->end();
    }
    return CUDA_SUCCESS;
}

CUresult take(CUcontext context, u64 bytes) {
    if (context->used + bytes > ROOM) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    context->used += bytes;
    return CUDA_SUCCESS;
}

// ---- blocks ------------------------------------------------------------------------------------------------

static CUresult allocate(Kind kind, u64* at, u64 bytes, unsigned flags) {
    if (bytes == 0 || at == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const bool host = kind == Kind::HOST;
    if (!host) {
        TRY(take(current, bytes));
    }
    const u64 whole = rounded(bytes, PAGE), base = reserve(whole, PAGE, 0);
    const int fd = new_file("roundelay-block", whole);
    if (base == 0 || fd < 0 || !show(base, whole, fd, PROT_READ | PROT_WRITE)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memset(pointer(base + bytes), UNTOUCHED, whole - bytes);
    // Others open a plain block alone.
    if (kind != Kind::PLAIN) {
        close(fd);
    }
    const int device = host ? -1 : current->device, kept = kind == Kind::PLAIN ? fd : -1;
    enter({base, bytes, kind, device, current, 0, kept, flags, nullptr, {}});
    *at = base;
    return CUDA_SUCCESS;
}

static void free_block(u64 base) {
    Range range;
    {
        std::lock_guard<std::mutex> hold(memory.mutex);
        const auto found = memory.ranges.find(base);
        if (found == memory.ranges.end()) {
            fprintf(stderr, "the driver for tests: no block begins at %#llx\n", static_cast<unsigned long long>(base));
            abort();
        }
        range = std::move(found->second);
        memory.ranges.erase(found);
    }
    const u64 whole = rounded(range.bytes, PAGE);
    for (u64 i = range.bytes; i < whole; ++i) {
        if (static_cast<const unsigned char*>(pointer(base))[i] != UNTOUCHED) {
            fprintf(stderr, "the driver for tests: a write beyond a block of %llu bytes\n",
                    static_cast<unsigned long long>(range.bytes));
            abort();
        }
    }
    if (range.kind != Kind::HOST) {
        range.context->used -= range.bytes;
    }
    if (range.fd >= 0) {
        // Who has it open still, in whatever process, ends at its next access.
        if (ftruncate(range.fd, 0) != 0) {
            abort();
        }
        close(range.fd);
    }
    unreserve(base, whole);
}

// Whether a block of one of these kinds begins at an address.
static CUresult begins(u64 base, Kind a, Kind b) {
    std::lock_guard<std::mutex> hold(memory.mutex);
    const Range* range = range_at(base);
    const bool right = range != nullptr && range->base == base && (range->kind == a || range->kind == b);
    return right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Whether every page of the host's memory is there.
static bool is_there(u64 base, u64 bytes) {
    const u64 from = base / PAGE * PAGE, to = rounded(base + bytes, PAGE);
    std::vector<unsigned char> pages((to - from) / PAGE);
    return mincore(pointer(from), to - from, pages.data()) == 0;
}

} // namespace fake

using namespace fake;

// Whether an address is of pinned memory of the host.
static bool is_pinned(u64 at) {
    std::lock_guard<std::mutex> hold(memory.mutex);
    const Range* range = range_at(at);
    return range != nullptr && (range->kind == Kind::HOST || range->kind == Kind::REGISTERED);
}

extern "C" {

CUresult cuMemAlloc(CUdeviceptr* at, size_t bytes) {
    TRY(usable());
    TRY(outside_captures());
    u64 base = 0;
    TRY(allocate(Kind::PLAIN, &base, bytes, 0));
    *at = base;
    return CUDA_SUCCESS;
}
CUresult cuMemAllocAsync(CUdeviceptr* at, size_t bytes, CUstream) {
    TRY(usable());
    u64 base = 0;
    TRY(allocate(Kind::POOL, &base, bytes, 0));
    *at = base;
    return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr at) {
    TRY(usable());
    if (at == 0) {
        return CUDA_SUCCESS;
    }
    TRY(outside_captures());
    TRY(begins(at, Kind::PLAIN, Kind::POOL));
    // As on a GPU, after whatever may use it.
    TRY(finish_all());
    free_block(at);
    return CUDA_SUCCESS;
}
CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream) {
    TRY(usable());
    TRY(begins(at, Kind::PLAIN, Kind::POOL));
    return push(stream, [at] { free_block(at); });
}
CUresult cuMemHostAlloc(void** at, size_t bytes, unsigned flags) {
    TRY(usable());
    TRY(outside_captures());
    u64 base = 0;
    TRY(allocate(Kind::HOST, &base, bytes, flags));
    *at = pointer(base);
    return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* at) {
    TRY(callable());
    TRY(outside_captures());
    TRY(begins(u64(at), Kind::HOST, Kind::HOST));
    free_block(u64(at));
    return CUDA_SUCCESS;
}
CUresult cuMemHostRegister(void* at, size_t bytes, unsigned flags) {
    TRY(usable());
    TRY(outside_captures());
    const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
    const u64 base = u64(at);
    if (at == nullptr || bytes == 0 || (flags & ~known) != 0 || !is_there(base, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    {
        std::lock_guard<std::mutex> hold(memory.mutex);
        const auto next = memory.ranges.lower_bound(base);
        if (range_at(base) != nullptr || (next != memory.ranges.end() && next->first < base + bytes)) {
            return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        }
    }
    enter({base, bytes, Kind::REGISTERED, -1, current, 0, -1, flags, nullptr, {}});
    return CUDA_SUCCESS;
}
CUresult cuMemHostUnregister(void* at) {
    TRY(callable());
    TRY(outside_captures());
    TRY(begins(u64(at), Kind::REGISTERED, Kind::HOST));
    std::lock_guard<std::mutex> hold(memory.mutex);
    const Range* range = range_at(u64(at));
    if (range->kind != Kind::REGISTERED) {
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    memory.ranges.erase(range->base);
    return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* at, unsigned flags) {
    TRY(usable());
    // Memory of the host has one address everywhere.
    *device = u64(at);
    return is_pinned(u64(at)) && flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemHostGetFlags(unsigned* flags, void* at) {
    TRY(usable());
    TRY(begins(u64(at), Kind::HOST, Kind::REGISTERED));
    std::lock_guard<std::mutex> hold(memory.mutex);
    *flags = range_at(u64(at))->flags;
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream) {
    TRY(usable());
    TRY(reachable(at, bytes));
    return push_copy(stream, [=] { memset(pointer(at), value, bytes); });
}
// Memory of the host that is not pinned is read before the call returns; pinned memory when the stream comes to the copy.
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    TRY(usable());
    TRY(reachable(to, bytes));
    const auto* begin = static_cast<const char*>(from);
    if (is_pinned(u64(from))) {
        return push_copy(stream, [=] { memcpy(pointer(to), begin, bytes); });
    }
    return push_copy(stream, [=, copy = std::vector<char>(begin, begin + bytes)] {
        memcpy(pointer(to), copy.data(), bytes);
    });
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    TRY(usable());
    TRY(reachable(from, bytes));
    return push_copy(stream, [=] { memcpy(to, pointer(from), bytes); });
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    TRY(usable());
    TRY(reachable(to, bytes));
    TRY(reachable(from, bytes));
    return push_copy(stream, [=] { memmove(pointer(to), pointer(from), bytes); });
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes, CUstream stream) {
    return cuMemcpyDtoDAsync(to, from, bytes, stream);
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
    TRY(outside_captures());
    TRY(cuMemcpyHtoDAsync(to, from, bytes, CU_STREAM_LEGACY));
    return finish(CU_STREAM_LEGACY);
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
    TRY(outside_captures());
    TRY(cuMemcpyDtoHAsync(to, from, bytes, CU_STREAM_LEGACY));
    return finish(CU_STREAM_LEGACY);
}
}
