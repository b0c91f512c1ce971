// Processes that share a device in slices of time, or that would take it alone.
#include "calls.h"

#include <ctime>

static double seconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return double(now.tv_sec) + double(now.tv_nsec) / 1e9;
}

// Two kernels of two processes count in turns in a page of the host's, or in memory of one of them; says how long it
// takes.
static void count_by_turns(int devices, uint64_t rounds, double least) {
    in_processes(2, [=](const Rank& self) {
        const int device = self.rank % devices;
        self.begin(device);
        auto* words = self.shared<std::atomic<uint64_t>>();
        OK(cuMemHostRegister(words, 4096, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
        CUdeviceptr at = 0;
        OK(cuMemHostGetDevicePointer(&at, words, 0));
        CUfunction count = counting();
        self.meet();
        const double since = seconds();
        const CUdeviceptr mine = at + 128 * CUdeviceptr(self.rank), theirs = at + 128 * CUdeviceptr(1 - self.rank);
        OK(launch(count, nullptr, {mine, theirs, rounds, self.rank == 0, {}}));
        OK(cuStreamSynchronize(nullptr));
        const double took = seconds() - since;
        if (took < least) {
            fprintf(stderr, "%llu rounds take %.1f ms\n", (unsigned long long)rounds, 1000 * took);
            _exit(1);
        }
        self.meet();
    });
}

// A hand-over costs the rest of a slice.
static void slices_of_one_device() { count_by_turns(1, 50, 0.05); }
// Two devices run at once, also where neither stops a kernel.
static void slices_of_two_devices() { count_by_turns(2, 50, 0); }

// What waits for a value leaves the device to others, also where no device stops a kernel.
static void waits_take_no_slice() {
    in_processes(4, [](const Rank& self) {
        self.begin();
        auto* words = self.shared<std::atomic<uint64_t>>();
        OK(cuMemHostRegister(words, 4096, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
        const CUdeviceptr at = CUdeviceptr(words);
        self.meet();
        for (uint64_t round = 1; round <= 20; ++round) {
            const uint64_t value = round * 4 + uint64_t(self.rank);
            OK(cuStreamWaitValue64(nullptr, at, value - 1, CU_STREAM_WAIT_VALUE_GEQ));
            OK(cuMemsetD8Async(at + 512 + CUdeviceptr(self.rank), 1, 1, nullptr));
            OK(cuStreamWriteValue64(nullptr, at, value, 0));
            if (self.rank == 3 && round == 1) {
                words[0] = 3;
            }
        }
        OK(cuStreamSynchronize(nullptr));
        self.meet();
    });
}

// A process that ends while it has the device leaves it to others.
static void a_holder_that_dies() {
    in_processes(2, [](const Rank& self) {
        self.begin();
        auto* words = self.shared<std::atomic<uint64_t>>();
        OK(cuMemHostRegister(words, 4096, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
        const CUdeviceptr at = CUdeviceptr(words);
        CUfunction count = counting();
        OK(cuMemsetD8Async(at + 512, 1, 1, nullptr));
        OK(cuStreamSynchronize(nullptr));
        self.meet();
        if (self.rank == 0) {
            OK(launch(count, nullptr, {at, at + 128, 1, 1, {}}));
            while (words[16] == 0) {
                usleep(100);
            }
            _exit(0);
        }
        usleep(200000);
        OK(cuMemsetD8Async(at + 512, 1, 1, nullptr));
        OK(cuStreamSynchronize(nullptr));
    });
}

static void exclusive() {
    in_processes(2, [](const Rank& self) {
        CUcontext context;
        OK(cuInit(0));
        int mode = 0;
        OK(cuDeviceGetAttribute(&mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0));
        SAME(mode, CU_COMPUTEMODE_EXCLUSIVE_PROCESS);
        if (self.rank == 0) {
            self.begin();
            OK(cuDevicePrimaryCtxRetain(&context, 0));
        }
        self.meet();
        if (self.rank == 1) {
            EXPECT(CUDA_ERROR_DEVICE_UNAVAILABLE, cuDevicePrimaryCtxRetain(&context, 0));
            OK(cuDevicePrimaryCtxRetain(&context, 1));
        }
        self.meet();
        if (self.rank == 0) {
            OK(cuDevicePrimaryCtxRelease(0));
            OK(cuCtxSynchronize());
            OK(cuDevicePrimaryCtxRelease(0));
            EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
            EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
        }
        self.meet();
        if (self.rank == 1) {
            OK(cuDevicePrimaryCtxRetain(&context, 0));
        }
        self.meet();
    });
}

// A device that cannot stop a kernel lets a process that spins starve the others.
static void starvation() {
    in_processes(2, [](const Rank& self) {
        self.begin();
        auto* words = self.shared<std::atomic<uint64_t>>();
        OK(cuMemHostRegister(words, 4096, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
        const CUdeviceptr at = CUdeviceptr(words);
        CUfunction count = counting();
        self.meet();
        if (self.rank == 0) {
            OK(launch(count, nullptr, {at, at + 128, 1, 1, {}}));
            while (words[16] == 0) {
                usleep(100);
            }
        }
        self.meet();
        if (self.rank == 1) {
            OK(cuMemsetD8Async(at + 512, 1, 1, nullptr));
            usleep(100000);
            EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(nullptr));
        }
        self.meet();
        words[0] = 1;
        OK(cuStreamSynchronize(nullptr));
        self.meet();
    });
}

// What a device does not have, its functions refuse.
static void without_handles() {
    const Rank self = {0, 1};
    self.begin();
    CUmemAllocationProp prop = shareable();
    CUmemGenericAllocationHandle handle = 0;
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuMemCreate(&handle, 2 * MIB, &prop, 0));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    CUevent event;
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    int value = 1;
    OK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 0, 1));
    SAME(value, 0);
    OK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0, 1));
    SAME(value, 1);
    // The process sees devices 1 and 0 of the machine, in this order.
    CUuuid uuid;
    OK(cuDeviceGetUuid(&uuid, 0));
    SAME(uuid.bytes[15], 1);
    OK(cuDeviceGetCount(&value));
    SAME(value, 2);
}

const Case TURNS[] = {
    {"slices_of_one_device", slices_of_one_device},
    {"slices_of_two_devices", slices_of_two_devices},
    {"waits_take_no_slice", waits_take_no_slice},
    {"a_holder_that_dies", a_holder_that_dies},
    {"starvation", starvation},
    {"exclusive", exclusive},
    {"without_handles", without_handles},
    {nullptr, nullptr},
};
