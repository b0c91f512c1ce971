// Devices: what they are, what they can, and how they reach each other.
#include "driver.h"

#include <dlfcn.h>

namespace fake {

static std::vector<int> numbers(const char* text, char between) {
    std::vector<int> all;
    for (const char* at = text; at != nullptr && *at != 0;) {
        all.push_back(atoi(at));
        at = strchr(at, between);
        at = at == nullptr ? nullptr : at + 1;
    }
    return all;
}

// Devices of the machine.
static int all_devices() {
    const char* given = getenv("ROUNDELAY_FAKE_DEVICES");
    return given == nullptr ? 1 : std::min(atoi(given), MOST_DEVICES);
}

static const std::vector<int>& visible() {
    static const std::vector<int> devices = [] {
        const char* given = getenv("ROUNDELAY_FAKE_VISIBLE");
        std::vector<int> all = numbers(given, ',');
        for (int device = 0; given == nullptr && device < all_devices(); ++device) {
            all.push_back(device);
        }
        return all;
    }();
    return devices;
}

int device_count() { return int(visible().size()); }

int device_of(int ordinal) { return ordinal < 0 || ordinal >= device_count() ? -1 : visible()[size_t(ordinal)]; }

int ordinal_of(int device) {
    for (int ordinal = 0; ordinal < device_count(); ++ordinal) {
        if (visible()[size_t(ordinal)] == device) {
            return ordinal;
        }
    }
    return -1;
}

bool reaches(int from, int to) {
    const int alone = all_devices() - 1;
    return from == to || (from != alone && to != alone);
}

static bool by_pcie() {
    const char* given = getenv("ROUNDELAY_FAKE_LINK");
    return given != nullptr && strcmp(given, "pcie") == 0;
}

int attribute(int number, int device) {
    static const std::map<int, int> given = [] {
        std::map<int, int> all;
        const char* text = getenv("ROUNDELAY_FAKE_ATTRIBUTES");
        const std::vector<int> keys = numbers(text, ',');
        for (const int key : keys) {
            const std::string named = std::to_string(key) + "=";
            all[key] = atoi(strstr(text, named.c_str()) + named.size());
        }
        return all;
    }();
    if (const auto found = given.find(number); found != given.end()) {
        return found->second;
    }
    switch (number) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return 16;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return 9;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE: return CU_COMPUTEMODE_DEFAULT;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return device + 1;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
    case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MPS_ENABLED: return 0;
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES: return CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    default: return 1;
    }
}

// Whether both are devices, and not one.
static CUresult pair(CUdevice a, CUdevice b) {
    return device_of(a) < 0 || device_of(b) < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

} // namespace fake

using namespace fake;

extern "C" {

CUresult cuDriverGetVersion(int* version) {
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
    TRY(callable());
    *count = device_count();
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    TRY(callable());
    *device = ordinal;
    return device_of(ordinal) < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int room, CUdevice device) {
    TRY(pair(device, device));
    snprintf(name, size_t(room), "Paper GPU %d", device_of(device));
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    TRY(pair(device, device));
    memcpy(uuid->bytes, "roundelay paper", 15);
    uuid->bytes[15] = char(device_of(device));
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char* id, int room, CUdevice device) {
    TRY(pair(device, device));
    const int length = snprintf(id, size_t(room), "0000:%02x:00.0", device_of(device) + 1);
    return length < room ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
    TRY(pair(device, device));
    *bytes = ROOM;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute number, CUdevice device) {
    TRY(callable());
    TRY(pair(device, device));
    if (number <= 0 || number >= CU_DEVICE_ATTRIBUTE_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *value = attribute(number, device_of(device));
    return CUDA_SUCCESS;
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice a, CUdevice b) {
    TRY(pair(a, b));
    // As on a GPU, no device is its own peer.
    *can = a != b && reaches(device_of(a), device_of(b));
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute number, CUdevice a, CUdevice b) {
    TRY(pair(a, b));
    if (a == b) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    const bool reached = reaches(device_of(a), device_of(b));
    switch (int(number)) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: *value = by_pcie(); break;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED: *value = reached; break;
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED: *value = reached && !by_pcie(); break;
    case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED: *value = 0; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

// NVRTC asks the driver for a cache of its own, and does without.
CUresult cuGetExportTable(const void**, const CUuuid*) { return CUDA_ERROR_NOT_FOUND; }
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t,
                          CUdriverProcAddressQueryResult* status) {
    static void* self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    *function = nullptr;
    // The newest form that there is, but for a program of an older release.
    for (const char* form : {"_v4", "_v3", "_v2", ""}) {
        const std::string name = std::string(symbol) + form;
        const bool newer = (name == "cuStreamGetCaptureInfo_v3" && version < 12030) ||
                           (name == "cuGetProcAddress_v2" && version < 12000);
        if (!newer && *function == nullptr) {
            *function = dlsym(self, name.c_str());
        }
    }
    if (status != nullptr) {
        *status = *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
#undef cuDeviceGetUuid
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }
#undef cuGetProcAddress
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
    return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}
CUresult cuGetErrorName(CUresult error, const char** text) {
    switch (error) {
#define NAMED(CODE)                                                                                                    \
    case CODE: *text = #CODE; return CUDA_SUCCESS
        NAMED(CUDA_SUCCESS);
        NAMED(CUDA_ERROR_INVALID_VALUE);
        NAMED(CUDA_ERROR_OUT_OF_MEMORY);
        NAMED(CUDA_ERROR_NOT_INITIALIZED);
        NAMED(CUDA_ERROR_DEVICE_UNAVAILABLE);
        NAMED(CUDA_ERROR_INVALID_DEVICE);
        NAMED(CUDA_ERROR_INVALID_CONTEXT);
        NAMED(CUDA_ERROR_CONTEXT_IS_DESTROYED);
        NAMED(CUDA_ERROR_MAP_FAILED);
        NAMED(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
        NAMED(CUDA_ERROR_INVALID_HANDLE);
        NAMED(CUDA_ERROR_ILLEGAL_STATE);
        NAMED(CUDA_ERROR_NOT_FOUND);
        NAMED(CUDA_ERROR_NOT_READY);
        NAMED(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
        NAMED(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
        NAMED(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        NAMED(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        NAMED(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
        NAMED(CUDA_ERROR_NOT_PERMITTED);
        NAMED(CUDA_ERROR_NOT_SUPPORTED);
        NAMED(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        NAMED(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        NAMED(CUDA_ERROR_STREAM_CAPTURE_MERGE);
        NAMED(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        NAMED(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
        NAMED(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
        NAMED(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        NAMED(CUDA_ERROR_CAPTURED_EVENT);
        NAMED(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    default: *text = nullptr; return CUDA_ERROR_INVALID_VALUE;
    }
}
CUresult cuGetErrorString(CUresult error, const char** text) {
    if (error == CUDA_ERROR_OUT_OF_MEMORY) {
        *text = "out of memory";
        return CUDA_SUCCESS;
    }
    return cuGetErrorName(error, text);
}
}
