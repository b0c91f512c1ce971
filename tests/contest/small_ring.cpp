// Written by `roundelay emit hccl-cpp`.
#include "hccl_stub.h"

#include <algorithm>

namespace hccl {
namespace {

// Elements before the boundary num/den of a unit: floor(num * count / den), with no product beyond 64 bits.
inline u64 ElementAt(u64 num, u64 den, u64 count) { return count / den * num + count % den * num / den; }

// A piece of a buffer. Its ends are numbers of equal pieces of a unit, as many as the class says; in a scratch
// buffer also which slot, and where the data began that the slot holds.
struct Piece {
    constexpr Piece(u64 low = 0, u64 high = 0, u64 inSlot = 0, u64 slotBase = 0)
        : lo(low), hi(high), slot(inSlot), base(slotBase) {}
    u64 lo;
    u64 hi;
    u64 slot;
    u64 base;
};

using i64 = int64_t;

// The piece that begins so many equal pieces into a unit, and is that many long.
inline Piece At(i64 low, i64 width, i64 slot = 0, i64 base = 0) {
    return Piece(u64(low), u64(low + width), u64(slot), u64(base));
}

// Quotient and remainder of the page: the remainder is never below zero. And its functions of numbers.
inline i64 mod(i64 a, i64 b) { return a % b + (a % b < 0 ? (b < 0 ? -b : b) : 0); }
inline i64 quo(i64 a, i64 b) { return a / b - (a % b < 0 ? (b < 0 ? -1 : 1) : 0); }
inline i64 log2(i64 a) { return a < 2 ? 0 : 1 + log2(a / 2); }
inline i64 ceil_log2(i64 a) { return a < 2 ? 0 : 1 + log2(a - 1); }
inline i64 pow2(i64 a) { return i64(1) << a; }
inline i64 min(i64 a, i64 b) { return a < b ? a : b; }
inline i64 max(i64 a, i64 b) { return a < b ? b : a; }
inline i64 abs(i64 a) { return a < 0 ? -a : a; }
inline i64 popcount(i64 a) { return a == 0 ? 0 : a % 2 + popcount(a / 2); }
inline i64 trailing_zeros(i64 a) { return a % 2 != 0 ? 0 : 1 + trailing_zeros(a / 2); }
inline i64 bit_reverse(i64 a, i64 bits) {
    return bits == 0 ? 0 : a % 2 * pow2(bits - 1) + bit_reverse(a / 2, bits - 1);
}
inline bool is_power_of_two(i64 a) { return a > 0 && (a & (a - 1)) == 0; }

// A scratch buffer: where it begins, and bytes of a slot. Neither depends on a count, so what one run leaves in it is
// never in the way of the next.
struct Slots {
    u64 offset;
    u64 bytes;
};

constexpr u32 INPUT = 0;
constexpr u32 OUTPUT = 1;
constexpr u32 SCRATCH = 2; // and those that follow
constexpr u64 TILE = 1 << 20;

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

// ---- what is left: RingAllReduce -----

namespace class_0 {

constexpr u64 PIECES = 3;
constexpr i64 nranks = 3;

HcclResult Enqueue(Run& run) {
    const i64 me = run.rank;
    Lane lane(run, 0);
    const i64 left = (me - 1 + nranks) % nranks;
    const i64 right = (me + 1) % nranks;
    // 21: copy(local.input, local.output);
    CHK_RET(lane.Copy(lane.Mine(INPUT, At(0, 3)), lane.Mine(OUTPUT, At(0, 3))));
    for (i64 round = 0; round < nranks - 1; ++round) {
        const i64 b = (me - round - 1 + nranks) % nranks;
        // 25: right.TxAck(); // my block may be pulled
        CHK_RET(lane.TxAck(right));
        // 26: left.RxAck(); // left's block may be pulled
        CHK_RET(lane.RxAck(left));
        // 27: reduce(left.block[b], local.block[b]); // local = left op local
        CHK_RET(lane.Reduce(lane.Of(left, OUTPUT, At(b, 1)), lane.Mine(OUTPUT, At(b, 1))));
        // 28: left.TxDataSignal(); // I have pulled it
        CHK_RET(lane.TxDataSignal(left));
        // 29: right.RxDataSignal(); // right has pulled mine
        CHK_RET(lane.RxDataSignal(right));
    }
    for (i64 round = 0; round < nranks - 1; ++round) {
        const i64 b = (me - round + nranks) % nranks;
        // 33: right.TxAck();
        CHK_RET(lane.TxAck(right));
        // 34: left.RxAck();
        CHK_RET(lane.RxAck(left));
        // 35: copy(left.block[b], local.block[b]);
        CHK_RET(lane.Copy(lane.Of(left, OUTPUT, At(b, 1)), lane.Mine(OUTPUT, At(b, 1))));
        // 36: left.TxDataSignal();
        CHK_RET(lane.TxDataSignal(left));
        // 37: right.RxDataSignal();
        CHK_RET(lane.RxDataSignal(right));
    }
    return HCCL_SUCCESS;
}

} // namespace class_0

} // namespace

namespace {

constexpr u32 RANKS = 3;
constexpr u32 CLASSES = 1;
constexpr u32 SLAVES = 0;
constexpr u64 TILES = 2; // for what the copy engine cannot do at once
constexpr u64 UNITS = 1; // of the larger of a rank's buffers
constexpr bool ONE_UNIT = true; // of input
const u64 INPUT_UNITS[RANKS] = {1, 1, 1};
const u64 OUTPUT_UNITS[RANKS] = {1, 1, 1};

// A class has fewer bytes than this.
const u64 LIMITS[CLASSES] = {~u64(0)};

// A scratch buffer of a class: slots, and their width in units.
struct Declared {
    u32 which;
    u64 slots;
    u64 num;
    u64 den;
};
const std::vector<Declared> DECLARED = {
};

// Whom each rank has a link to, and what the links show.
const std::vector<std::vector<u32>> LINKS[CLASSES] = {
    {{1, 2}, {0, 2}, {0, 1}}, // class 0
};
const u32 SHOWS[CLASSES] = {
    Bit(UserMemType::OUTPUT_MEM),
};

} // namespace

class SmallRing : public CollExecutorBase {
public:
    explicit SmallRing(const Site& site) : CollExecutorBase(site) {
        DMAReduceFlag_ = true;
        CCLMemSlice_ = false;
    }

private:
    HcclResult CalcScratchMemSize(u64& scratchMemSize) override {
        scratchMemSize = Layout(0, nullptr) + TILES * TILE;
        return HCCL_SUCCESS;
    }

    HcclResult CalcStreamNum(u32& streamNum) override {
        streamNum = SLAVES;
        return HCCL_SUCCESS;
    }

    HcclResult CalcNotifyNum(u32 streamNum, u32& notifyNum) override {
        notifyNum = 2 * streamNum;
        return HCCL_SUCCESS;
    }

    // A level a class, over the same cables: its flags are its own.
    HcclResult CalcCommInfo(std::vector<LevelRequest>& opTransport) override {
        if (site_.userRankSize != RANKS) {
            return HCCL_E_PARA;
        }
        for (u32 which = 0; which < CLASSES; ++which) {
            opTransport.push_back({LINKS[which][site_.userRank], SHOWS[which]});
        }
        return HCCL_SUCCESS;
    }

    u64 CalcLoopMaxCount(u64 cclBuffSize, u32 unitSize) override { return cclBuffSize / (UNITS * unitSize); }

    HcclResult KernelRun(const OpParam& param, ExecMem& execMem) override {
        const u64 unit = SizeOf(param.dataType), bytes = execMem.count * unit, stride = param.count * unit;
        u32 which = 0;
        while (which + 1 < CLASSES && stride * UNITS >= LIMITS[which]) {
            ++which;
        }
        Run run;
        run.dispatcher = site_.dispatcher;
        run.rank = site_.userRank;
        run.count = execMem.count;
        run.pieces = 1;
        run.type = param.dataType;
        run.op = param.reduceType;
        run.input = execMem.inputMem;
        run.output = execMem.outputMem;
        run.scratch = execMem.scratchMem;
        run.tiles = Layout(which, &run.slots);
        run.links = &algRes_->levels[which];
        run.resource = algRes_;

        Lane main(run, 0);
        const u64 inputs = INPUT_UNITS[run.rank], outputs = OUTPUT_UNITS[run.rank];
        if (DMAReduceFlag_ && ONE_UNIT && (SHOWS[which] & Bit(UserMemType::INPUT_MEM)) == 0) {
            run.input = DeviceMem(execMem.inputPtr, inputs * bytes); // nobody else reads it
        } else if (DMAReduceFlag_) {
            for (u64 i = 0; i < inputs; ++i) {
                CHK_RET(main.Move(run.input.range(i * bytes, bytes), DeviceMem(execMem.inputPtr + i * stride, bytes)));
            }
        }
        switch (which) {
        case 0:
            run.pieces = class_0::PIECES;
            CHK_RET(class_0::Enqueue(run));
            break;
        default: return HCCL_E_INTERNAL;
        }
        for (u64 i = 0; i < outputs && DMAReduceFlag_; ++i) {
            CHK_RET(main.Move(DeviceMem(execMem.outputPtr + i * stride, bytes), run.output.range(i * bytes, bytes)));
        }
        return HCCL_SUCCESS;
    }

    // Where the scratch buffers of class `which` lie; returns where the last class's end.
    u64 Layout(u32 which, std::vector<Slots>* slots) const {
        u64 at = 0;
        for (const Declared& declared : DECLARED) {
            const u64 most = std::min(site_.cclBufferSize, LIMITS[declared.which]) / UNITS;
            // One element more than the floor, and to where a buffer may begin.
            const u64 bytes = (ElementAt(declared.num, declared.den, most) + 8 + 512) / 512 * 512;
            if (slots != nullptr && declared.which == which) {
                slots->push_back({at, bytes});
            }
            at += declared.slots * bytes;
        }
        return at;
    }
};

REGISTER_EXEC("SmallRing", SmallRing, SmallRing);

} // namespace hccl
