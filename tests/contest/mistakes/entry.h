// What a published entry does, in our own words: a ring in both directions, each on a stream, half of the data each
// way. Every mistake is a switch, so that each goes wrong alone.
#pragma once
#include "hccl_stub.h"

#include <algorithm>

namespace hccl {

struct Mistakes {
    bool bytes = false;  // halves and blocks are cut in bytes
    bool typed = false;  // the ring's order is typed in, for eight ranks and one dead cable
    bool narrow = false; // offsets have 32 bits
    bool wired = false;  // the reduction inside the copy engine is always that of f32 sums
};

class PublishedEntry : public CollExecutorBase {
public:
    PublishedEntry(const Site& site, Mistakes mistakes) : CollExecutorBase(site), mistakes_(mistakes) {
        DMAReduceFlag_ = true;
    }

private:
    // From one rank to the next: as typed, or as numbered.
    std::vector<u32> Order() const {
        if (mistakes_.typed) {
            return {1, 2, 3, 4, 5, 6, 0, 7};
        }
        std::vector<u32> order;
        for (u32 rank = 0; rank < site_.userRankSize; ++rank) {
            order.push_back(rank);
        }
        return order;
    }

    u32 Position() const {
        const std::vector<u32> order = Order();
        return u32(std::find(order.begin(), order.end(), site_.userRank) - order.begin());
    }

    u32 At(u32 position) const {
        const std::vector<u32> order = Order();
        return order[position % order.size()];
    }

    HcclResult CalcScratchMemSize(u64& scratchMemSize) override {
        scratchMemSize = 0;
        return HCCL_SUCCESS;
    }

    HcclResult CalcStreamNum(u32& streamNum) override {
        streamNum = 1;
        return HCCL_SUCCESS;
    }

    HcclResult CalcNotifyNum(u32 streamNum, u32& notifyNum) override {
        notifyNum = 2 * streamNum;
        return HCCL_SUCCESS;
    }

    HcclResult CalcCommInfo(std::vector<LevelRequest>& opTransport) override {
        const u32 n = site_.userRankSize, left = At(Position() + n - 1), right = At(Position() + 1);
        std::vector<u32> peers = {left};
        if (right != left) {
            peers.push_back(right);
        }
        opTransport.push_back({peers, static_cast<u32>(UserMemType::OUTPUT_MEM)});
        return HCCL_SUCCESS;
    }

    u64 CalcLoopMaxCount(u64 cclBuffSize, u32 unitSize) override { return cclBuffSize / unitSize; }

    // A block of a half, in bytes of the whole.
    void Block(u64 count, u64 unit, u32 way, u32 block, u64& offset, u64& size) const {
        const u64 n = site_.userRankSize;
        if (mistakes_.bytes) {
            const u64 half = count * unit / 2;
            size = half / n;
            offset = way * half + block * size;
        } else {
            const auto end = [&](u64 at) { return at * count / (2 * n) * unit; };
            offset = end(way * n + block);
            size = end(way * n + block + 1) - offset;
        }
        if (mistakes_.narrow) {
            offset = u32(offset);
        }
    }

    HcclResult Fold(const OpParam& param, const DeviceMem& src, const DeviceMem& dst, Stream& stream) {
        const HcclDataType type = mistakes_.wired ? HCCL_DATA_TYPE_FP32 : param.dataType;
        const HcclReduceOp op = mistakes_.wired ? HCCL_REDUCE_SUM : param.reduceType;
        const u64 count = dst.size() / SizeOf(type);
        return HcclReduceAsync(site_.dispatcher, src, count, type, op, stream, dst, ReduceAttr::INLINE);
    }

    HcclResult OneWay(const OpParam& param, ExecMem& mem, u32 way, Stream& stream) {
        const u32 n = site_.userRankSize, me = Position();
        const u64 unit = SizeOf(param.dataType);
        std::map<u32, LINK>& links = algRes_->levels[0];
        const LINK right = links[At(me + 1)], left = links[At(me + n - 1)];
        const LINK to = way == 0 ? right : left, from = way == 0 ? left : right;
        DeviceMem theirs;
        CHK_RET(from->GetRemoteMem(UserMemType::OUTPUT_MEM, theirs));
        for (u32 round = 0; round < 2 * (n - 1); ++round) {
            const bool reduces = round < n - 1;
            const u32 shift = reduces ? round + 1 : round - (n - 1);
            const u32 block = way == 0 ? (me + n - shift) % n : (me + shift) % n;
            u64 offset = 0, size = 0;
            Block(mem.count, unit, way, block, offset, size);
            CHK_RET(to->TxAck(stream));
            CHK_RET(from->RxAck(stream));
            const DeviceMem src = theirs.range(offset, size), dst = mem.outputMem.range(offset, size);
            if (reduces) {
                CHK_RET(Fold(param, src, dst, stream));
            } else {
                CHK_RET(HcclD2DMemcpyAsync(site_.dispatcher, dst, src, stream));
            }
            CHK_RET(from->TxDataSignal(stream));
            CHK_RET(to->RxDataSignal(stream));
        }
        return HCCL_SUCCESS;
    }

    HcclResult KernelRun(const OpParam& param, ExecMem& mem) override {
        Stream& main = algRes_->mainStream;
        Stream& slave = algRes_->slaveStreams[0];
        const u64 bytes = mem.count * SizeOf(param.dataType);
        const DeviceMem in(mem.inputPtr, bytes), out(mem.outputPtr, bytes), sum = mem.outputMem.range(0, bytes);
        CHK_RET(HcclD2DMemcpyAsync(site_.dispatcher, sum, in, main));
        CHK_RET(LocalNotify::Post(main, site_.dispatcher, algRes_->notifies[0]));
        CHK_RET(LocalNotify::Wait(slave, site_.dispatcher, algRes_->notifies[0]));
        CHK_RET(OneWay(param, mem, 0, main));
        CHK_RET(OneWay(param, mem, 1, slave));
        CHK_RET(LocalNotify::Post(slave, site_.dispatcher, algRes_->notifies[1]));
        CHK_RET(LocalNotify::Wait(main, site_.dispatcher, algRes_->notifies[1]));
        return HcclD2DMemcpyAsync(site_.dispatcher, out, sum, main);
    }

    Mistakes mistakes_;
};

} // namespace hccl
