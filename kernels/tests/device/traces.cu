// Ops that are only traced: every kind of signal, and a move of each buffer.
#include "signals.cuh"

ROUNDELAY_KERNEL(Traces) {
    using namespace roundelay;
    const i64 rank = i64(u64(block_index()) / launch.parts);
    const Traced operands[] = {{rank, 0, 5}, {1 - rank, 1, 70000000000}, {rank, 2, 0}};
    for (int kind = 0; kind < 6; ++kind) {
        trace_signal(kind % 2 == 0, kind, rank, 1 - rank, kind);
    }
    trace_move(operands, 2, 1, 12, true);
    trace_move(operands, 1, 2, 0, false);
}
