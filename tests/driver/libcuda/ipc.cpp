// Memory and events that other processes open by handles of 64 bytes, which name a process and a file that it has open.
#include "driver.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fake {

// What a handle says. A file that is closed and whose number another file has is told by its serial number.
struct Named {
    char kind[8];
    i32 process, fd;
    u64 since, file, bytes;
    i32 device; // of the machine
};
static_assert(sizeof(Named) <= CU_IPC_HANDLE_SIZE, "a handle holds it");

// When a process began, or 0 for none: another one may have its number later.
static u64 beginning(i32 process) {
    FILE* file = fopen(("/proc/" + std::to_string(process) + "/stat").c_str(), "r");
    char text[1024] = {};
    const size_t length = file == nullptr ? 0 : fread(text, 1, sizeof text - 1, file);
    if (file != nullptr) {
        fclose(file);
    }
    // The name of its program is in parentheses, and may have any other character.
    const char* at = length == 0 ? nullptr : strrchr(text, ')');
    for (int field = 2; at != nullptr && field < 22; ++field) {
        at = strchr(at + 1, ' ');
    }
    return at == nullptr ? 0 : strtoull(at, nullptr, 10);
}

static u64 file_of(int fd) {
    struct stat file;
    return fstat(fd, &file) == 0 && file.st_size > 0 ? u64(file.st_ino) : 0;
}

template <class Handle> static void name(Handle* handle, const char* kind, int fd, u64 bytes, int device) {
    Named named = {{}, getpid(), fd, beginning(getpid()), file_of(fd), bytes, device};
    snprintf(named.kind, sizeof named.kind, "%s", kind);
    *handle = {};
    memcpy(handle, &named, sizeof named);
}

// Reads a handle that this context may open.
template <class Handle> static CUresult read(const Handle& handle, const char* kind, Named& named) {
    memcpy(&named, &handle, sizeof named);
    if (strncmp(named.kind, kind, sizeof named.kind) != 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (named.process == getpid()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (named.since == 0 || beginning(named.process) != named.since) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return reaches(current->device, named.device) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

// Gets the file that a handle names from the process that has it.
static CUresult get(const Named& named, int& fd) {
    const int process = int(syscall(SYS_pidfd_open, named.process, 0));
    fd = process < 0 ? -1 : int(syscall(SYS_pidfd_getfd, process, named.fd, 0));
    // A process that is ending has no files.
    const bool closed = fd < 0 && (errno == EBADF || errno == ESRCH);
    if (process >= 0) {
        close(process);
    }
    if (fd < 0 && !closed) {
        const std::string path = "/proc/" + std::to_string(named.process) + "/fd/" + std::to_string(named.fd);
        fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    }
    if (fd < 0) {
        return closed ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_MAP_FAILED;
    }
    if (file_of(fd) != named.file) {
        close(fd);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return CUDA_SUCCESS;
}

// Memory that a context has open, by its file.
struct Opened {
    u64 base;
    int count;
};
static std::mutex handles_lock;
static std::map<std::pair<CUcontext, u64>, Opened> opened;

static CUresult has_events() {
    TRY(usable());
    const bool has = attribute(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, current->device) != 0;
    return has ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

} // namespace fake

using namespace fake;

extern "C" {

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr at) {
    TRY(usable());
    std::lock_guard<std::mutex> hold(memory.mutex);
    const Range* range = range_at(at);
    if (handle == nullptr || range == nullptr || range->kind != Kind::PLAIN || range->base != at) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    name(handle, "memory", range->fd, range->bytes, range->device);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* at, CUipcMemHandle handle, unsigned flags) {
    TRY(usable());
    TRY(outside_captures());
    if (at == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Named named;
    TRY(read(handle, "memory", named));
    std::lock_guard<std::mutex> hold(handles_lock);
    Opened& found = opened[{current, named.file}];
    if (found.count > 0) {
        found.count += 1;
        *at = found.base;
        return CUDA_SUCCESS;
    }
    int fd = -1;
    TRY(get(named, fd));
    const u64 whole = rounded(named.bytes, PAGE);
    found.base = reserve(whole, PAGE, 0);
    const bool shown = found.base != 0 && show(found.base, whole, fd, PROT_READ | PROT_WRITE);
    close(fd);
    if (!shown) {
        return CUDA_ERROR_MAP_FAILED;
    }
    found.count = 1;
    enter({found.base, named.bytes, Kind::OPENED, named.device, current, 0, -1, 0, nullptr, {}});
    *at = found.base;
    return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr at) {
    TRY(usable());
    TRY(outside_captures());
    {
        std::lock_guard<std::mutex> hold(memory.mutex);
        const Range* range = range_at(at);
        if (range == nullptr || range->kind != Kind::OPENED || range->base != at || range->context != current) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    TRY(finish_all());
    std::lock_guard<std::mutex> hold(handles_lock);
    for (auto each = opened.begin(); each != opened.end(); ++each) {
        if (each->second.base == at && each->second.count > 0) {
            each->second.count -= 1;
            if (each->second.count == 0) {
                opened.erase(each);
                std::lock_guard<std::mutex> ranges(memory.mutex);
                unreserve(at, rounded(memory.ranges[at].bytes, PAGE));
                memory.ranges.erase(at);
            }
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
    TRY(has_events());
    if (event == nullptr || event->fd < 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    name(handle, "event", event->fd, PAGE, current->device);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
    TRY(has_events());
    TRY(outside_captures());
    Named named;
    TRY(read(handle, "event", named));
    int fd = -1;
    TRY(get(named, fd));
    auto counters = counters_in(fd);
    close(fd);
    if (counters == nullptr) {
        return CUDA_ERROR_MAP_FAILED;
    }
    *event = new CUevent_st{std::move(counters), -1, true, {}, false, 0, 0, false};
    return CUDA_SUCCESS;
}
}
