#define CHK_RET(call)                                                                                                  \
    do {                                                                                                               \
        const HcclResult checked = (call);                                                                             \
        if (checked != HCCL_SUCCESS) {                                                                                 \
            return checked;                                                                                            \
        }                                                                                                              \
    } while (0)

namespace operator_@NAME@ {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

constexpr CommEngine ENGINE = @ENGINE@;
constexpr u32 FOREVER = @FOREVER@; // ms that a thread waits for a notify
constexpr bool FUSES = @FUSES@; // a push and the signal behind it are one task
constexpr u32 RANKS = @RANKS@;
constexpr u32 CLASSES = @CLASSES@;
constexpr u32 THREADS = @THREADS@; // the main one is the first
constexpr u32 MAIN_NOTIFIES = @MAIN@; // one for each thread that the main one starts
constexpr u32 SLAVE_NOTIFIES = @SLAVE@; // of each other thread
constexpr u32 CHANNEL_NOTIFIES = @CHANNEL@; // of each end of a channel

@NUMBERS@
// A piece of some rank's memory.
struct Place {
    u32 rank;
    u32 buffer;
    Piece piece;
};

// A part of a rank's HCCL buffer, or of the caller's memory.
struct Memory {
    u64 address;
    u64 bytes;
    void* At(u64 offset) const { return reinterpret_cast<void*>(uintptr_t(address + offset)); }
};

// Handles and addresses, in the engine's own memory: made by the first call of a communicator, and found by tag.
struct Resources {
    u32 rank;
    ThreadHandle threads[THREADS];
    ChannelHandle channels[RANKS];
    u64 buffers[RANKS]; // HCCL buffers; 0 where no channel leads
    u64 bytes;          // of each of them
    u64 notifies[2];    // of the runtime: the caller's stream has come here, and it may go on
};

// Where the parts of an HCCL buffer lie, for a class.
struct Layout {
    u64 output; // the input is at 0
    std::vector<Slots> scratch;
    u64 tiles;
    u64 bytes;
};

// A thread that another one starts, and the notify by which it is joined.
struct Child {
    u32 parent;
    u32 notify;
};

// One pass over the loop of what does not fit in the HCCL buffers.
struct Run {
    const Resources* resources;
    u32 rank;
    u64 count; // elements a unit
    u64 pieces;
    u32 unit; // bytes of an element
    HcommDataType type;
    HcommReduceOp op;
    Layout layout;
    // Notifies of channels: the first of the class, those that a lane takes in turn, and the first of each lane.
    u32 flagsAt;
    u32 rounds;
    const u32* flags;
    const i64* within; // the number of a lane inside a lane, less its value
    i64 lane;
    std::vector<u32> passed[2]; // by peer and flag: waits, and posts
    std::vector<Child> children;
    std::vector<u32> started; // threads that each thread started
    // A push that no task was made of yet, of each thread.
    struct Push {
        bool waits;
        bool reduces;
        u32 peer;
        Memory dst;
        Memory src;
    };
    std::vector<Push> pushes;
};

inline HcclResult Done(int32_t result) { return result == 0 ? HCCL_SUCCESS : HCCL_E_INTERNAL; }

// A thread of a rank, and what is enqueued on it.
class Lane {
public:
    Lane(Run& run, u32 index) : run_(run), index_(index), lane_(run.lane), before_(run.lane) {}
    // Inside the lane of the parallel loop around.
    Lane(Run& run, u32 index, i64 value)
        : run_(run), index_(index), lane_(run.within[run.lane] + value), before_(run.lane) {
        run.lane = lane_;
    }
    Lane(const Lane& other) : run_(other.run_), index_(other.index_), lane_(other.lane_), before_(run_.lane) {}
    Lane& operator=(const Lane&) = delete;
    ~Lane() { run_.lane = before_; }

    // The same thread, for signals in another lane.
    Lane In(i64 lane) const {
        Lane other(*this);
        other.lane_ = lane;
        return other;
    }

    u32 Rank() const { return run_.rank; }

    HcclResult TxAck(u32 peer) { return Record(peer, 0); }
    HcclResult RxAck(u32 peer) { return Wait(peer, 0); }
    HcclResult TxDataSignal(u32 peer) { return Record(peer, 1); }
    HcclResult RxDataSignal(u32 peer) { return Wait(peer, 1); }

    // A slave thread begins when its notify 0 is recorded, and records one of its parent at its end.
    HcclResult Fork(u32 slave) {
        CHK_RET(Flush());
        Child& child = run_.children[slave];
        if (child.notify == ~u32(0)) {
            child = {index_, run_.started[index_]++ + (index_ == 0 ? 0 : 1)};
        }
        return Done(HcommThreadNotifyRecordOnThread(Thread(index_), Thread(slave), 0));
    }
    HcclResult Begin() { return Done(HcommThreadNotifyWaitOnThread(Thread(index_), 0, FOREVER)); }
    HcclResult End() {
        CHK_RET(Flush());
        const Child& child = run_.children[index_];
        return Done(HcommThreadNotifyRecordOnThread(Thread(index_), Thread(child.parent), child.notify));
    }
    HcclResult Join(u32 slave) {
        CHK_RET(Flush());
        return Done(HcommThreadNotifyWaitOnThread(Thread(index_), run_.children[slave].notify, FOREVER));
    }

    Place Mine(u32 buffer, Piece piece) const { return {run_.rank, buffer, piece}; }
    Place Of(u32 rank, u32 buffer, Piece piece) const { return {rank, buffer, piece}; }

    HcclResult Copy(const Place& src, const Place& dst) { return Move(src, dst, false); }
    // dst = src op dst.
    HcclResult Reduce(const Place& src, const Place& dst) { return Move(src, dst, true); }

    HcclResult CopyLocal(const Memory& dst, const Memory& src) {
        CHK_RET(Flush());
        if (dst.bytes == 0) {
            return HCCL_SUCCESS;
        }
        return Done(HcommLocalCopyOnThread(Thread(index_), dst.At(0), src.At(0), dst.bytes));
    }

    // Makes a task of the push that waits for its signal.
    HcclResult Flush() {
        Run::Push& push = run_.pushes[index_];
        if (!push.waits) {
            return HCCL_SUCCESS;
        }
        push.waits = false;
        return Done(push.reduces
                        ? HcommWriteReduceOnThread(Thread(index_), Channel(push.peer), push.dst.At(0), push.src.At(0),
                                                   push.src.bytes / run_.unit, run_.type, run_.op)
                        : HcommWriteOnThread(Thread(index_), Channel(push.peer), push.dst.At(0), push.src.At(0),
                                             push.src.bytes));
    }

private:
    ThreadHandle Thread(u32 index) const { return run_.resources->threads[index]; }
    ChannelHandle Channel(u32 peer) const { return run_.resources->channels[peer]; }

    u32 Notify(u32 peer, u32 kind, u32 way) {
        const u32 flag = 2 * run_.flags[lane_] + kind;
        u32& passed = run_.passed[way][peer * CHANNEL_NOTIFIES + flag];
        return run_.flagsAt + flag * run_.rounds + passed++ % run_.rounds;
    }

    HcclResult Record(u32 peer, u32 kind) {
        const u32 notify = Notify(peer, kind, 1);
@FUSED@        CHK_RET(Flush());
        return Done(HcommChannelNotifyRecordOnThread(Thread(index_), Channel(peer), notify));
    }

    HcclResult Wait(u32 peer, u32 kind) {
        CHK_RET(Flush());
        return Done(HcommChannelNotifyWaitOnThread(Thread(index_), Channel(peer), Notify(peer, kind, 0), FOREVER));
    }

    HcclResult Move(const Place& src, const Place& dst, bool reduces) {
        const Memory from = Find(src), to = Find(dst);
        if (to.bytes == 0) {
            return HCCL_SUCCESS;
        }
        if (dst.rank == run_.rank) {
            return Pull(to, src.rank, from, reduces);
        }
        if (src.rank == run_.rank) {
            return Push(dst.rank, to, from, reduces);
        }
        const Memory tile = {run_.resources->buffers[run_.rank] + run_.layout.tiles + index_ * TILE, TILE};
        for (u64 at = 0; at < to.bytes; at += TILE) {
            const u64 bytes = std::min(TILE, to.bytes - at);
            CHK_RET(Pull({tile.address, bytes}, src.rank, {from.address + at, bytes}, false));
            CHK_RET(Push(dst.rank, {to.address + at, bytes}, {tile.address, bytes}, reduces));
        }
        return HCCL_SUCCESS;
    }

    HcclResult Pull(const Memory& dst, u32 peer, const Memory& src, bool reduces) {
        CHK_RET(Flush());
        const u64 count = dst.bytes / run_.unit;
        if (peer == run_.rank) {
            return Done(reduces ? HcommLocalReduceOnThread(Thread(index_), dst.At(0), src.At(0), count, run_.type, run_.op)
                                : HcommLocalCopyOnThread(Thread(index_), dst.At(0), src.At(0), dst.bytes));
        }
        return Done(reduces ? HcommReadReduceOnThread(Thread(index_), Channel(peer), dst.At(0), src.At(0), count,
                                                      run_.type, run_.op)
                            : HcommReadOnThread(Thread(index_), Channel(peer), dst.At(0), src.At(0), dst.bytes));
    }

    HcclResult Push(u32 peer, const Memory& dst, const Memory& src, bool reduces) {
        CHK_RET(Flush());
        run_.pushes[index_] = {true, reduces, peer, dst, src};
        return FUSES ? HCCL_SUCCESS : Flush();
    }

    Memory Find(const Place& place) const {
        const Piece& piece = place.piece;
        const u64 lo = ElementAt(piece.lo, run_.pieces, run_.count), hi = ElementAt(piece.hi, run_.pieces, run_.count);
        u64 offset = (lo - ElementAt(piece.base, run_.pieces, run_.count)) * run_.unit;
        if (place.buffer >= SCRATCH) {
            const Slots& slots = run_.layout.scratch[place.buffer - SCRATCH];
            offset += slots.offset + piece.slot * slots.bytes;
        } else if (place.buffer == OUTPUT) {
            offset += run_.layout.output;
        }
        return {run_.resources->buffers[place.rank] + offset, (hi - lo) * run_.unit};
    }

    Run& run_;
    u32 index_;
    i64 lane_;
    i64 before_;
};
