namespace {

constexpr u32 RANKS = @RANKS@;
constexpr u32 CLASSES = @CLASSES@;
constexpr u32 SLAVES = @SLAVES@;
constexpr u64 TILES = @TILES@; // for what the copy engine cannot do at once
constexpr u64 UNITS = @UNITS@; // of the larger of a rank's buffers
constexpr bool ONE_UNIT = @DIRECT@; // of input
const u64 INPUT_UNITS[RANKS] = {@INPUTS@};
const u64 OUTPUT_UNITS[RANKS] = {@OUTPUTS@};

@TABLES@
// Whom each rank has a link to, and what the links show.
const std::vector<std::vector<u32>> LINKS[CLASSES] = {
@LINKS@};
const u32 SHOWS[CLASSES] = {
@SHOWS@};

} // namespace

class @NAME@ : public CollExecutorBase {
public:
    explicit @NAME@(const Site& site) : CollExecutorBase(site) {
        DMAReduceFlag_ = @DMA@;
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
@ENQUEUE@        default: return HCCL_E_INTERNAL;
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
            const u64 bytes = (ElementAt(declared.num, declared.den, most) + 8 + @ALIGN@) / @ALIGN@ * @ALIGN@;
            if (slots != nullptr && declared.which == which) {
                slots->push_back({at, bytes});
            }
            at += declared.slots * bytes;
        }
        return at;
    }
};
