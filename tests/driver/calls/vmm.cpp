// Memory that is allocated, mapped and shared by handles.
#include "calls.h"

#include <fcntl.h>
#include <sys/wait.h>

static void one_process() {
    const Rank self = {0, 1};
    self.begin();
    CUmemAllocationProp prop = shareable();
    size_t granularity = 0;
    OK(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    SAME(granularity, 2 * MIB);
    CUmemGenericAllocationHandle handle = 0, again = 0;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, MIB, &prop, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, 0, &prop, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, 2 * MIB, &prop, 1));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&handle, 66 * MIB, &prop, 0));
    prop.location.id = 7;
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&handle, 2 * MIB, &prop, 0));
    prop.location.id = 0;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuMemCreate(&handle, 2 * MIB, &prop, 0));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    int fd = -1;
    // What has no type of handle is not shared.
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemRelease(handle));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
    prop = shareable();
    OK(cuMemCreate(&handle, 4 * MIB, &prop, 0));
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1));

    CUdeviceptr at = 0;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&at, 1000, 0, 0, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&at, 4 * MIB, 3, 0, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&at, 4 * MIB, 0, 0, 1));
    OK(cuMemAddressReserve(&at, 6 * MIB, 0, 0, 0));
    SAME(at % (2 * MIB), 0);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(at, 4 * MIB, 2 * MIB, handle, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(at, MIB, 0, handle, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(at + MIB, 2 * MIB, 0, handle, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(at, 6 * MIB, 0, handle, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(at + 4 * MIB, 4 * MIB, 0, handle, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(at, 4 * MIB, 0, handle, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(at, 4 * MIB, 0, handle + 100, 0));
    OK(cuMemMap(at, 4 * MIB, 0, handle, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(at, 2 * MIB, 0, handle, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(at + 2 * MIB, 2 * MIB, 0, handle, 0));

    // Nobody reaches it before an access is given.
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    SAME(faults(at), true);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8Async(at, 1, 10, nullptr));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(at, 2 * MIB, &access, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(at, 6 * MIB, &access, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(at, 4 * MIB, &access, 0));
    access.location.id = 7;
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuMemSetAccess(at, 4 * MIB, &access, 1));
    access.location.id = 0;
    OK(cuMemSetAccess(at, 4 * MIB, &access, 1));
    SAME(faults(at), false);
    SAME(faults(at, true), true);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    OK(cuMemSetAccess(at, 4 * MIB, &access, 1));
    unsigned long long flags = 0;
    OK(cuMemGetAccess(&flags, &access.location, at));
    SAME(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    SAME(faults(at + 4 * MIB - 1, true), false);
    SAME(faults(at + 4 * MIB), true);
    SAME(faults(at - 1), true);
    OK(cuMemsetD8Async(at, 1, 4 * MIB, nullptr));
    OK(cuStreamSynchronize(nullptr));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8Async(at, 1, 4 * MIB + 1, nullptr));

    // The bytes live while a handle or a mapping does.
    OK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(at + 5)));
    SAME(again, handle);
    OK(cuMemRelease(again));
    OK(cuMemRelease(handle));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
    OK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(at)));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(at, 6 * MIB));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(at, 2 * MIB));
    OK(cuMemUnmap(at, 4 * MIB));
    SAME(faults(at), true);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(at)));
    OK(cuMemMap(at + 2 * MIB, 4 * MIB, 0, again, 0));
    SAME(faults(at + 2 * MIB), true);
    OK(cuMemUnmap(at + 2 * MIB, 4 * MIB));
    OK(cuMemRelease(again));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(at, 4 * MIB));
    OK(cuMemAddressFree(at, 6 * MIB));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(at, 6 * MIB));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(at, 2 * MIB, 0, again, 0));
    // All room is there again.
    size_t left = 0, total = 0;
    OK(cuMemGetInfo(&left, &total));
    SAME(left, total);
    // What is no allocation is not imported.
    fd = open("/dev/null", O_RDONLY);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(size_t(fd)),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CUmulticastObjectProp many = {};
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuMulticastCreate(&handle, &many));
}

// A multicast object takes its devices first, and then their memory.
static void multicast() {
    const Rank self = {0, 1};
    self.begin();
    CUmulticastObjectProp prop = {};
    prop.numDevices = 2;
    prop.size = 2 * MIB;
    prop.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    size_t granularity = 0;
    OK(cuMulticastGetGranularity(&granularity, &prop, CU_MULTICAST_GRANULARITY_MINIMUM));
    SAME(granularity, 2 * MIB);
    CUmemGenericAllocationHandle object = 0, memory = 0, again = 0;
    prop.size = MIB;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMulticastCreate(&object, &prop));
    prop.size = 2 * MIB;
    prop.flags = 1;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMulticastCreate(&object, &prop));
    prop.flags = 0;
    prop.numDevices = 0;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMulticastCreate(&object, &prop));
    prop.numDevices = 2;
    OK(cuMulticastCreate(&object, &prop));
    const CUmemAllocationProp of_device = shareable();
    OK(cuMemCreate(&memory, 2 * MIB, &of_device, 0));
    EXPECT(CUDA_ERROR_NOT_READY, cuMulticastBindMem(object, 0, memory, 0, 2 * MIB, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMulticastAddDevice(memory, 0));
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuMulticastAddDevice(object, 7));
    OK(cuMulticastAddDevice(object, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMulticastAddDevice(object, 0));
    EXPECT(CUDA_ERROR_NOT_READY, cuMulticastBindMem(object, 0, memory, 0, 2 * MIB, 0));
    // Another process has a handle of its own.
    int fd = -1;
    OK(cuMemExportToShareableHandle(&fd, object, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemImportFromShareableHandle(&again, reinterpret_cast<void*>(size_t(fd)),
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    OK(cuMulticastAddDevice(again, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMulticastAddDevice(object, 2));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMulticastBindMem(object, 0, memory, 0, 4 * MIB, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMulticastBindMem(object, 0, object, 0, 2 * MIB, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMulticastBindMem(memory, 0, memory, 0, 2 * MIB, 0));
    OK(cuMulticastBindMem(object, 0, memory, 0, 2 * MIB, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMulticastBindMem(again, 0, memory, 0, 2 * MIB, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMulticastUnbind(again, 1, 0, 2 * MIB));
    OK(cuMulticastUnbind(again, 0, 0, 2 * MIB));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMulticastUnbind(object, 0, 0, 2 * MIB));
    OK(cuMemRelease(again));
    OK(cuMemRelease(object));
    OK(cuMemRelease(memory));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMulticastAddDevice(object, 1));
}

// Each rank writes to the memory of the next, and counts there; the first rank's memory outlives it.
static void ring(int nranks, int devices) {
    in_processes(nranks, [=](const Rank& self) {
        const int device = self.rank % devices, owner = (self.rank + 1) % self.nranks;
        self.begin(device);
        const CUmemAllocationProp prop = shareable(device);
        CUmemGenericAllocationHandle own = 0, other = 0;
        OK(cuMemCreate(&own, 2 * MIB, &prop, 0));
        CUdeviceptr mine = map(own, 2 * MIB, device);
        int fd = -1;
        OK(cuMemExportToShareableHandle(&fd, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        self.give((self.rank + self.nranks - 1) % self.nranks, fd);
        close(fd);
        const int taken = self.take();
        OK(cuMemImportFromShareableHandle(&other, reinterpret_cast<void*>(size_t(taken)),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
        close(taken);
        const CUdeviceptr theirs = map(other, 2 * MIB, device);
        CUmemAllocationProp told = {};
        OK(cuMemGetAllocationPropertiesFromHandle(&told, other));
        SAME(told.location.id, owner % devices);
        OK(cuMemRelease(own));
        OK(cuMemRelease(other));
        OK(cuMemsetD8Async(mine, 0, 2 * MIB, nullptr));
        OK(cuStreamSynchronize(nullptr));
        self.meet();
        OK(cuMemsetD8Async(theirs + MIB, (unsigned char)(100 + owner), 1000, nullptr));
        OK(cuStreamWriteValue64(nullptr, theirs, 7, CU_STREAM_WRITE_VALUE_DEFAULT));
        OK(cuStreamWaitValue64(nullptr, mine, 7, CU_STREAM_WAIT_VALUE_EQ));
        OK(cuStreamSynchronize(nullptr));
        unsigned char bytes[1000];
        OK(cuMemcpyDtoH(bytes, mine + MIB, 1000));
        SAME(bytes[999], 100 + self.rank);
        self.meet();
        if (self.rank == 0) {
            _exit(0);
        }
        if (owner == 0) {
            usleep(50000);
            OK(cuMemcpyDtoH(bytes, theirs + MIB, 1000));
            SAME(bytes[0], 100);
            OK(cuMemUnmap(theirs, 2 * MIB));
            SAME(faults(theirs), true);
        }
    });
}

static void two_processes_of_a_device() { ring(2, 1); }
static void four_processes_of_two_devices() { ring(4, 2); }

// Memory of a device that reaches no other is not another's.
static void devices_apart() {
    const Rank self = {0, 1};
    self.begin(2);
    const CUmemAllocationProp prop = shareable(2);
    CUmemGenericAllocationHandle handle = 0;
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    const CUdeviceptr at = map(handle, 2 * MIB, 2);
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = 0;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuMemSetAccess(at, 2 * MIB, &access, 1));
    // A copy is by the access of its own device.
    self.begin(0);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8Async(at, 1, 10, nullptr));
}

// A kernel that touches mapped memory before an access to it is given ends its process.
static void kernel_without_access() {
    in_processes(
        1,
        [](const Rank& self) {
            self.begin();
            const CUmemAllocationProp prop = shareable();
            CUmemGenericAllocationHandle handle = 0;
            CUdeviceptr at = 0;
            OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
            OK(cuMemAddressReserve(&at, 2 * MIB, 0, 0, 0));
            OK(cuMemMap(at, 2 * MIB, 0, handle, 0));
            OK(launch(counting(), nullptr, {at, at, 1, 1, {}}));
            OK(cuStreamSynchronize(nullptr));
        },
        0);
}

const Case VMM[] = {
    {"vmm_one_process", one_process},
    {"vmm_two_processes_of_a_device", two_processes_of_a_device},
    {"vmm_four_processes_of_two_devices", four_processes_of_two_devices},
    {"vmm_devices_apart", devices_apart},
    {"vmm_multicast", multicast},
    {"vmm_kernel_without_access", kernel_without_access},
    {nullptr, nullptr},
};
