// Streams, captures of their work, and graphs.
#include "calls.h"

#include <thread>

static const Rank ALONE = {0, 1};

static CUstream stream() {
    CUstream made;
    OK(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
    return made;
}

static CUevent event() {
    CUevent made;
    OK(cuEventCreate(&made, CU_EVENT_DISABLE_TIMING));
    return made;
}

static CUdeviceptr zeros(size_t bytes) {
    CUdeviceptr at = 0;
    OK(cuMemAlloc(&at, bytes));
    OK(cuMemsetD8Async(at, 0, bytes, nullptr));
    OK(cuStreamSynchronize(nullptr));
    return at;
}

static uint64_t read(CUdeviceptr at) {
    uint64_t value = 0;
    OK(cuMemcpyDtoH(&value, at, 8));
    return value;
}

// The words by which streams wait for each other.
static void values() {
    CUcontext context = ALONE.begin(), told;
    const CUdeviceptr at = zeros(64);
    CUstream a = stream(), b = stream();
    OK(cuStreamGetCtx(a, &told));
    SAME(told == context, 1);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue64(a, at + 4, 1, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(a, at + 64, 1, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(a, at, 1, 4));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(a, at, 1, 2));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(a, CUdeviceptr(&told), 1, 0));
    // Greater or equal, of numbers that go round.
    OK(cuStreamWriteValue32(b, at, 0xfffffff0, 0));
    OK(cuStreamSynchronize(b));
    OK(cuStreamWaitValue32(a, at, 5, CU_STREAM_WAIT_VALUE_GEQ));
    usleep(20000);
    EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(a));
    OK(cuStreamWriteValue32(b, at, 6, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
    OK(cuStreamSynchronize(a));
    OK(cuStreamQuery(a));
    OK(cuStreamWaitValue32(a, at, 6, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWaitValue32(a, at, 4, CU_STREAM_WAIT_VALUE_AND));
    OK(cuStreamWaitValue32(a, at, ~7u, CU_STREAM_WAIT_VALUE_NOR));
    OK(cuStreamSynchronize(a));
    OK(cuStreamDestroy(a));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(nullptr));
}

// A function of the host's may not call the driver.
static void host_function() {
    ALONE.begin();
    CUresult said = CUDA_SUCCESS;
    CUstream on = stream();
    OK(cuLaunchHostFunc(
        on, [](void* to) { *static_cast<CUresult*>(to) = cuCtxSynchronize(); }, &said));
    OK(cuStreamSynchronize(on));
    SAME(said, CUDA_ERROR_NOT_PERMITTED);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(on, nullptr, nullptr));
}

// Calls that no capture sees, by the modes of the capture and of the thread.
static void unsafe_calls() {
    ALONE.begin();
    CUstream on = stream(), other = stream();
    CUevent done = event();
    const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                         CU_STREAM_CAPTURE_MODE_RELAXED};
    static CUdeviceptr at = zeros(100);
    static CUipcMemHandle handle;
    static CUmemAllocationProp prop = shareable();
    static CUmemGenericAllocationHandle allocation;
    static void* host;
    static CUevent event = done;
    static CUstream beside = other;
    const struct {
        const char* name;
        CUresult (*call)();
        CUresult outside; // its code where nothing forbids it
    } calls[] = {
        {"alloc", [] { CUdeviceptr made = 0; return cuMemAlloc(&made, 8); }, CUDA_SUCCESS},
        {"free", [] { return cuMemFree(1); }, CUDA_ERROR_INVALID_VALUE},
        {"host alloc", [] { return cuMemHostAlloc(&host, 8, 0); }, CUDA_SUCCESS},
        {"free host", [] { return cuMemFreeHost(host); }, CUDA_SUCCESS},
        {"register", [] { return cuMemHostRegister(nullptr, 8, 0); }, CUDA_ERROR_INVALID_VALUE},
        {"unregister", [] { return cuMemHostUnregister(nullptr); }, CUDA_ERROR_INVALID_VALUE},
        {"open", [] { return cuIpcOpenMemHandle(&at, handle, 1); }, CUDA_ERROR_INVALID_HANDLE},
        {"close", [] { return cuIpcCloseMemHandle(1); }, CUDA_ERROR_INVALID_VALUE},
        {"open event",
         [] { return cuIpcOpenEventHandle(&event, CUipcEventHandle{}); },
         CUDA_ERROR_INVALID_HANDLE},
        {"create", [] { return cuMemCreate(&allocation, 2 * MIB, &prop, 0); }, CUDA_SUCCESS},
        {"import",
         [] { return cuMemImportFromShareableHandle(&allocation, nullptr, CU_MEM_HANDLE_TYPE_NONE); },
         CUDA_ERROR_INVALID_VALUE},
        {"map", [] { return cuMemMap(0, 2 * MIB, 0, 0, 0); }, CUDA_ERROR_INVALID_VALUE},
        {"unmap", [] { return cuMemUnmap(0, 2 * MIB); }, CUDA_ERROR_INVALID_VALUE},
        {"context", [] { return cuCtxSynchronize(); }, CUDA_SUCCESS},
        {"query", [] { return cuEventQuery(event); }, CUDA_SUCCESS},
        {"synchronize", [] { return cuEventSynchronize(event); }, CUDA_SUCCESS},
        {"query stream", [] { return cuStreamQuery(beside); }, CUDA_SUCCESS},
        {"unload", [] { return cuModuleUnload(nullptr); }, CUDA_SUCCESS},
        {"synchronize stream", [] { return cuStreamSynchronize(beside); }, CUDA_SUCCESS},
    };
    for (const auto& [name, call, outside] : calls) {
        for (const CUstreamCaptureMode mode : modes) {
            for (const CUstreamCaptureMode thread : modes) {
                for (const bool own : {true, false}) {
                    CUstreamCaptureMode before = thread;
                    OK(cuStreamBeginCapture(on, mode));
                    CUresult said = CUDA_SUCCESS;
                    CUcontext context;
                    OK(cuCtxGetCurrent(&context));
                    const auto run = [&] {
                        OK(cuCtxSetCurrent(context));
                        OK(cuThreadExchangeStreamCaptureMode(&before));
                        said = call();
                        OK(cuThreadExchangeStreamCaptureMode(&before));
                    };
                    own ? run() : std::thread(run).join();
                    const bool forbids = thread != CU_STREAM_CAPTURE_MODE_RELAXED &&
                                         (own ? mode != CU_STREAM_CAPTURE_MODE_RELAXED
                                              : mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                                    thread == CU_STREAM_CAPTURE_MODE_GLOBAL);
                    if (said != (forbids ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : outside)) {
                        fprintf(stderr, "%s: %d in a capture of mode %d, thread %d, %s\n", name, said, mode, thread,
                                own ? "its own" : "another's");
                        _exit(1);
                    }
                    // A call that is forbidden costs the capture.
                    CUgraph graph = nullptr;
                    CUstreamCaptureStatus status;
                    OK(cuStreamIsCapturing(on, &status));
                    SAME(status, forbids ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE);
                    const CUresult ends = forbids ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
                    EXPECT(ends, cuStreamEndCapture(on, &graph));
                    SAME(graph == nullptr, forbids);
                    if (said == CUDA_SUCCESS && strcmp(name, "create") == 0) {
                        OK(cuMemRelease(allocation));
                    }
                    if (said != CUDA_SUCCESS && strcmp(name, "free host") == 0) {
                        OK(cuMemFreeHost(host));
                    }
                    if (strcmp(name, "free host") == 0) {
                        OK(cuMemHostAlloc(&host, 8, 0));
                    }
                }
            }
        }
    }
}

// The time between two events, which both have come and are for times.
static void times() {
    ALONE.begin();
    CUstream a = stream();
    CUevent begun, ended, untimed = event();
    float milliseconds = -1;
    OK(cuEventCreate(&begun, CU_EVENT_DEFAULT));
    OK(cuEventCreate(&ended, CU_EVENT_DEFAULT));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, begun, ended));
    OK(cuEventRecord(begun, a));
    OK(cuLaunchHostFunc(a, [](void*) { usleep(30000); }, nullptr));
    OK(cuEventRecord(ended, a));
    EXPECT(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&milliseconds, begun, ended));
    OK(cuEventRecord(untimed, a));
    OK(cuStreamSynchronize(a));
    OK(cuEventElapsedTime(&milliseconds, begun, ended));
    SAME(milliseconds >= 30 && milliseconds < 3000, true);
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, begun, untimed));
}

// What begins, forks, joins and ends a capture, and what does not.
static void captures() {
    CUcontext context = ALONE.begin();
    CUstream a = stream(), b = stream();
    CUevent fork = event(), join = event(), before = event();
    CUgraph graph;
    CUgraphExec made;
    const CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    const CUdeviceptr at = zeros(64);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(nullptr, mode));
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(a, &graph));
    OK(cuEventRecord(before, b));
    CUfunction count = counting();
    OK(cuStreamBeginCapture(a, mode));
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture(a, mode));
    // Two kernels that wait for each other, on streams of one graph.
    OK(cuEventRecord(fork, a));
    OK(cuStreamWaitEvent(b, fork, 0));
    OK(launch(count, a, {at, at + 8, 100, 1, {}}));
    OK(launch(count, b, {at + 8, at, 100, 0, {}}));
    CUstreamCaptureStatus status;
    cuuint64_t id = 0, other = 1;
    CUgraph whole;
    OK(cuStreamGetCaptureInfo(b, &status, &id, &whole, nullptr, nullptr, nullptr));
    OK(cuStreamGetCaptureInfo(a, &status, &other, nullptr, nullptr, nullptr, nullptr));
    SAME(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    SAME(id, other);
    OK(cuEventRecord(join, b));
    OK(cuStreamWaitEvent(a, join, 0));
    OK(cuStreamEndCapture(a, &graph));
    SAME(graph == whole, 1);
    SAME(read(at), 0);
    OK(cuGraphInstantiate(&made, graph, 0));
    // It keeps what it was given until it ends, and so do its executables.
    static std::atomic<int> ended{0};
    CUuserObject object;
    const CUhostFn end = [](void*) { ended += 1; };
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&object, nullptr, end, 1, 0));
    OK(cuUserObjectCreate(&object, nullptr, end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphRetainUserObject(graph, object, 2, CU_GRAPH_USER_OBJECT_MOVE));
    OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    OK(cuGraphExecDestroy(made));
    OK(cuGraphInstantiate(&made, graph, 0));
    OK(cuGraphDestroy(graph));
    for (int i = 0; i < 3; ++i) {
        OK(cuMemsetD8Async(at, 0, 64, a));
        OK(cuGraphLaunch(made, a));
        OK(cuStreamSynchronize(a));
        SAME(read(at), 100);
    }
    SAME(ended, 0);
    OK(cuGraphExecDestroy(made));
    for (int i = 0; i < 1000 && ended == 0; ++i) {
        usleep(1000);
    }
    SAME(ended, 1);

    // A stream that does not come back.
    OK(cuStreamBeginCapture(a, mode));
    OK(cuEventRecord(fork, a));
    OK(cuStreamWaitEvent(b, fork, 0));
    OK(cuMemsetD8Async(at, 1, 8, b));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(b, &graph));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(a, &graph));
    OK(cuStreamBeginCapture(a, mode));
    OK(cuEventRecord(fork, a));
    OK(cuStreamWaitEvent(b, fork, 0));
    OK(cuMemsetD8Async(at, 1, 8, b));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(a, &graph));
    // Work from before, work of another capture, and the default stream.
    OK(cuStreamBeginCapture(a, mode));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(a, before, 0));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuMemsetD8Async(at, 1, 8, a));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(a, &graph));
    OK(cuStreamBeginCapture(a, mode));
    OK(cuStreamBeginCapture(b, mode));
    OK(cuEventRecord(fork, a));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(b, fork, 0));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(a, &graph));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(b, &graph));
    OK(cuStreamBeginCapture(a, mode));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD8Async(at, 1, 8, nullptr));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(a, &graph));
    OK(cuStreamBeginCapture(a, mode));
    OK(cuEventRecord(fork, a));
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    OK(cuThreadExchangeStreamCaptureMode(&relaxed));
    EXPECT(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(fork));
    OK(cuThreadExchangeStreamCaptureMode(&relaxed));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(a, &graph));
    OK(cuStreamBeginCapture(a, mode));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(a));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(a, &graph));
    // Another thread ends only what is relaxed.
    const auto ends = [&](CUresult code) {
        std::thread([&] {
            OK(cuCtxSetCurrent(context));
            EXPECT(code, cuStreamEndCapture(a, &graph));
        }).join();
    };
    OK(cuStreamBeginCapture(a, mode));
    ends(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    OK(cuStreamEndCapture(a, &graph));
    OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    ends(CUDA_SUCCESS);
}

const Case STREAMS[] = {
    {"values", values},
    {"host_function", host_function},
    {"unsafe_calls", unsafe_calls},
    {"captures", captures},
    {"times", times},
    {nullptr, nullptr},
};
