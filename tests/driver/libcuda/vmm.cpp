// Memory whose addresses and bytes are apart: reservations, allocations with handles, mappings, and allocations of
// other processes, whose shareable handle is the descriptor of the file that has the bytes.
#include "driver.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fake {

// An allocation with the number of its handles.
struct Handle {
    std::shared_ptr<Physical> physical;
    int count;
};

static std::mutex blocks_lock;
static std::map<u64, u64> reservations; // and their bytes
static std::map<u64, Handle> handles;
static std::atomic<u64> next_handle{0x40000001};

Physical::~Physical() {
    close(fd);
    if (counted != nullptr) {
        counted->used -= bytes;
    }
}

static constexpr u64 SHAREABLE = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
static const char NAME[] = "/memfd:roundelay-physical:";

// Whether there are these functions here.
static CUresult has_functions() {
    TRY(usable());
    const bool has = attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, current->device) != 0;
    return has ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

// Whether allocations of this device may have handles of these types.
static CUresult shareable(u64 types, int device) {
    const u64 others = CU_MEM_HANDLE_TYPE_WIN32 | CU_MEM_HANDLE_TYPE_WIN32_KMT | CU_MEM_HANDLE_TYPE_FABRIC;
    if ((types & ~(SHAREABLE | others)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const int number = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
    const bool refused = (types & ~SHAREABLE) != 0 || (types != 0 && attribute(number, device) == 0);
    return refused ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

static CUresult aligned(u64 a, u64 b, u64 to) {
    return b != 0 && a % to == 0 && b % to == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static std::shared_ptr<Physical> physical_of(u64 handle) {
    std::lock_guard<std::mutex> hold(blocks_lock);
    const auto found = handles.find(handle);
    return found == handles.end() ? nullptr : found->second.physical;
}

static u64 hand_out(Physical* made) {
    std::lock_guard<std::mutex> hold(blocks_lock);
    made->handle = next_handle++;
    handles[made->handle] = {std::shared_ptr<Physical>(made), 1};
    return made->handle;
}

static const char MULTICAST_NAME[] = "/memfd:roundelay-multicast:";

// The devices that joined a multicast object, and those whose memory is bound to it: behind its bytes, in its file.
struct Joined {
    std::atomic<int> devices;
    std::atomic<bool> has[MOST_DEVICES], bound[MOST_DEVICES];
};

// They are mapped while this lives.
struct SharedJoined {
    u64 from, length;
    void* map;
    Joined* at;

    explicit SharedJoined(const Physical& object)
        : from(object.bytes / PAGE * PAGE), length(object.bytes + sizeof(Joined) - from),
          map(mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, object.fd, off_t(from))), at(nullptr) {
        if (map != MAP_FAILED) {
            at = reinterpret_cast<Joined*>(static_cast<char*>(map) + (object.bytes - from));
        }
    }
    SharedJoined(const SharedJoined&) = delete;
    ~SharedJoined() {
        if (map != MAP_FAILED) {
            munmap(map, length);
        }
    }
};

static CUresult has_multicast() {
    TRY(has_functions());
    const bool has = attribute(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, current->device) != 0;
    return has ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

// The mappings that fill a range, whole; none where something else is in it. The lock of the memory is held.
static std::vector<Range*> mappings(u64 address, u64 bytes) {
    std::vector<Range*> all;
    for (u64 at = address; at < address + bytes;) {
        Range* range = range_at(at);
        if (range == nullptr || range->kind != Kind::MAPPED || range->base != at || range->end() > address + bytes) {
            return {};
        }
        all.push_back(range);
        at = range->end();
    }
    return all;
}

} // namespace fake

using namespace fake;

extern "C" {

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags which) {
    TRY(has_functions());
    if (which != CU_MEM_ALLOC_GRANULARITY_MINIMUM && which != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *bytes = GRANULARITY;
    return device_of(prop->location.id) < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
    TRY(has_functions());
    TRY(outside_captures());
    const bool pinned = prop->type == CU_MEM_ALLOCATION_TYPE_PINNED;
    if (flags != 0 || !pinned || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const int device = device_of(prop->location.id);
    if (device < 0) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    TRY(aligned(0, bytes, GRANULARITY));
    const u64 types = u64(prop->requestedHandleTypes);
    TRY(shareable(types, device));
    TRY(take(current, bytes));
    const std::string name = "roundelay-physical:" + std::to_string(device) + ":" + std::to_string(types);
    const int fd = new_file(name, bytes);
    if (fd < 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = hand_out(new Physical{0, bytes, device, fd, types, current});
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    TRY(has_functions());
    std::shared_ptr<Physical> last;
    std::lock_guard<std::mutex> hold(blocks_lock);
    const auto found = handles.find(handle);
    if (found == handles.end()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    found->second.count -= 1;
    if (found->second.count == 0) {
        last = std::move(found->second.physical);
        handles.erase(found);
    }
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
    TRY(has_functions());
    std::shared_ptr<Physical> physical;
    {
        std::lock_guard<std::mutex> hold(memory.mutex);
        const Range* range = range_at(u64(address));
        if (range == nullptr || range->kind != Kind::MAPPED) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        physical = range->physical;
    }
    std::lock_guard<std::mutex> hold(blocks_lock);
    Handle& found = handles[physical->handle];
    found.physical = physical;
    found.count += 1;
    *handle = physical->handle;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle) {
    TRY(has_functions());
    const auto physical = physical_of(handle);
    if (physical == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *prop = {};
    prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop->requestedHandleTypes = CUmemAllocationHandleType(physical->types);
    prop->location = {};
    prop->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop->location.id = ordinal_of(physical->device);
    return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* shared, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long flags) {
    TRY(has_functions());
    const auto physical = physical_of(handle);
    if (physical == nullptr || flags != 0 || type == CU_MEM_HANDLE_TYPE_NONE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(shareable(type, physical->device));
    if ((physical->types & type) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const int fd = fcntl(physical->fd, F_DUPFD_CLOEXEC, 0);
    *static_cast<int*>(shared) = fd;
    return fd < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shared,
                                        CUmemAllocationHandleType type) {
    TRY(has_functions());
    TRY(outside_captures());
    if (type == CU_MEM_HANDLE_TYPE_NONE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(shareable(type, current->device));
    // Its name says what it is.
    const std::string link = "/proc/self/fd/" + std::to_string(int(i32(u64(shared))));
    char name[256];
    const ssize_t length = readlink(link.c_str(), name, sizeof name - 1);
    name[length < 0 ? 0 : length] = 0;
    int device = -1;
    unsigned long long types = 0;
    const bool multicast = strncmp(name, MULTICAST_NAME, sizeof MULTICAST_NAME - 1) == 0;
    if (!multicast && strncmp(name, NAME, sizeof NAME - 1) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sscanf(name + (multicast ? sizeof MULTICAST_NAME : sizeof NAME) - 1, "%d:%llu", &device, &types) != 2) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const int fd = fcntl(int(i32(u64(shared))), F_DUPFD_CLOEXEC, 0);
    struct stat file;
    if (fd < 0 || fstat(fd, &file) != 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    // What another process allocated is not of this one's room. A multicast object has its number of devices in that place.
    const u64 bytes = u64(file.st_size) - (multicast ? sizeof(Joined) : 0);
    Physical* made = new Physical{0, bytes, multicast ? current->device : device, fd, types, nullptr};
    made->members = multicast ? device : 0;
    *handle = hand_out(made);
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags) {
    TRY(has_functions());
    TRY(aligned(wish, bytes, PAGE));
    if (flags != 0 || (alignment & (alignment - 1)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const u64 base = reserve(bytes, std::max<u64>(alignment, GRANULARITY), wish);
    if (base == 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    std::lock_guard<std::mutex> hold(blocks_lock);
    reservations[base] = bytes;
    *address = base;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    TRY(has_functions());
    std::lock_guard<std::mutex> hold(blocks_lock);
    const auto found = reservations.find(address);
    if (found == reservations.end() || found->second != bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    {
        std::lock_guard<std::mutex> ranges(memory.mutex);
        const auto next = memory.ranges.lower_bound(address);
        if (next != memory.ranges.end() && next->first < address + bytes) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    reservations.erase(found);
    unreserve(address, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
    TRY(has_functions());
    TRY(outside_captures());
    TRY(aligned(address, bytes, GRANULARITY));
    const auto physical = physical_of(handle);
    if (physical == nullptr || offset != 0 || flags != 0 || bytes > physical->bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    {
        std::lock_guard<std::mutex> hold(blocks_lock);
        const auto after = reservations.upper_bound(address);
        const bool before = after != reservations.begin();
        if (!before || address + bytes > std::prev(after)->first + std::prev(after)->second) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        std::lock_guard<std::mutex> ranges(memory.mutex);
        const auto next = memory.ranges.lower_bound(address);
        if (range_at(address) != nullptr || (next != memory.ranges.end() && next->first < address + bytes)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    if (!show(address, bytes, physical->fd, PROT_NONE)) {
        return CUDA_ERROR_MAP_FAILED;
    }
    enter({address, bytes, Kind::MAPPED, physical->device, current, 0, -1, 0, physical, {}});
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
    TRY(has_functions());
    TRY(outside_captures());
    std::vector<std::shared_ptr<Physical>> last;
    std::lock_guard<std::mutex> hold(memory.mutex);
    const std::vector<Range*> all = mappings(address, bytes);
    if (all.empty()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    withdraw(address, bytes);
    for (Range* range : all) {
        last.push_back(std::move(range->physical));
        memory.ranges.erase(range->base);
    }
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access, size_t count) {
    TRY(has_functions());
    std::lock_guard<std::mutex> hold(memory.mutex);
    const std::vector<Range*> all = mappings(address, bytes);
    if (all.empty() || access == nullptr || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; ++i) {
        const bool flags = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                           access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                           access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !flags) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        const int device = device_of(access[i].location.id);
        for (const Range* range : all) {
            if (device < 0 || !reaches(device, range->device)) {
                return CUDA_ERROR_INVALID_DEVICE;
            }
        }
    }
    for (Range* range : all) {
        // The process has one view of its memory: what one of its devices may do, all of them do unnoticed, but for
        // copies.
        int most = 0;
        for (size_t i = 0; i < count; ++i) {
            range->access[size_t(device_of(access[i].location.id))] = access[i].flags;
        }
        for (const int each : range->access) {
            most |= each;
        }
        const int written = most == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_WRITE : 0;
        if (mprotect(reinterpret_cast<void*>(range->base), range->bytes, (most != 0 ? PROT_READ : 0) | written) != 0) {
            return CUDA_ERROR_MAP_FAILED;
        }
    }
    return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
    TRY(has_functions());
    std::lock_guard<std::mutex> hold(memory.mutex);
    const Range* range = range_at(address);
    const bool mapped = range != nullptr && range->kind == Kind::MAPPED;
    if (!mapped || location->type != CU_MEM_LOCATION_TYPE_DEVICE || device_of(location->id) < 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = static_cast<unsigned long long>(range->access[size_t(device_of(location->id))]);
    return CUDA_SUCCESS;
}

// ---- multicast: the object is a file with the devices that joined it, and as many bytes as its memory. Kernels here use each
// rank's own memory, so the bytes of its mapping are nobody's. ----------------------------------------------------------

CUresult cuMulticastGetGranularity(size_t* bytes, const CUmulticastObjectProp* prop, CUmulticastGranularity_flags which) {
    TRY(has_multicast());
    const bool known = which == CU_MULTICAST_GRANULARITY_MINIMUM || which == CU_MULTICAST_GRANULARITY_RECOMMENDED;
    if (!known || prop->numDevices == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *bytes = GRANULARITY;
    return CUDA_SUCCESS;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle* handle, const CUmulticastObjectProp* prop) {
    TRY(has_multicast());
    TRY(outside_captures());
    TRY(aligned(0, prop->size, GRANULARITY));
    if (prop->flags != 0 || prop->numDevices == 0 || prop->numDevices > MOST_DEVICES) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(shareable(prop->handleTypes, current->device));
    const std::string about = std::to_string(prop->numDevices) + ":" + std::to_string(prop->handleTypes);
    const int fd = new_file("roundelay-multicast:" + about, prop->size + sizeof(Joined));
    if (fd < 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    Physical* made = new Physical{0, prop->size, current->device, fd, prop->handleTypes, nullptr};
    made->members = int(prop->numDevices);
    if (const SharedJoined joined(*made); joined.at != nullptr) {
        memset(static_cast<void*>(joined.at), 0, sizeof(Joined));
    }
    *handle = hand_out(made);
    return CUDA_SUCCESS;
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice ordinal) {
    TRY(has_multicast());
    const auto object = physical_of(handle);
    const int device = device_of(ordinal);
    if (object == nullptr || object->members == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device < 0) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    const SharedJoined joined(*object);
    const bool full = joined.at == nullptr || joined.at->devices >= object->members;
    if (full || joined.at->has[device].exchange(true)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    joined.at->devices += 1;
    return CUDA_SUCCESS;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset, CUmemGenericAllocationHandle memory_handle,
                            size_t memory_offset, size_t bytes, unsigned long long flags) {
    TRY(has_multicast());
    TRY(outside_captures());
    const auto object = physical_of(handle), bound = physical_of(memory_handle);
    const bool objects = object != nullptr && object->members > 0 && bound != nullptr && bound->members == 0;
    if (!objects || flags != 0 || offset + bytes > object->bytes || memory_offset + bytes > bound->bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(aligned(offset, bytes, GRANULARITY));
    TRY(aligned(memory_offset, bytes, GRANULARITY));
    const SharedJoined joined(*object);
    // The driver waits for devices that have not joined, which hangs where one never does: here that is an error.
    if (joined.at == nullptr || joined.at->devices != object->members || !joined.at->has[bound->device]) {
        return CUDA_ERROR_NOT_READY;
    }
    return joined.at->bound[bound->device].exchange(true) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t, unsigned long long) {
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice ordinal, size_t offset, size_t bytes) {
    TRY(has_multicast());
    const auto object = physical_of(handle);
    const int device = device_of(ordinal);
    if (object == nullptr || object->members == 0 || device < 0 || offset + bytes > object->bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const SharedJoined joined(*object);
    const bool was = joined.at != nullptr && joined.at->bound[device].exchange(false);
    return was ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
}
