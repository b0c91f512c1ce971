// A chain of three ranks that pass data on by lines: the first sends, the second does what ROLE says, the last takes it.
#include "ll.cuh"

// What the second rank does: 1 folds its own data into it, 2 keeps it.
#ifndef ROLE
#define ROLE 3
#endif

namespace roundelay {

// [4] rounds, [5] credits, [6] bytes of a slot, [7] the flag of the first round, [8] divisor; then for each round its
// length, where it begins in all inputs, and where in all outputs.
struct Round {
    u64 len;
    u64 from;
    u64 to;
};

} // namespace roundelay

ROUNDELAY_KERNEL(Chain) {
    using namespace roundelay;
    enum : i64 { Head, Ready };
    constexpr u64 SIZE = sizeof(Element);
    const i64 rounds = launch.facts[4], credits = launch.facts[5], slot = launch.facts[6], divisor = launch.facts[8];
    const u64 part = u64(block_index()) % launch.parts;
    const i64 rank = i64(u64(block_index()) / launch.parts);
    const Memory& me = launch.ranks[rank];
    Signals signals(launch, u64(rank), part);
    i64 step = 0;
    // As if all flags had come by once: these lines must be gone when their flag comes again.
    const u64 stale = u64(launch.facts[9]), word = 0x123456789abcdef0, flag = WIDE_LINES ? stale : (word & 0xffffffff) | stale << 32;
    for (i64 at = thread() + i64(part) * threads(); at < credits * slot / 16; at += threads() * i64(launch.parts)) {
        store_words<SCOPE, WIDE_LINES>(reinterpret_cast<Vector*>(me.scratch) + at, {{WIDE_LINES ? word : flag, flag}});
    }
    signals.begin_move();
    if (rank > 0) {
        signals.post(launch.ranks[rank - 1], Ready);
    }
    if (rank < 2) {
        signals.wait(me, Ready, step);
    }
    signals.meet_parts(me, 2, step);
    for (i64 round = 0; round < rounds; ++round) {
        const Round now = {u64(launch.facts[24 + 3 * round]), u64(launch.facts[25 + 3 * round]),
                           u64(launch.facts[26 + 3 * round])};
        const u64 flag = u64(launch.facts[7] + round);
        const u64 at = u64(round % credits * slot);
        const u64 rewritten = wraps(flag) ? u64(slot) / 16 : 0;
        const Slot in = {me.scratch + at, flag, rewritten};
        const Slot out = {rank < 2 ? launch.ranks[rank + 1].scratch + at : 0, flag, rewritten};
        const Local local = {me.input + now.from * SIZE, me.output + now.to * SIZE};
        if (rank < 2 && round >= credits) {
            signals.wait(me, Head, step);
        }
        const Waiter waiter = signals.waiter(step, u64(round + 1));
        bool passed = signals.begin_move();
        if (passed && rank == 0) {
            passed = pass_lines<false, true, false, true>(launch, waiter, in, out, local, now.len, 0);
        } else if (passed && rank == 1) {
            passed = pass_lines<true, (ROLE & 1) != 0, (ROLE & 2) != 0, true>(launch, waiter, in, out, local, now.len, divisor);
        } else if (passed) {
            passed = pass_lines<true, (ROLE & 1) == 0, true, false>(launch, waiter, in, out, local, now.len, 0);
        }
        if (!passed) {
            signals.fail();
        }
        if (rank > 0) {
            signals.post(launch.ranks[rank - 1], Head);
        }
        step += 1;
    }
    for (i64 round = 0; round < credits && round < rounds && rank < 2; ++round) {
        signals.wait(me, Head, step);
    }
}
