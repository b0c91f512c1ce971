// Streams, which are threads, and captures of what they do.
#include "driver.h"

#include <algorithm>
#include <type_traits>

#include <time.h>

namespace fake {

static void serve(const std::shared_ptr<CUstream_st>& stream) {
    std::unique_lock<std::mutex> hold(stream->mutex);
    for (;;) {
        stream->changed.wait(hold, [&] { return !stream->queue.empty() || stream->ends; });
        if (stream->queue.empty()) {
            return;
        }
        auto work = std::move(stream->queue.front());
        stream->queue.pop_front();
        hold.unlock();
        work();
        work = nullptr;
        hold.lock();
        stream->done += 1;
        stream->changed.notify_all();
    }
}

std::shared_ptr<CUstream_st> new_stream(CUcontext context) {
    const auto made = std::make_shared<CUstream_st>();
    made->context = context;
    std::thread(serve, made).detach();
    std::lock_guard<std::mutex> hold(context->mutex);
    context->streams.push_back(made);
    return made;
}

CUstream stream_of(CUstream stream) {
    if (stream == nullptr || stream == CU_STREAM_LEGACY) {
        return current->all;
    }
    if (stream == CU_STREAM_PER_THREAD) {
        static thread_local std::map<CUcontext, CUstream> own;
        CUstream& found = own[current];
        found = found == nullptr ? new_stream(current).get() : found;
        return found;
    }
    return stream;
}

static void enqueue(CUstream stream, std::function<void()> run) {
    std::lock_guard<std::mutex> hold(stream->mutex);
    stream->queue.push_back(std::move(run));
    stream->pushed += 1;
    stream->changed.notify_all();
}

CUresult push(CUstream named, std::function<void()> run) {
    CUstream stream = stream_of(named);
    std::unique_lock<std::mutex> hold(captures.mutex);
    if (stream->capture == nullptr) {
        // Work of the default stream would come before what is captured.
        for (const auto& capture : captures.open) {
            if (stream == stream->context->all && capture->origin->context == stream->context) {
                capture->invalid = true;
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
            }
        }
        hold.unlock();
        enqueue(stream, std::move(run));
        return CUDA_SUCCESS;
    }
    if (stream->capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    stream->capture->add(stream, {std::move(run)});
    return CUDA_SUCCESS;
}

CUresult push_copy(CUstream named, std::function<void()> run) {
    const int device = stream_of(named)->context->device;
    return push(named, [device, run = std::move(run)] {
        const Turns turns = turns_of(device);
        if (turns.begin != nullptr) {
            turns.begin(turns.of);
        }
        run();
        if (turns.end != nullptr) {
            turns.end(turns.of);
        }
    });
}

static void wait_for(CUstream stream) {
    std::unique_lock<std::mutex> hold(stream->mutex);
    const u64 last = stream->pushed;
    stream->changed.wait(hold, [=] { return stream->done >= last; });
}

CUresult finish(CUstream named) {
    CUstream stream = stream_of(named);
    {
        std::lock_guard<std::mutex> hold(captures.mutex);
        if (stream->capture != nullptr) {
            stream->capture->invalid = true;
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    wait_for(stream);
    return CUDA_SUCCESS;
}

CUresult finish_all() {
    std::vector<std::shared_ptr<CUstream_st>> streams;
    {
        std::lock_guard<std::mutex> hold(current->mutex);
        streams = current->streams;
    }
    for (const auto& stream : streams) {
        wait_for(stream.get());
    }
    return CUDA_SUCCESS;
}

// Whether a stream may use a word of memory.
template <class T> static CUresult word(CUdeviceptr at) {
    TRY(usable());
    return at % sizeof(T) != 0 ? CUDA_ERROR_INVALID_VALUE : reachable(at, sizeof(T));
}

template <class T> static CUresult write_value(CUstream stream, CUdeviceptr at, T value, unsigned flags) {
    TRY(word<T>(at));
    if ((flags & ~unsigned(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return push(stream, [=] { __atomic_store_n(reinterpret_cast<T*>(at), value, __ATOMIC_SEQ_CST); });
}

template <class T> static CUresult wait_value(CUstream stream, CUdeviceptr at, T value, unsigned flags) {
    TRY(word<T>(at));
    const unsigned kind = flags & ~unsigned(CU_STREAM_WAIT_VALUE_FLUSH);
    if (kind > CU_STREAM_WAIT_VALUE_NOR) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto met = [=](T seen) {
        switch (kind) {
        case CU_STREAM_WAIT_VALUE_GEQ: return std::make_signed_t<T>(seen - value) >= 0;
        case CU_STREAM_WAIT_VALUE_EQ: return seen == value;
        case CU_STREAM_WAIT_VALUE_AND: return (seen & value) != 0;
        default: return T(~(seen | value)) != 0;
        }
    };
    // It leaves the processors to others, as a waiting channel leaves the device.
    return push(stream, [=] {
        while (!met(__atomic_load_n(reinterpret_cast<const T*>(at), __ATOMIC_SEQ_CST))) {
            const timespec pause = {0, 20000};
            nanosleep(&pause, nullptr);
        }
    });
}

} // namespace fake

using namespace fake;

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
    TRY(usable());
    if ((flags & ~unsigned(CU_STREAM_NON_BLOCKING)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *stream = new_stream(current).get();
    return CUDA_SUCCESS;
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) { return cuStreamCreate(stream, flags); }
CUresult cuStreamDestroy(CUstream stream) {
    TRY(callable());
    if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    {
        std::lock_guard<std::mutex> hold(captures.mutex);
        if (stream->capture != nullptr) {
            stream->capture->invalid = true;
        }
    }
    std::shared_ptr<CUstream_st> last;
    {
        std::lock_guard<std::mutex> hold(stream->context->mutex);
        auto& all = stream->context->streams;
        const auto is = [=](const auto& each) { return each.get() == stream; };
        const auto found = std::find_if(all.begin(), all.end(), is);
        if (found == all.end()) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        last = *found;
        all.erase(found);
    }
    // It does its work before it ends.
    std::lock_guard<std::mutex> hold(stream->mutex);
    stream->ends = true;
    stream->changed.notify_all();
    return CUDA_SUCCESS;
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* ctx) {
    TRY(usable());
    *ctx = stream_of(stream)->context;
    return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
    TRY(usable());
    TRY(outside_captures());
    return finish(stream);
}
CUresult cuStreamQuery(CUstream named) {
    TRY(usable());
    TRY(outside_captures());
    CUstream stream = stream_of(named);
    std::lock_guard<std::mutex> hold(stream->mutex);
    return stream->done == stream->pushed ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn run, void* data) {
    TRY(usable());
    if (run == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return push(stream, [=] {
        in_callback = true;
        run(data);
        in_callback = false;
    });
}
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags) {
    return write_value(stream, at, value, flags);
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags) {
    return write_value(stream, at, value, flags);
}
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags) {
    return wait_value(stream, at, value, flags);
}
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags) {
    return wait_value(stream, at, value, flags);
}
}
