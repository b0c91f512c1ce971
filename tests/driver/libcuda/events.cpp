// Events, by which streams wait for each other, also those of other processes.
#include "driver.h"

#include <chrono>
#include <climits>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fake {

static bool come(const Counters& counters, u32 last) { return i32(counters.done - last) >= 0; }

static void wait_for(Counters& counters, u32 last) {
    for (u32 done = counters.done; !come(counters, last); done = counters.done) {
        if (i32(done - last) < 0) {
            const timespec pause = {0, 50000000};
            syscall(SYS_futex, &counters.done, FUTEX_WAIT, done, &pause, nullptr, 0);
        }
    }
}

static void arrive(Counters& counters, u32 last) {
    counters.time = u64(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
    for (u32 done = counters.done; i32(done - last) < 0 && !counters.done.compare_exchange_weak(done, last);) {
    }
    syscall(SYS_futex, &counters.done, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::shared_ptr<Counters> counters_in(int fd) {
    void* at = mmap(nullptr, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const auto end = [](Counters* counters) { munmap(counters, PAGE); };
    return at == MAP_FAILED ? nullptr : std::shared_ptr<Counters>(static_cast<Counters*>(at), end);
}

// Whether the process that made an event has it still.
static CUresult is_there(CUevent event) {
    TRY(usable());
    return event->opened && event->counters->destroyed != 0 ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

// Whether the event may be asked by the host.
static CUresult outside(CUevent event) {
    TRY(is_there(event));
    TRY(outside_captures());
    std::lock_guard<std::mutex> hold(captures.mutex);
    if (event->captured) {
        if (const auto capture = event->capture.lock()) {
            capture->invalid = true;
        }
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    return CUDA_SUCCESS;
}

} // namespace fake

using namespace fake;

extern "C" {

CUresult cuEventCreate(CUevent* event, unsigned flags) {
    TRY(usable());
    const bool between = (flags & CU_EVENT_INTERPROCESS) != 0, untimed = (flags & CU_EVENT_DISABLE_TIMING) != 0;
    if ((flags & ~7u) != 0 || (between && !untimed)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (between && attribute(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, current->device) == 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    const int fd = between ? new_file("roundelay-event", PAGE) : -1;
    const auto counters = fd < 0 ? std::make_shared<Counters>() : counters_in(fd);
    if (counters == nullptr || (between && fd < 0)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    counters->recorded = counters->done = counters->destroyed = 0;
    counters->time = 0;
    *event = new CUevent_st{counters, fd, false, {}, false, 0, 0, !untimed};
    return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
    TRY(callable());
    if (event->fd >= 0) {
        event->counters->destroyed = 1;
        close(event->fd);
    }
    delete event;
    return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream named) {
    TRY(is_there(event));
    CUstream stream = stream_of(named);
    {
        std::lock_guard<std::mutex> hold(captures.mutex);
        event->captured = stream->capture != nullptr;
        event->capture = stream->capture;
        if (event->captured) {
            event->lane = stream->capture->lane(stream);
            event->works = stream->capture->graph->lanes[event->lane].size();
            return stream->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
        }
    }
    const auto counters = event->counters;
    const u32 last = ++counters->recorded;
    return push(stream, [=] { arrive(*counters, last); });
}
CUresult cuStreamWaitEvent(CUstream named, CUevent event, unsigned) {
    TRY(is_there(event));
    CUstream stream = stream_of(named);
    {
        std::lock_guard<std::mutex> hold(captures.mutex);
        if (event->captured || stream->capture != nullptr) {
            return join(stream, event);
        }
    }
    const auto counters = event->counters;
    const u32 last = counters->recorded;
    return push(stream, [=] { wait_for(*counters, last); });
}
CUresult cuEventQuery(CUevent event) {
    TRY(outside(event));
    return come(*event->counters, event->counters->recorded) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuEventSynchronize(CUevent event) {
    TRY(outside(event));
    wait_for(*event->counters, event->counters->recorded);
    return CUDA_SUCCESS;
}
static CUresult elapsed(float* milliseconds, CUevent begun, CUevent ended) {
    for (CUevent event : {begun, ended}) {
        TRY(outside(event));
        const auto& counters = *event->counters;
        if (!event->timed || counters.recorded == 0) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        if (!come(counters, counters.recorded)) {
            return CUDA_ERROR_NOT_READY;
        }
    }
    *milliseconds = float(double(int64_t(ended->counters->time - begun->counters->time)) / 1e6);
    return CUDA_SUCCESS;
}
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float* milliseconds, CUevent begun, CUevent ended) {
    return elapsed(milliseconds, begun, ended);
}
CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent begun, CUevent ended) {
    return elapsed(milliseconds, begun, ended);
}
}
