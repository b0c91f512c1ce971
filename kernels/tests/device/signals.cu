// A ring in which every rank sends to the next through slots, several rounds ahead of its receiver. A slot is written
// as a whole and read in two halves: what one part reads, others have written.
#include "moves.cuh"
#include "signals.cuh"

ROUNDELAY_KERNEL(Ring) {
    using namespace roundelay;
    enum : i64 { Data, Ack, Sync };
    const i64 nranks = launch.facts[1], rounds = launch.facts[4], credits = launch.facts[5], slot = launch.facts[6];
    const u64 part = u64(block_index()) % launch.parts;
    const i64 rank = i64(u64(block_index()) / launch.parts);
    const Memory& me = launch.ranks[rank];
    const Memory& right = launch.ranks[(rank + 1) % nranks];
    const Memory& left = launch.ranks[(rank + nranks - 1) % nranks];
    Signals signals(launch, u64(rank), part);
    i64 step = 0;
    auto copy = [&](u64 from, u64 to, u64 len) {
        const Portion mine = portion(len, launch.parts, part);
        if (signals.begin_move()) {
            move<1, 1>({from}, {to}, mine.begin, mine.end, 0);
        }
        step += 1;
    };
    u64 written = me.output;
    for (i64 round = 0; round < rounds; ++round) {
        const u64 len = u64(launch.facts[8 + 4 * nranks + round]), half = len / 2;
        const u64 at = u64(round % credits * slot);
        if (round >= credits) {
            signals.wait(me, Ack, step++);
        }
        copy(me.input + u64(round), right.scratch + at, len);
        signals.post(right, Data);
        step += 1;
        signals.wait(me, Data, step++);
        copy(me.scratch + at, written, half);
        copy(me.scratch + at + half, written + half, len - half);
        signals.post(left, Ack);
        step += 1;
        written += len;
        signals.meet_parts(me, Sync, step);
    }
    for (i64 round = 0; round < credits && round < rounds; ++round) {
        signals.wait(me, Ack, step++);
    }
}
