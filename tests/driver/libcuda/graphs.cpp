// Captures of streams' work, and the graphs that they become.
#include "driver.h"

namespace fake {

Captures captures;
static thread_local CUstreamCaptureMode mode_of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult outside_captures() {
    std::lock_guard<std::mutex> hold(captures.mutex);
    CUresult result = CUDA_SUCCESS;
    for (const auto& capture : captures.open) {
        const bool own = capture->thread == std::this_thread::get_id();
        const bool forbids =
            own ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                : capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode_of_thread == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (forbids && mode_of_thread != CU_STREAM_CAPTURE_MODE_RELAXED) {
            capture->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

CUresult join(CUstream stream, CUevent event) {
    const auto from = event->capture.lock();
    const auto refuse = [&](CUresult why) {
        for (const auto& capture : {from, stream->capture}) {
            if (capture != nullptr) {
                capture->invalid = true;
            }
        }
        return why;
    };
    // Work of a capture and work outside do not wait for each other.
    if (from == nullptr || from->graph == nullptr) {
        return refuse(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    }
    if (stream->capture != nullptr && stream->capture != from) {
        return refuse(CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    if (stream == stream->context->all) {
        return refuse(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    if (stream->capture == nullptr) {
        stream->capture = from;
        from->enter(stream);
    }
    if (event->lane != from->lane(stream)) {
        size_t& awaited = from->lanes[event->lane].awaited;
        awaited = std::max(awaited, event->works);
        from->add(stream, {nullptr, event->lane, event->works});
    }
    return CUDA_SUCCESS;
}

void Capture::enter(CUstream stream) {
    lanes.push_back({stream});
    graph->lanes.emplace_back();
}

// Does what a graph has, each lane by a thread.
static void replay(const Graph& graph) {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<size_t> done(graph.lanes.size());
    const auto run = [&](size_t lane) {
        for (const Graph::Node& node : graph.lanes[lane]) {
            if (node.run) {
                node.run();
            }
            std::unique_lock<std::mutex> hold(mutex);
            changed.wait(hold, [&] { return node.run || done[node.lane] >= node.works; });
            done[lane] += 1;
            changed.notify_all();
        }
    };
    std::vector<std::thread> others;
    for (size_t lane = 1; lane < graph.lanes.size(); ++lane) {
        others.emplace_back(run, lane);
    }
    run(0);
    for (std::thread& other : others) {
        other.join();
    }
}

// What a user gives to a graph, which ends with the last graph that has it.
struct UserObject {
    void* data;
    CUhostFn destroy;
    ~UserObject() {
        std::thread([destroy = destroy, data = data] {
            in_callback = true;
            destroy(data);
        }).detach();
    }
};

} // namespace fake

struct CUgraph_st {
    std::shared_ptr<fake::Graph> graph;
    std::vector<std::shared_ptr<fake::UserObject>> objects;
};
struct CUgraphExec_st {
    CUgraph_st graph;
};
struct CUuserObject_st {
    std::shared_ptr<fake::UserObject> object;
    unsigned count; // of references that callers have
};

using namespace fake;

extern "C" {

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    TRY(callable());
    if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::swap(*mode, mode_of_thread);
    return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture(CUstream named, CUstreamCaptureMode mode) {
    TRY(usable());
    CUstream stream = stream_of(named);
    if (stream == current->all) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    std::lock_guard<std::mutex> hold(captures.mutex);
    if (stream->capture != nullptr) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    static u64 next = 0;
    stream->capture = std::make_shared<Capture>();
    *stream->capture = {mode, std::this_thread::get_id(), ++next, stream};
    stream->capture->enter(stream);
    stream->capture->handle = new CUgraph_st{stream->capture->graph, {}};
    captures.open.push_back(stream->capture);
    return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream named, CUgraph* graph) {
    TRY(usable());
    CUstream stream = stream_of(named);
    *graph = nullptr;
    std::lock_guard<std::mutex> hold(captures.mutex);
    const auto capture = stream->capture;
    if (capture == nullptr) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id()) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    if (capture->origin != stream) {
        capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    bool alone = true;
    for (size_t lane = 0; lane < capture->lanes.size(); ++lane) {
        alone &= lane == 0 || capture->lanes[lane].awaited == capture->graph->lanes[lane].size();
        capture->lanes[lane].stream->capture = nullptr;
    }
    for (size_t i = captures.open.size(); i-- > 0;) {
        if (captures.open[i] == capture) {
            captures.open.erase(captures.open.begin() + long(i));
        }
    }
    capture->graph = nullptr;
    if (capture->invalid || !alone) {
        delete capture->handle;
        return capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
    *graph = capture->handle;
    return CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream named, CUstreamCaptureStatus* status) {
    return cuStreamGetCaptureInfo(named, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}
CUresult cuStreamGetCaptureInfo(CUstream named, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                const CUgraphNode** nodes, const CUgraphEdgeData** edges, size_t* count) {
    TRY(usable());
    // A graph has no nodes that a caller could name.
    if (status == nullptr || nodes != nullptr || edges != nullptr || count != nullptr) {
        return status == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
    }
    std::lock_guard<std::mutex> hold(captures.mutex);
    CUstream stream = stream_of(named);
    if (stream == current->all && !captures.open.empty()) {
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    const auto& capture = stream->capture;
    *status = capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (id != nullptr && capture != nullptr) {
        *id = capture->id;
    }
    if (graph != nullptr && capture != nullptr) {
        *graph = capture->handle;
    }
    return CUDA_SUCCESS;
}
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** nodes, size_t* count) {
    return cuStreamGetCaptureInfo(stream, status, id, graph, nodes, nullptr, count);
}

CUresult cuGraphInstantiate(CUgraphExec* made, CUgraph graph, unsigned long long) {
    TRY(callable());
    *made = new CUgraphExec_st{*graph};
    return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
    TRY(usable());
    return push(stream, [of = graph->graph] { replay(*of.graph); });
}
CUresult cuGraphExecDestroy(CUgraphExec graph) {
    TRY(callable());
    delete graph;
    return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
    TRY(callable());
    delete graph;
    return CUDA_SUCCESS;
}

CUresult cuUserObjectCreate(CUuserObject* made, void* data, CUhostFn destroy, unsigned count, unsigned flags) {
    TRY(callable());
    if (made == nullptr || destroy == nullptr || count == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *made = new CUuserObject_st{std::shared_ptr<UserObject>(new UserObject{data, destroy}), count};
    return CUDA_SUCCESS;
}
CUresult cuUserObjectRetain(CUuserObject object, unsigned count) {
    TRY(callable());
    object->count += count;
    return count == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuUserObjectRelease(CUuserObject object, unsigned count) {
    TRY(callable());
    if (count == 0 || count > object->count) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    object->count -= count;
    if (object->count == 0) {
        object->object = nullptr;
    }
    return CUDA_SUCCESS;
}
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
    TRY(callable());
    const bool move = flags == CU_GRAPH_USER_OBJECT_MOVE;
    const bool there = graph != nullptr && object != nullptr && count > 0;
    if (!there || (flags != 0 && !move) || (move && count > object->count)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    graph->objects.insert(graph->objects.end(), count, object->object);
    return move ? cuUserObjectRelease(object, count) : CUDA_SUCCESS;
}
}
