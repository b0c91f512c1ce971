// Written by a test of core/export/src/cuda/words.rs, which is the place to change it: what host and device agree on by
// number. `UPDATE_EXPECT=1 cargo test -p roundelay-export --lib words` writes it anew.
#pragma once
#include "base.cuh"

namespace roundelay {

// The words of the header.
enum class Header : i64 {
    Lanes, // Lanes of signals.
    Ranks, // Ranks of the machine.
    Streams, // Streams of the rank that has most.
    GroupsAt, // Where each group is described: rank, stream, ops, first move or first op.
    ScratchAt, // Where each scratch declaration is: first element, length of a slot, slots before it.
    Slots, // Slots of all declarations.
    FinishAt, // Where a bit for each move says whether it completes an average.
    Divisor, // The divisor of an average.
    TableAt, // Where the table of hashes and values is.
    TableMask, // Its length, less one.
    ParamsAt, // Where the values of the parameters are.
    InputUnits, // Units of the longest input.
    OutputUnits, // Units of the longest output.
    LinksOfARank, // The most links of a fifo that one rank has an end of.
    Work, // Words of each block's own.
    OpsAt, // Where the ops of the table form are.
    OperandsAt, // Where their operands are.
};

// The question of a lookup: the first word of a key.
enum class Key : i64 {
    Lane, // A lane, by how deep it is, the lane around it and the value.
    Child, // The children that a stream forks, by rank and stream.
    Scratch, // A scratch declaration, by calls, lane and number.
    Link, // A link of a fifo, by fifo, lane and ends.
    EndFifo, // The signal that a rank waits for where a fifo ends.
    Object, // A ring, tree, group or topology, by where and from what it was made.
    Relays, // The relays between two ranks of a topology.
};

// The ops of the table form.
enum class Kind : i64 {
    Move, // Sources with destinations and whether it finishes, first operand, length.
    Post, // To a peer, on a channel.
    Wait, // For a peer, on a channel.
    Meet, // The parts of the stream meet.
};

// The kinds of signal: those of pairs of ranks, then those of child streams.
enum class Signal : i32 { Ack, Data, Head, Tail, Fork, Join };
#ifdef ROUNDELAY_SHIM
constexpr const char* SIGNAL_NAMES[] = {"Ack", "Data", "Head", "Tail", "Fork", "Join"};
#endif

constexpr i32 GROUP_WORDS = 4; // Words that describe a group.
constexpr i32 SCRATCH_WORDS = 3; // Words that describe a scratch declaration.
constexpr i32 OP_WORDS = 4; // Words of an op of the table form.
constexpr i32 OPERAND_WORDS = 3; // Words of its operands, each: rank, buffer, element.
constexpr i32 CREDIT_WORDS = 3; // Words of a credit that is taken back where a fifo ends: peer, lane, times.
constexpr i32 HELD_WORDS = 3; // Words of a block's own for each slot: the interval that it holds, over its denominator.
constexpr i32 LINK_WORDS = 4; // Words of a block's own for each open link: key, first slot, ends, steps.
constexpr i32 PAIR_SIGNALS = 4; // Kinds of signal that each lane of a pair of ranks has a counter for.
constexpr i32 CHILD_SIGNALS = 2; // Kinds of signal that each child stream has a counter for, behind those.
constexpr i32 INPUT = 0; // A rank's input, as operands name it.
constexpr i32 OUTPUT = 1; // Its output.
constexpr i32 SCRATCH = 2; // Its scratch; where regions name declarations, the first of them.
constexpr u64 HASH_START = 0xcbf29ce484222325; // The first value of a hash.
constexpr u64 HASH_FACTOR = 0x100000001b3; // The factor of a hash, word for word.
constexpr u64 HASH_SHIFT = 0x1d; // How far its high bits are folded down.

} // namespace roundelay
