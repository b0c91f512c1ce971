constexpr u32 Bit(UserMemType type) { return static_cast<u32>(type); }

// A piece of some rank's memory.
struct Place {
    u32 rank;
    u32 buffer;
    Piece piece;
};

// One KernelRun.
struct Run {
    HcclDispatcher dispatcher;
    u32 rank;
    u64 count; // elements a unit
    u64 pieces;
    HcclDataType type;
    HcclReduceOp op;
    DeviceMem input; // the rank's own, where it is read
    DeviceMem output;
    DeviceMem scratch;
    std::vector<Slots> slots;
    u64 tiles; // of the streams, in scratch
    std::map<u32, LINK>* links;
    AlgResourceResponse* resource;
};

// Whether the copy engine reduces on the way.
inline bool Inline(HcclDataType type, HcclReduceOp op) {
    switch (type) {
    case HCCL_DATA_TYPE_INT8:
    case HCCL_DATA_TYPE_INT16:
    case HCCL_DATA_TYPE_INT32:
    case HCCL_DATA_TYPE_FP16:
    case HCCL_DATA_TYPE_BFP16:
    case HCCL_DATA_TYPE_FP32: return op != HCCL_REDUCE_PROD;
    default: return false;
    }
}

// A stream of a rank, and what is enqueued on it.
class Lane {
public:
    Lane(Run& run, u32 index)
        : run_(run), index_(index),
          stream_(index == 0 ? run.resource->mainStream : run.resource->slaveStreams[index - 1]) {}

    u32 Rank() const { return run_.rank; }

    HcclResult TxAck(u32 peer) { return run_.links->at(peer)->TxAck(stream_); }
    HcclResult RxAck(u32 peer) { return run_.links->at(peer)->RxAck(stream_); }
    HcclResult TxDataSignal(u32 peer) { return run_.links->at(peer)->TxDataSignal(stream_); }
    HcclResult RxDataSignal(u32 peer) { return run_.links->at(peer)->RxDataSignal(stream_); }

    // A slave stream begins when it is posted to, and is joined by the post at its end.
    HcclResult Fork(u32 slave) { return LocalNotify::Post(stream_, run_.dispatcher, Notify(slave, 0)); }
    HcclResult Begin() { return LocalNotify::Wait(stream_, run_.dispatcher, Notify(index_, 0)); }
    HcclResult End() { return LocalNotify::Post(stream_, run_.dispatcher, Notify(index_, 1)); }
    HcclResult Join(u32 slave) { return LocalNotify::Wait(stream_, run_.dispatcher, Notify(slave, 1)); }

    Place Mine(u32 buffer, Piece piece) const { return {run_.rank, buffer, piece}; }
    Place Of(u32 rank, u32 buffer, Piece piece) const { return {rank, buffer, piece}; }

    HcclResult Copy(const Place& src, const Place& dst) {
        DeviceMem from, to;
        CHK_RET(Memory(src, from));
        CHK_RET(Memory(dst, to));
        if (src.rank == run_.rank || dst.rank == run_.rank) {
            return Move(to, from);
        }
        for (u64 at = 0; at < to.size(); at += TILE) {
            const u64 size = std::min(TILE, to.size() - at);
            CHK_RET(Move(Tile(0, size), from.range(at, size)));
            CHK_RET(Move(to.range(at, size), Tile(0, size)));
        }
        return HCCL_SUCCESS;
    }

    // dst = src op dst, inside the copy engine where a peer has one of them and the engine can; else tile by tile, by
    // the rank's cores.
    HcclResult Reduce(const Place& src, const Place& dst) {
        DeviceMem from, to;
        CHK_RET(Memory(src, from));
        CHK_RET(Memory(dst, to));
        const bool fromPeer = src.rank != run_.rank, toPeer = dst.rank != run_.rank;
        if (!fromPeer && !toPeer) {
            return Fold(to, from, ReduceAttr::LOCAL);
        }
        if (Inline(run_.type, run_.op) && !(fromPeer && toPeer)) {
            return Fold(to, from, ReduceAttr::INLINE);
        }
        for (u64 at = 0; at < to.size(); at += TILE) {
            const u64 size = std::min(TILE, to.size() - at);
            DeviceMem near = from.range(at, size), sum = to.range(at, size);
            if (fromPeer) {
                near = Tile(0, size);
                CHK_RET(Move(near, from.range(at, size)));
            }
            if (toPeer) {
                sum = Tile(1, size);
                CHK_RET(Move(sum, to.range(at, size)));
            }
            CHK_RET(Fold(sum, near, ReduceAttr::LOCAL));
            if (toPeer) {
                CHK_RET(Move(to.range(at, size), sum));
            }
        }
        return HCCL_SUCCESS;
    }

    HcclResult Move(const DeviceMem& dst, const DeviceMem& src) {
        return dst.size() == 0 ? HCCL_SUCCESS : HcclD2DMemcpyAsync(run_.dispatcher, dst, src, stream_);
    }

private:
    const std::shared_ptr<LocalNotify>& Notify(u32 slave, u32 way) const {
        return run_.resource->notifies[2 * (slave - 1) + way];
    }

    DeviceMem Tile(u32 which, u64 size) const {
        return run_.scratch.range(run_.tiles + (2 * u64(index_) + which) * TILE, size);
    }

    HcclResult Fold(const DeviceMem& dst, const DeviceMem& src, ReduceAttr attr) {
        const u64 count = dst.size() / SizeOf(run_.type);
        if (count == 0) {
            return HCCL_SUCCESS;
        }
        return HcclReduceAsync(run_.dispatcher, src, count, run_.type, run_.op, stream_, dst, attr);
    }

    HcclResult Memory(const Place& place, DeviceMem& memory) const {
        DeviceMem whole = place.buffer == INPUT ? run_.input : place.buffer == OUTPUT ? run_.output : run_.scratch;
        if (place.rank != run_.rank) {
            const UserMemType type = place.buffer == INPUT    ? UserMemType::INPUT_MEM
                                     : place.buffer == OUTPUT ? UserMemType::OUTPUT_MEM
                                                              : UserMemType::SCRATCH_MEM;
            CHK_RET(run_.links->at(place.rank)->GetRemoteMem(type, whole));
        }
        const Piece& piece = place.piece;
        const u64 unit = SizeOf(run_.type);
        const u64 lo = ElementAt(piece.lo, run_.pieces, run_.count), hi = ElementAt(piece.hi, run_.pieces, run_.count);
        u64 offset = (lo - ElementAt(piece.base, run_.pieces, run_.count)) * unit;
        if (place.buffer >= SCRATCH) {
            const Slots& slots = run_.slots[place.buffer - SCRATCH];
            offset += slots.offset + piece.slot * slots.bytes;
        }
        memory = whole.range(offset, (hi - lo) * unit);
        return HCCL_SUCCESS;
    }

    Run& run_;
    u32 index_;
    Stream& stream_;
};
