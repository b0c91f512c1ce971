// Devices, blocks of memory, the host's memory, and what the driver knows of an address.
#include "calls.h"

#include <csignal>

static const Rank ALONE = {0, 1};

static void devices() {
    int count = 0, value = 0;
    EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
    OK(cuInit(0));
    OK(cuDriverGetVersion(&value));
    SAME(value, 13000);
    OK(cuDeviceGetCount(&count));
    SAME(count, 3);
    CUdevice device;
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 3));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice(&device));
    ALONE.begin(1);
    OK(cuCtxGetDevice(&device));
    SAME(device, 1);
    const int known[][2] = {{102, 1}, {103, 1}, {128, 0}, {132, 0}, {20, 0}, {125, 1}, {133, 0}, {90, 1}, {16, 16}};
    for (const auto& [number, expected] : known) {
        OK(cuDeviceGetAttribute(&value, CUdevice_attribute(number), 1));
        SAME(value, expected);
    }
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, CUdevice_attribute(100000), 1));
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&value, CUdevice_attribute(16), 3));
    CUuuid a, b;
    OK(cuDeviceGetUuid(&a, 0));
    OK(cuDeviceGetUuid(&b, 1));
    SAME(memcmp(&a, &b, sizeof a) != 0, 1);
    char id[20];
    OK(cuDeviceGetPCIBusId(id, 20, 1));
    SAME(strcmp(id, "0000:02:00.0"), 0);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetPCIBusId(id, 5, 1));
    // The last device reaches no other.
    const int pairs[][3] = {{0, 1, 1}, {1, 0, 1}, {0, 2, 0}, {2, 1, 0}, {1, 1, 0}};
    for (const auto& [from, to, expected] : pairs) {
        OK(cuDeviceCanAccessPeer(&value, from, to));
        SAME(value, expected);
        if (from == to) {
            EXPECT(CUDA_ERROR_INVALID_DEVICE,
                   cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, from, to));
            continue;
        }
        OK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, from, to));
        SAME(value, expected);
        OK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, from, to));
        SAME(value, expected);
    }
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAttribute(&value, CUdevice_P2PAttribute(9), 0, 1));
    CUcontext context;
    OK(cuDevicePrimaryCtxRetain(&context, 2));
    EXPECT(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(context, 0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxEnablePeerAccess(context, 0));
    EXPECT(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(context, 0));
    void* function = nullptr;
    CUdriverProcAddressQueryResult found;
    OK(cuGetProcAddress("cuMemAlloc", &function, 13000, 0, &found));
    SAME(function == reinterpret_cast<void*>(&cuMemAlloc), 1);
    EXPECT(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuMemAllocManaged", &function, 13000, 0, &found));
    SAME(found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    // A process that was forked has no driver.
    in_processes(1, [](const Rank&) {
        int none = 0;
        EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&none));
        EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuInit(0));
    });
}

template <class T> static T asked(CUpointer_attribute number, CUdeviceptr at) {
    T value = {};
    OK(cuPointerGetAttribute(&value, number, at));
    return value;
}

static void blocks() {
    ALONE.begin();
    CUdeviceptr plain = 0, pool = 0, other = 0;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&plain, 0));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&plain, 65 * MIB));
    OK(cuMemAlloc(&plain, 1000));
    OK(cuMemAllocAsync(&pool, 1000, nullptr));
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp prop = shareable();
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    const CUdeviceptr mapped = map(handle, 2 * MIB);
    void* host = nullptr;
    OK(cuMemHostAlloc(&host, 1000, 0));
    const CUdeviceptr all[] = {plain, pool, mapped, CUdeviceptr(host)};
    for (int i = 0; i < 4; ++i) {
        const auto type = i == 3 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        SAME(asked<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, all[i]), type);
        SAME(asked<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, all[i] + 5), i == 0);
        SAME(asked<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, all[i] + 5), all[i]);
        SAME(asked<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, all[i] + 5), i == 2 ? 2 * MIB : 1000);
        SAME(asked<unsigned long long>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, all[i]), i == 2);
        SAME(asked<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, all[i]) != nullptr, i == 1);
        SAME(asked<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, all[i]), 0);
        CUdeviceptr base = 0;
        size_t bytes = 0;
        OK(cuMemGetAddressRange(&base, &bytes, all[i] + 999));
        SAME(base, all[i]);
        SAME(bytes, i == 2 ? 2 * MIB : 1000);
    }
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&other, CU_POINTER_ATTRIBUTE_HOST_POINTER, plain));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuPointerGetAttribute(&other, CU_POINTER_ATTRIBUTE_BUFFER_ID, CUdeviceptr(&other)));
    // The other call knows nothing without an error.
    unsigned type = 9;
    unsigned long long id = 9;
    CUpointer_attribute numbers[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_BUFFER_ID};
    void* values[] = {&type, &id};
    OK(cuPointerGetAttributes(2, numbers, values, CUdeviceptr(&other)));
    SAME(type, 0);
    SAME(id, 0);
    // A block that gets the address of a freed one is another.
    OK(cuPointerGetAttributes(2, numbers, values, plain));
    SAME(type, CU_MEMORYTYPE_DEVICE);
    OK(cuMemFree(plain));
    SAME(faults(plain), true);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(plain));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(plain, nullptr));
    OK(cuMemAlloc(&other, 1000));
    SAME(other, plain);
    SAME(asked<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, other) != id, 1);
    // A block ends where it ends.
    OK(cuMemsetD8Async(other, 1, 1000, nullptr));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8Async(other, 1, 1001, nullptr));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(other + 8));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(mapped));
    OK(cuMemFree(pool));
    OK(cuMemFree(other));
    OK(cuMemFreeHost(host));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
}

// A write behind a block is found when it is freed.
static void behind_a_block() {
    signal(SIGABRT, [](int) { _exit(0); });
    ALONE.begin();
    CUdeviceptr at = 0;
    OK(cuMemAlloc(&at, 1000));
    SAME(faults(at - 1), true);
    SAME(faults(at + 4096), true);
    reinterpret_cast<unsigned char*>(at)[1000] = 1;
    cuMemFree(at);
    _exit(1);
}

// A page that processes share, which the host and the streams of all of them see.
static void registered() {
    in_processes(4, [](const Rank& self) {
        self.begin(self.rank % 2);
        auto* words = self.shared<std::atomic<uint64_t>>();
        void* at = words;
        const unsigned flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
        CUdeviceptr device = 0;
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&device, at, 0));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8Async(CUdeviceptr(at), 1, 8, nullptr));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(at));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(reinterpret_cast<void*>(4096), 4096, flags));
        OK(cuMemHostRegister(at, 4096, flags));
        EXPECT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(at, 4096, flags));
        OK(cuMemHostGetDevicePointer(&device, at, 0));
        SAME(asked<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device), CU_MEMORYTYPE_HOST);
        self.meet();
        if (self.rank == 0) {
            words[0] = 5;
        }
        OK(cuStreamWaitValue64(nullptr, device, 5, CU_STREAM_WAIT_VALUE_GEQ));
        OK(cuStreamWriteValue64(nullptr, device + 8 + 8 * CUdeviceptr(self.rank), 9, 0));
        OK(cuStreamSynchronize(nullptr));
        self.meet();
        for (int rank = 0; rank < self.nranks; ++rank) {
            SAME(words[1 + rank], 9);
        }
        // Registrations that lie side by side are two.
        OK(cuMemHostRegister(self.shared<char>() + 4096, 4096, flags));
        OK(cuMemsetD8Async(device + 4096, 1, 4096, nullptr));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8Async(device + 4000, 1, 4096, nullptr));
        OK(cuStreamSynchronize(nullptr));
        OK(cuMemHostUnregister(at));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&device, at, 0));
    });
}

const Case MEMORY[] = {
    {"devices", devices},
    {"blocks", blocks},
    {"behind_a_block", behind_a_block},
    {"registered", registered},
    {nullptr, nullptr},
};
