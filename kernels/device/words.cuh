// Written by a test from core/export/src/cuda/words.rs, which is the place to change it: what host and device agree on by
// number. `UPDATE_EXPECT=1 cargo test -p roundelay-export-tests words::` writes it anew.
#pragma once
#include "base.cuh"

namespace roundelay {

// The words of the header.
enum class Header : i64 {
    Lanes, // Lanes of signals.
    Ranks, // Ranks of the machine.
    Streams, // Streams of the rank that has most.
    GroupsAt, // Where each group is described: rank, stream, ops, first move or first op.
    LanesAt, // Where each lane says which number a lane inside it has, less its value.
    ChildrenAt, // Where the children of each stream of each rank are, in the order of their first forks.
    FinishAt, // Where a bit for each move says whether it completes an average.
    Divisor, // The divisor of an average.
    OutputUnits, // Units of the longest output.
    OpsAt, // Where the ops of the table form are.
    OperandsAt, // Where their operands are.
    SwitchesAt, // Where each group that a switch reaches says where its ranks are: their number, and the ranks.
};

// The ops of the table form.
enum class Kind : i64 {
    Move, // Sources with destinations and whether it finishes, first operand, length.
    Post, // To a peer, on a channel.
    Wait, // For a peer, on a channel.
    Meet, // The parts of the stream meet.
    Switch, // The sides of all ranks and whether it finishes, first operand, length: a move by a switch.
};

// The kinds of signal: those of pairs of ranks, then those of child streams.
enum class Signal : i32 { Ack, Data, Head, Tail, Fork, Join };
#ifdef ROUNDELAY_SHIM
constexpr const char* SIGNAL_NAMES[] = {"Ack", "Data", "Head", "Tail", "Fork", "Join"};
#endif

constexpr i32 GROUP_WORDS = 4; // Words that describe a group.
constexpr i32 HEADER_WORDS = 12; // Words of the header; behind them each scratch buffer is described, and then come the tables of the loops.
constexpr i32 SCRATCH_WORDS = 2; // Words that describe a scratch buffer: first element, length of a slot.
constexpr i32 OP_WORDS = 4; // Words of an op of the table form.
constexpr i32 OPERAND_WORDS = 3; // Words of its operands, each: rank, buffer, element.
constexpr i32 PAIR_SIGNALS = 4; // Kinds of signal that each lane of a pair of ranks has a counter for.
constexpr i32 CHILD_SIGNALS = 2; // Kinds of signal that each child stream has a counter for, behind those.
constexpr i32 SWITCH_RANKS = 255; // The most ranks that a switch reaches at once.
constexpr i32 INPUT = 0; // A rank's input, as operands name it.
constexpr i32 OUTPUT = 1; // Its output.
constexpr i32 SCRATCH = 2; // Its scratch; in the text of loops, the first of its scratch buffers.

} // namespace roundelay
