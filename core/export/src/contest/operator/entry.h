const u64 INPUT_UNITS[RANKS] = {@INPUTS@};
const u64 OUTPUT_UNITS[RANKS] = {@OUTPUTS@};
constexpr u64 UNITS = @UNITS@; // of the larger of a rank's buffers
constexpr u64 MOST_INPUT_UNITS = @MOST_INPUTS@; // of any rank
constexpr u64 MOST_OUTPUT_UNITS = @MOST_OUTPUTS@; // of any rank
constexpr u64 TILES = @TILES@; // for moves between two peers

@TABLES@
// Whom each rank has a channel to, for each class.
const std::vector<u32> PEERS[CLASSES][RANKS] = {
@LINKS@};

// A call, which travels to the engine by value.
struct Call {
    char communicator[128];
    u64 resources; // the address of Resources
    u64 input;
    u64 output;
    u64 count; // elements a unit
    HcclDataType type;
    HcommReduceOp op;
};

u32 SizeOf(HcclDataType type) {
    switch (type) {
    case HCCL_DATA_TYPE_INT8:
    case HCCL_DATA_TYPE_UINT8: return 1;
    case HCCL_DATA_TYPE_INT16:
    case HCCL_DATA_TYPE_UINT16:
    case HCCL_DATA_TYPE_FP16:
    case HCCL_DATA_TYPE_BFP16: return 2;
    case HCCL_DATA_TYPE_INT32:
    case HCCL_DATA_TYPE_UINT32:
    case HCCL_DATA_TYPE_FP32: return 4;
    case HCCL_DATA_TYPE_INT64:
    case HCCL_DATA_TYPE_UINT64:
    case HCCL_DATA_TYPE_FP64: return 8;
    default: return 0;
    }
}

// Where the parts lie where a pass has at most so many bytes a unit. It is the same at every rank, and depends neither on
// a count nor on a type, and each class has scratch of its own: data that a rank sends ahead, to a peer that is still
// busy with the call before, are never in the peer's way.
Layout LayoutOf(u32 which, u64 unitBytes) {
    const auto end = [](u64 bytes) { return (bytes + @ALIGN@ - 1) / @ALIGN@ * @ALIGN@; };
    Layout layout;
    layout.output = end(MOST_INPUT_UNITS * unitBytes);
    layout.bytes = layout.output + end(MOST_OUTPUT_UNITS * unitBytes);
    for (const Declared& declared : DECLARED) {
        const u64 most = std::min(unitBytes, LIMITS[declared.which] / UNITS);
        // One element more than the floor.
        const u64 bytes = end(ElementAt(declared.num, declared.den, most) + 8);
        if (declared.which == which) {
            layout.scratch.push_back({layout.bytes, bytes});
        }
        layout.bytes += declared.slots * bytes;
    }
    layout.tiles = layout.bytes;
    layout.bytes += TILES * TILE;
    return layout;
}

// The most bytes a unit for which a buffer has room.
u64 MostBytes(u64 bytes) {
    u64 low = 0, high = bytes / UNITS;
    while (low < high) {
        const u64 middle = low + (high - low + 1) / 2;
        if (LayoutOf(0, middle).bytes <= bytes) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

HcclResult Enqueue(u32 which, Run& run) {
    switch (which) {
@ENQUEUE@    default: return HCCL_E_INTERNAL;
    }
}

HcclResult Orchestrate(const Call& call) {
    const Resources& resources = *reinterpret_cast<const Resources*>(uintptr_t(call.resources));
    const u64 unit = SizeOf(call.type), stride = call.count * unit;
    u32 which = 0;
    while (which + 1 < CLASSES && stride * UNITS >= LIMITS[which]) {
        ++which;
    }
    const u64 unitBytes = MostBytes(resources.bytes);
    const u64 most = unitBytes / unit;
    Run run = {};
    run.resources = &resources;
    run.rank = resources.rank;
    run.unit = u32(unit);
    run.layout = LayoutOf(which, unitBytes);
    run.type = static_cast<HcommDataType>(call.type);
    run.op = call.op;
    run.children.assign(THREADS, {0, ~u32(0)});
    run.started.assign(THREADS, 0);
    run.pushes.assign(THREADS, Run::Push());
@BEGIN@    const u64 own = resources.buffers[run.rank];
    for (u64 done = 0; done < call.count; done += run.count) {
        run.count = std::min(most, call.count - done);
        for (std::vector<u32>& passed : run.passed) {
            passed.assign(RANKS * CHANNEL_NOTIFIES, 0);
        }
        Lane main(run, 0);
        const u64 bytes = run.count * unit, at = done * unit;
        for (u64 i = 0; i < INPUT_UNITS[run.rank]; ++i) {
            CHK_RET(main.CopyLocal({own + i * bytes, bytes}, {call.input + i * stride + at, bytes}));
        }
        CHK_RET(Enqueue(which, run));
        CHK_RET(main.Flush());
        for (u64 i = 0; i < OUTPUT_UNITS[run.rank]; ++i) {
            CHK_RET(main.CopyLocal({call.output + i * stride + at, bytes}, {own + run.layout.output + i * bytes, bytes}));
        }
    }
@END@    return HCCL_SUCCESS;
}

// Everything between the calls that open and close a batch of tasks.
HcclResult Submit(const Call& call) {
@LOCK@    HcclResult result = Done(HcommBatchModeStart(""));
    if (result == HCCL_SUCCESS) {
        result = Orchestrate(call);
        const HcclResult ended = Done(HcommBatchModeEnd(""));
        result = result == HCCL_SUCCESS ? ended : result;
    }
@UNLOCK@    return result;
}

const char* const TAG = "@NAME@ by roundelay";
@NOTIFIES@
// The protocol of the first layer in which a link joins two ranks.
HcclResult Protocol(HcclComm comm, u32 rank, u32 peer, CommProtocol& protocol) {
    u32* layers = nullptr;
    u32 many = 0;
    CHK_RET(HcclRankGraphGetLayers(comm, &layers, &many));
    for (u32 i = 0; i < many; ++i) {
        CommLink* links = nullptr;
        u32 found = 0;
        CHK_RET(HcclRankGraphGetLinks(comm, layers[i], rank, peer, &links, &found));
        if (found > 0) {
            protocol = links[0].linkAttr.linkProtocol;
            return HCCL_SUCCESS;
        }
    }
    return HCCL_E_NOT_FOUND;
}

// The first call of a communicator.
HcclResult Acquire(HcclComm comm, void** context) {
    Resources all = {};
    CHK_RET(HcclGetRankId(comm, &all.rank));
    void* own = nullptr;
    CHK_RET(HcclGetHcclBuffer(comm, &own, &all.bytes));
    if (MostBytes(all.bytes) < 8) {
        return HCCL_E_MEMORY; // no room for an element of every type
    }
    all.buffers[all.rank] = u64(reinterpret_cast<uintptr_t>(own));
    CHK_RET(HcclThreadAcquire(comm, ENGINE, 1, MAIN_NOTIFIES, all.threads));
    if (THREADS > 1) {
        CHK_RET(HcclThreadAcquire(comm, ENGINE, THREADS - 1, SLAVE_NOTIFIES, all.threads + 1));
    }
    std::vector<u32> peers;
    for (u32 which = 0; which < CLASSES; ++which) {
        peers.insert(peers.end(), PEERS[which][all.rank].begin(), PEERS[which][all.rank].end());
    }
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    if (!peers.empty()) {
        const u32 many = u32(peers.size());
        std::vector<HcclChannelDesc> wanted(many);
        std::vector<ChannelHandle> channels(many);
@INIT@        for (u32 i = 0; i < many; ++i) {
            wanted[i].remoteRank = peers[i];
            CHK_RET(Protocol(comm, all.rank, peers[i], wanted[i].channelProtocol));
            wanted[i].notifyNum = CHANNEL_NOTIFIES;
        }
        CHK_RET(HcclChannelAcquire(comm, ENGINE, wanted.data(), many, channels.data()));
        for (u32 i = 0; i < many; ++i) {
            void* buffer = nullptr;
            u64 bytes = 0;
            CHK_RET(HcclChannelGetHcclBuffer(comm, channels[i], &buffer, &bytes));
            if (bytes != all.bytes) {
                return HCCL_E_PARA; // the ranks' communicators have buffers of different sizes
            }
            all.channels[peers[i]] = channels[i];
            all.buffers[peers[i]] = u64(reinterpret_cast<uintptr_t>(buffer));
        }
    }
@CREATE@    CHK_RET(HcclEngineCtxCreate(comm, TAG, ENGINE, sizeof(all), context));
    return HcclEngineCtxCopy(comm, ENGINE, TAG, &all, sizeof(all), 0);
}

} // namespace
@KERNEL@
HcclResult Start(@PARAMETERS@) {
    u32 ranks = 0;
    CHK_RET(HcclGetRankSize(comm, &ranks));
    if (ranks != RANKS) {
        return HCCL_E_PARA;
    }
@SUPPORTED@    if (SizeOf(dataType) == 0) {
        return HCCL_E_NOT_SUPPORT;
    }
    if (count == 0) {
        return HCCL_SUCCESS;
    }
    void* context = nullptr;
    u64 bytes = 0;
    if (HcclEngineCtxGet(comm, TAG, ENGINE, &context, &bytes) != HCCL_SUCCESS) {
        CHK_RET(Acquire(comm, &context));
    }
    Call call = {};
    CHK_RET(HcclGetCommName(comm, call.communicator));
    call.resources = u64(reinterpret_cast<uintptr_t>(context));
    call.input = u64(reinterpret_cast<uintptr_t>(sendBuf));
    call.output = u64(reinterpret_cast<uintptr_t>(recvBuf));
    call.count = count;
    call.type = dataType;
@OP@@LAUNCH@}

} // namespace operator_@NAME@

extern "C" HcclResult @NAME@(@PARAMETERS@) {
    return operator_@NAME@::Start(@ARGUMENTS@);
}
