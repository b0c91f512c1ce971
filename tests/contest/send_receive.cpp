// Written by `roundelay emit hcomm` for profile a3.
// The root is rank 0.
//
// Proved by Roundelay, with one-shot notifies. Checked by a stub made from documentation, never on an NPU.
// Taken for granted, for the documentation does not say it:
// * a wait for a signal makes the sender's earlier data visible
// * all notifies are clear before the first call
#include "hcomm.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#define CHK_RET(call)                                                                                                  \
    do {                                                                                                               \
        const HcclResult checked = (call);                                                                             \
        if (checked != HCCL_SUCCESS) {                                                                                 \
            return checked;                                                                                            \
        }                                                                                                              \
    } while (0)

namespace operator_SendReceive {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

constexpr CommEngine ENGINE = COMM_ENGINE_AICPU_TS;
constexpr u32 FOREVER = 0; // ms that a thread waits for a notify
constexpr bool FUSES = false; // a push and the signal behind it are one task
constexpr u32 RANKS = 2;
constexpr u32 CLASSES = 1;
constexpr u32 THREADS = 1; // the main one is the first
constexpr u32 MAIN_NOTIFIES = 1; // one for each thread that the main one starts
constexpr u32 SLAVE_NOTIFIES = 1; // of each other thread
constexpr u32 CHANNEL_NOTIFIES = 2; // of each end of a channel

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
        CHK_RET(Flush());
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

// ---- what is left: SendReceive -----

namespace class_0 {

constexpr u64 PIECES = 1;
constexpr i64 nranks = 2;
const u32 FLAGS[] = {0}; // by lane
const i64 WITHIN[] = {0};

HcclResult Enqueue(Run& run) {
    const i64 me = run.rank;
    Lane lane(run, 0);
    if (me == 0) {
        // 4: copy(local.input, local.output);
        CHK_RET(lane.Copy(lane.Mine(INPUT, At(0, 1)), lane.Mine(OUTPUT, At(0, 1))));
        // 5: peer(1).TxAck();
        CHK_RET(lane.TxAck(1));
        // 6: peer(1).RxDataSignal();
        CHK_RET(lane.RxDataSignal(1));
    } else {
        // 8: peer(0).RxAck();
        CHK_RET(lane.RxAck(0));
        // 9: copy(peer(0).output, local.output);
        CHK_RET(lane.Copy(lane.Of(0, OUTPUT, At(0, 1)), lane.Mine(OUTPUT, At(0, 1))));
        // 10: peer(0).TxDataSignal();
        CHK_RET(lane.TxDataSignal(0));
    }
    return HCCL_SUCCESS;
}

} // namespace class_0

const u64 INPUT_UNITS[RANKS] = {1, 0};
const u64 OUTPUT_UNITS[RANKS] = {1, 1};
constexpr u64 UNITS = 1; // of the larger of a rank's buffers
constexpr u64 MOST_INPUT_UNITS = 1; // of any rank
constexpr u64 MOST_OUTPUT_UNITS = 1; // of any rank
constexpr u64 TILES = 0; // for moves between two peers

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

// Whom each rank has a channel to, for each class.
const std::vector<u32> PEERS[CLASSES][RANKS] = {
    {{1}, {0}}, // class 0
};

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
    const auto end = [](u64 bytes) { return (bytes + 512 - 1) / 512 * 512; };
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
    case 0:
        run.pieces = class_0::PIECES;
        run.flagsAt = 0;
        run.rounds = 1;
        run.flags = class_0::FLAGS;
        run.within = class_0::WITHIN;
        return class_0::Enqueue(run);
    default: return HCCL_E_INTERNAL;
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
    CHK_RET(Done(HcommAclrtNotifyWaitOnThread(resources.threads[0], resources.notifies[0], FOREVER)));
    const u64 own = resources.buffers[run.rank];
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
    CHK_RET(Done(HcommAclrtNotifyRecordOnThread(resources.threads[0], resources.notifies[1])));
    return HCCL_SUCCESS;
}

// Everything between the calls that open and close a batch of tasks.
HcclResult Submit(const Call& call) {
    if (HcommAcquireComm(call.communicator) != 0) {
        return HCCL_E_UNAVAIL;
    }
    HcclResult result = Done(HcommBatchModeStart(""));
    if (result == HCCL_SUCCESS) {
        result = Orchestrate(call);
        const HcclResult ended = Done(HcommBatchModeEnd(""));
        result = result == HCCL_SUCCESS ? ended : result;
    }
    if (HcommReleaseComm(call.communicator) != 0 && result == HCCL_SUCCESS) {
        return HCCL_E_INTERNAL;
    }
    return result;
}

const char* const TAG = "SendReceive by roundelay";

// The runtime's notifies of each communicator: the caller's stream has come to the call, and it may go on.
struct Notifies {
    aclrtNotify begun;
    aclrtNotify ended;
};
std::mutex g_lock;
std::map<HcclComm, Notifies> g_notifies;

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
        CHK_RET(HcclChannelDescInit(wanted.data(), many));
        for (u32 i = 0; i < many; ++i) {
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
    Notifies pair = {};
    for (u32 i = 0; i < 2; ++i) {
        aclrtNotify& notify = i == 0 ? pair.begun : pair.ended;
        u32 id = 0;
        if (aclrtCreateNotify(&notify, 0) != 0 || aclrtGetNotifyId(notify, &id) != 0) {
            return HCCL_E_RUNTIME;
        }
        all.notifies[i] = id;
    }
    {
        const std::lock_guard<std::mutex> held(g_lock);
        g_notifies[comm] = pair;
    }
    CHK_RET(HcclEngineCtxCreate(comm, TAG, ENGINE, sizeof(all), context));
    return HcclEngineCtxCopy(comm, ENGINE, TAG, &all, sizeof(all), 0);
}

} // namespace

// What the engine runs: the function of the kernel library that SendReceive.json names.
extern "C" unsigned int SendReceiveKernel(void* param) {
    return Submit(*static_cast<const Call*>(param)) == HCCL_SUCCESS ? 0 : 1;
}

namespace {

// The folder of SendReceive.json and of the kernel library, which has the same name.
#ifndef ROUNDELAY_KERNELS
#define ROUNDELAY_KERNELS "/usr/local/roundelay"
#endif

HcclResult Launch(const Call& call, aclrtStream stream) {
    static aclrtBinHandle binary = nullptr;
    static std::once_flag once;
    static aclError loaded = 0;
    std::call_once(once, [] {
        aclrtBinaryLoadOption option = {};
        option.type = ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE;
        option.value.cpuKernelMode = 1; // a custom operator: the library beside the JSON file
        aclrtBinaryLoadOptions options = {&option, 1};
        loaded = aclrtBinaryLoadFromFile(ROUNDELAY_KERNELS "/SendReceive.json", &options, &binary);
    });
    aclrtFuncHandle function = nullptr;
    aclrtArgsHandle arguments = nullptr;
    aclrtParamHandle param = nullptr;
    Call copied = call;
    if (loaded != 0 || aclrtBinaryGetFunction(binary, "SendReceiveKernel", &function) != 0 ||
        aclrtKernelArgsInit(function, &arguments) != 0 ||
        aclrtKernelArgsAppend(arguments, &copied, sizeof(copied), &param) != 0 ||
        aclrtKernelArgsFinalize(arguments) != 0) {
        return HCCL_E_RUNTIME;
    }
    aclrtLaunchKernelAttr attribute = {};
    attribute.id = ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT;
    attribute.value.timeout = 27 * 68; // s, as the sample has it
    aclrtLaunchKernelCfg config = {&attribute, 1};
    return aclrtLaunchKernelWithConfig(function, 1, stream, &config, arguments, nullptr) == 0 ? HCCL_SUCCESS
                                                                                              : HCCL_E_RUNTIME;
}

} // namespace

HcclResult Start(const void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclComm comm, aclrtStream stream) {
    u32 ranks = 0;
    CHK_RET(HcclGetRankSize(comm, &ranks));
    if (ranks != RANKS) {
        return HCCL_E_PARA;
    }
    if (SizeOf(dataType) == 0) {
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
    Notifies pair = {};
    {
        const std::lock_guard<std::mutex> held(g_lock);
        pair = g_notifies[comm];
    }
    if (aclrtRecordNotify(pair.begun, stream) != 0) {
        return HCCL_E_RUNTIME;
    }
    CHK_RET(Launch(call, stream));
    return aclrtWaitAndResetNotify(pair.ended, stream, 0) == 0 ? HCCL_SUCCESS : HCCL_E_RUNTIME;
}

} // namespace operator_SendReceive

extern "C" HcclResult SendReceive(const void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclComm comm, aclrtStream stream) {
    return operator_SendReceive::Start(sendBuf, recvBuf, count, dataType, comm, stream);
}
