// Contexts: one for each device of the process.
#include "driver.h"

#include <pthread.h>
#include <unistd.h>

namespace fake {

thread_local CUcontext current = nullptr;
thread_local bool in_callback = false;

static std::atomic<bool> begun{false};

CUresult callable() {
    return in_callback ? CUDA_ERROR_NOT_PERMITTED : begun ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult usable() {
    TRY(callable());
    if (current == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return current->retained == 0 ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

static std::mutex contexts_lock;
static std::map<int, CUcontext> contexts;

} // namespace fake

using namespace fake;

extern "C" {

CUresult cuInit(unsigned flags) {
    // A process that was forked after the driver began has none of its threads.
    static const bool watched = pthread_atfork(nullptr, nullptr, [] { begun = false; }) == 0;
    static const bool first = !begun.exchange(true);
    static const bool explained = (explain_faults(), true);
    const bool begins = watched && first && explained && begun;
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE : begins ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* ctx, CUdevice device) {
    TRY(callable());
    if (device_of(device) < 0) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    std::lock_guard<std::mutex> hold(contexts_lock);
    CUcontext& found = contexts[device];
    if (found == nullptr) {
        found = new CUctx_st{};
        found->ordinal = device;
        found->device = device_of(device);
        found->all = new_stream(found).get();
    }
    const int mode = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, found->device);
    if (found->retained == 0 && mode != CU_COMPUTEMODE_DEFAULT) {
        found->occupied = mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS ? occupy(found->device) : -1;
        if (found->occupied < 0) {
            return CUDA_ERROR_DEVICE_UNAVAILABLE;
        }
    }
    found->retained += 1;
    *ctx = found;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    TRY(callable());
    std::lock_guard<std::mutex> hold(contexts_lock);
    const auto found = contexts.find(device);
    if (found == contexts.end() || found->second->retained == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    found->second->retained -= 1;
    if (found->second->retained == 0 && found->second->occupied >= 0) {
        close(found->second->occupied);
    }
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
    TRY(callable());
    std::lock_guard<std::mutex> hold(contexts_lock);
    const auto found = contexts.find(device);
    *active = found != contexts.end() && found->second->retained > 0;
    *flags = 0;
    return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* ctx) {
    TRY(callable());
    *ctx = current;
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext ctx) {
    TRY(callable());
    current = ctx;
    return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
    TRY(usable());
    *device = current->ordinal;
    return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() {
    TRY(usable());
    TRY(outside_captures());
    return finish_all();
}
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    TRY(usable());
    if (peer == nullptr || peer == current) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!reaches(current->device, peer->device)) {
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    std::lock_guard<std::mutex> hold(current->mutex);
    bool& opened = current->opened[peer];
    const CUresult result = opened ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS;
    opened = true;
    return result;
}
CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    TRY(usable());
    std::lock_guard<std::mutex> hold(current->mutex);
    return current->opened.erase(peer) == 0 ? CUDA_ERROR_PEER_ACCESS_NOT_ENABLED : CUDA_SUCCESS;
}
CUresult cuMemGetInfo(size_t* left, size_t* total) {
    TRY(usable());
    *left = ROOM - current->used;
    *total = ROOM;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
    if (device_of(device) < 0) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    static char pools[MOST_DEVICES];
    *pool = reinterpret_cast<CUmemoryPool>(&pools[device]);
    return CUDA_SUCCESS;
}
CUresult cuMemPoolSetAccess(CUmemoryPool, const CUmemAccessDesc*, size_t) { return CUDA_SUCCESS; }
}
