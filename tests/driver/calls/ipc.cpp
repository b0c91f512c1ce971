// Memory and events that processes open by handles of 64 bytes.
#include "calls.h"

struct Shared {
    CUipcMemHandle memory[4];
    CUipcEventHandle event[4];
};

// Each rank opens the memory of the next, and writes there.
static void ring(int nranks, int devices) {
    in_processes(nranks, [=](const Rank& self) {
        self.begin(self.rank % devices);
        auto* shared = self.shared<Shared>();
        const int owner = (self.rank + 1) % self.nranks;
        CUdeviceptr mine = 0, theirs = 0, again = 0;
        OK(cuMemAlloc(&mine, 10000));
        OK(cuMemsetD8Async(mine, 1, 10000, nullptr));
        OK(cuStreamSynchronize(nullptr));
        OK(cuIpcGetMemHandle(&shared->memory[self.rank], mine));
        self.meet();
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle(&theirs, shared->memory[owner], 0));
        EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle(&theirs, shared->memory[self.rank], 1));
        OK(cuIpcOpenMemHandle(&theirs, shared->memory[owner], 1));
        OK(cuIpcOpenMemHandle(&again, shared->memory[owner], 1));
        SAME(again, theirs);
        // What is opened is not given on.
        CUipcMemHandle none;
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&none, theirs));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(theirs));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8Async(theirs, 1, 10001, nullptr));
        OK(cuMemsetD8Async(theirs + 5000, (unsigned char)(100 + owner), 5000, nullptr));
        OK(cuStreamSynchronize(nullptr));
        self.meet();
        unsigned char bytes[10000];
        OK(cuMemcpyDtoH(bytes, mine, 10000));
        SAME(bytes[4999], 1);
        SAME(bytes[9999], 100 + self.rank);
        OK(cuIpcCloseMemHandle(theirs));
        SAME(faults(theirs), false);
        OK(cuIpcCloseMemHandle(theirs));
        SAME(faults(theirs), true);
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(theirs));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(mine));
        self.meet();
        // A handle of a block that is no more opens nothing, also where another has its address.
        OK(cuMemFree(mine));
        self.meet();
        EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenMemHandle(&theirs, shared->memory[owner], 1));
        self.meet();
        OK(cuMemAlloc(&again, 10000));
        SAME(again, mine);
        self.meet();
        EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenMemHandle(&theirs, shared->memory[owner], 1));
        memset(&none, 1, sizeof none);
        EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenMemHandle(&theirs, none, 1));
        self.meet();
        OK(cuMemFree(again));
    });
}

static void two_processes_of_a_device() { ring(2, 1); }
static void four_processes_of_two_devices() { ring(4, 2); }

// What has no handle of this kind.
static void other_memory() {
    const Rank self = {0, 1};
    self.begin();
    CUipcMemHandle handle;
    CUdeviceptr pool = 0, plain = 0;
    OK(cuMemAllocAsync(&pool, 100, nullptr));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, pool));
    CUmemGenericAllocationHandle allocation = 0;
    const CUmemAllocationProp prop = shareable();
    OK(cuMemCreate(&allocation, 2 * MIB, &prop, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, map(allocation, 2 * MIB)));
    void* host = nullptr;
    OK(cuMemHostAlloc(&host, 100, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, CUdeviceptr(host)));
    OK(cuMemAlloc(&plain, 100));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, plain + 8));
    OK(cuIpcGetMemHandle(&handle, plain));
}

// A device that reaches no other opens nothing of it; and a process that ended has no handles.
static void what_cannot_be_opened() {
    in_processes(2, [](const Rank& self) {
        self.begin(self.rank == 0 ? 0 : 2);
        auto* shared = self.shared<Shared>();
        CUdeviceptr at = 0;
        if (self.rank == 0) {
            OK(cuMemAlloc(&at, 100));
            OK(cuIpcGetMemHandle(&shared->memory[0], at));
        }
        self.meet();
        if (self.rank == 1) {
            EXPECT(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuIpcOpenMemHandle(&at, shared->memory[0], 1));
        }
        self.meet();
        if (self.rank == 1) {
            self.begin(0);
            // The other one takes its time to end.
            for (int i = 0; i < 1000 && cuIpcOpenMemHandle(&at, shared->memory[0], 1) == CUDA_SUCCESS; ++i) {
                OK(cuIpcCloseMemHandle(at));
                usleep(10000);
            }
            EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenMemHandle(&at, shared->memory[0], 1));
        }
    });
}

// Who touches memory that its process has freed ends of it.
static void free_before_close() {
    in_processes(
        2,
        [](const Rank& self) {
            self.begin();
            auto* shared = self.shared<Shared>();
            CUdeviceptr at = 0;
            if (self.rank == 0) {
                OK(cuMemAlloc(&at, 100));
                OK(cuIpcGetMemHandle(&shared->memory[0], at));
                self.meet();
                self.meet();
                OK(cuMemFree(at));
                self.meet();
                return;
            }
            self.meet();
            OK(cuIpcOpenMemHandle(&at, shared->memory[0], 1));
            SAME(faults(at), false);
            self.meet();
            self.meet();
            OK(cuMemsetD8Async(at, 1, 100, nullptr));
            OK(cuStreamSynchronize(nullptr));
        },
        1);
}

static void events() {
    in_processes(4, [](const Rank& self) {
        self.begin(self.rank % 2);
        auto* shared = self.shared<Shared>();
        CUevent own, other, plain;
        CUipcEventHandle handle;
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&own, CU_EVENT_INTERPROCESS));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&own, 64));
        OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
        EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&handle, plain));
        OK(cuEventCreate(&own, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
        OK(cuIpcGetEventHandle(&shared->event[self.rank], own));
        self.meet();
        EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenEventHandle(&other, shared->event[self.rank]));
        OK(cuIpcOpenEventHandle(&other, shared->event[(self.rank + 1) % self.nranks]));
        EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&handle, other));
        // A wait for what was not recorded passes.
        OK(cuStreamWaitEvent(nullptr, other, 0));
        OK(cuStreamSynchronize(nullptr));
        OK(cuEventQuery(other));
        self.meet();
        // Its own stream is held up until the host lets it go on, and the other rank's event with it.
        CUdeviceptr gate = 0;
        OK(cuMemAlloc(&gate, 8));
        OK(cuMemsetD8Async(gate, 0, 8, nullptr));
        OK(cuStreamSynchronize(nullptr));
        OK(cuStreamWaitValue64(nullptr, gate, 1, CU_STREAM_WAIT_VALUE_EQ));
        OK(cuEventRecord(own, nullptr));
        self.meet();
        EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(own));
        EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(other));
        CUstream stream;
        OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        OK(cuStreamWaitEvent(stream, other, 0));
        OK(cuEventRecord(plain, stream));
        usleep(20000);
        EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(plain));
        self.meet();
        OK(cuStreamWriteValue64(CU_STREAM_PER_THREAD, gate, 1, 0));
        OK(cuEventSynchronize(plain));
        OK(cuEventQuery(other));
        self.meet();
        OK(cuEventDestroy(own));
        self.meet();
        EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(other));
        EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenEventHandle(&other, shared->event[(self.rank + 1) % self.nranks]));
        self.meet();
    });
}

const Case IPC[] = {
    {"ipc_two_processes_of_a_device", two_processes_of_a_device},
    {"ipc_four_processes_of_two_devices", four_processes_of_two_devices},
    {"ipc_other_memory", other_memory},
    {"ipc_what_cannot_be_opened", what_cannot_be_opened},
    {"ipc_free_before_close", free_before_close},
    {"ipc_events", events},
    {nullptr, nullptr},
};
