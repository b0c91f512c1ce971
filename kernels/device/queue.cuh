// One warp of a CTA walks the program, the walker; the other threads do the ops, the movers. The walker is ahead: it
// has located the regions when a wait is over, and the walk's variables take no registers of the movers.
//
// The ops go through a ring of entries in shared memory. The walker waits for a free entry, and the movers for a
// written one; a mover never waits for another CTA with an entry that the walker needs, since the movers give back the
// entries before the one at hand whenever they meet.
#pragma once
#include "ll.cuh"
#include "moves.cuh"
#include "signals.cuh"
#include "switch.cuh"

namespace roundelay {

// Entries of the ring.
constexpr u32 QUEUED = 8;

enum class Does : u32 { Move, Switch, Pass, Post, Wait, Stage, End };

// The parts of a pass of slots, as bits.
enum Has : u32 { RECEIVES = 1, OWN = 2, DST = 4, SENDS = 8 };

// The parts of each primitive.
namespace passes {
constexpr u32 send = OWN | SENDS;
constexpr u32 recv = RECEIVES | DST;
constexpr u32 recv_copy_send = RECEIVES | DST | SENDS;
constexpr u32 recv_reduce_send = RECEIVES | OWN | SENDS;
constexpr u32 recv_reduce_copy = RECEIVES | OWN | DST;
constexpr u32 recv_reduce_copy_send = RECEIVES | OWN | DST | SENDS;
} // namespace passes

// Posts and waits of one entry, consecutive in the program.
constexpr u32 POSTS = 16;
constexpr u32 WAITS = 5;

struct Entry {
    Does does;
    // Of a move, its sources and above 8 bits its destinations; of a switch's move, its sides; of a pass, its parts; of
    // posts and waits, their number.
    u32 shape;
    u64 step;
    // Of a move, the elements of this part; of a pass, the elements of all parts.
    u64 begin, end;
    i64 divisor;
    union {
        // Of a move, the addresses of its sources and then of its destinations; of a pass, of its own elements and of
        // those it writes; of posts, of the counters.
        u64 at[POSTS];
        Awaited waits[WAITS];
        SwitchMove by_switch;
    };
    Slot in, out;
    u64 expected; // posts, of a pass
};

struct Queue {
    u32 done;    // by the movers: see signals.cuh
    u32 written; // by the walker
    Entry entries[QUEUED];
};

static_assert(sizeof(Queue) <= SHARED_BYTES, "it is in shared memory");

ROUNDELAY_DEVICE Queue& queue() { return *static_cast<Queue*>(shared_memory()); }

// The walker's end, with equal values in all its threads. Consecutive posts are one entry, and so are consecutive
// waits: the movers then have one release for the posts, and poll for all waits at once. An entry that may still grow
// is published when the walker reaches another op, which is soon, as the walk itself waits only for room.
class Walker {
    u32 written = 0; // the entry at hand, if one is open, is not among them
    u32 done = 0;
    u32 grown = 0; // posts or waits of the entry at hand
    Does grows = Does::End;

    ROUNDELAY_DEVICE Entry& next() const { return queue().entries[written % QUEUED]; }

    // Waits for room for an entry, behind the one that was open.
    ROUNDELAY_DEVICE void begin() {
        show();
        while (written - done >= QUEUED) done = wait_until_not(&queue().done, done);
    }

    ROUNDELAY_DEVICE void grow(Does does, u32 most) {
        if (grown == 0 || grown == most || grows != does) begin();
        grows = does;
    }

    ROUNDELAY_DEVICE bool has(u64 counters) const {
        // All threads see what the leading thread wrote.
        walker_sync();
        bool found = false;
        for (u32 i = 0; i < grown; ++i) found = found || next().waits[i].counters == counters;
        return found;
    }

  public:
    // Has `fill` begin the next entry, when there is room.
    template <class Fill> ROUNDELAY_DEVICE void open(const Fill& fill) {
        begin();
        if (leads()) fill(next());
    }

    // Writes the address of an operand of the entry.
    ROUNDELAY_DEVICE void operand(int i, u64 address) {
        if (leads()) next().at[i] = address;
    }

    ROUNDELAY_SHARED void close() {
        grown = 0;
        written += 1;
        walker_sync();
        if (leads()) publish(&queue().written, written);
    }

    // Has the movers see all entries, also one that could still grow.
    ROUNDELAY_DEVICE void show() {
        if (grown > 0) close();
    }

    // Has `fill` write the next entry, when there is room.
    template <class Fill> ROUNDELAY_DEVICE void put(const Fill& fill) {
        open(fill);
        close();
    }

    ROUNDELAY_DEVICE void post(u64 counter) {
        grow(Does::Post, POSTS);
        if (leads()) {
            next().does = Does::Post;
            next().at[grown] = counter;
            next().shape = grown + 1;
        }
        grown += 1;
    }

    ROUNDELAY_DEVICE void wait(const Awaited& wait) {
        if (grown > 0 && grows == Does::Wait && has(wait.counters)) begin();
        grow(Does::Wait, WAITS);
        if (leads()) {
            next().does = Does::Wait;
            next().waits[grown] = wait;
            next().shape = grown + 1;
        }
        grown += 1;
    }
};

// ---- the movers' end -------------------------------------------------------------------------------------------

template <int S, int D> ROUNDELAY_DEVICE void move_entry(const Entry& entry) {
    u64 srcs[S], dsts[D];
#pragma unroll
    for (int i = 0; i < S; ++i) srcs[i] = entry.at[i];
#pragma unroll
    for (int i = 0; i < D; ++i) dsts[i] = entry.at[S + i];
    move<S, D>(srcs, dsts, entry.begin, entry.end, entry.divisor);
}

// The shapes of moves that the program has.
ROUNDELAY_DEVICE void move_entry(const Entry& entry) {
    switch (entry.shape) {
#ifdef ROUNDELAY_MOVES
#define ROUNDELAY_MOVE(S, D)                                                                                           \
    case S | D << 8: return move_entry<S, D>(entry);
        ROUNDELAY_MOVES(ROUNDELAY_MOVE)
#undef ROUNDELAY_MOVE
#endif
    default: trap();
    }
}

// The sides of all ranks that the program's moves by a switch have.
ROUNDELAY_DEVICE void switch_entry(const Launch& launch, const Entry& entry) {
    switch (entry.shape) {
#ifdef ROUNDELAY_SWITCH_MOVES
#define ROUNDELAY_SWITCH_MOVE(SIDES)                                                                                   \
    case SIDES: return move_by_switch<SIDES>(launch.ranks, entry.by_switch, entry.begin, entry.end, entry.divisor);
        ROUNDELAY_SWITCH_MOVES(ROUNDELAY_SWITCH_MOVE)
#undef ROUNDELAY_SWITCH_MOVE
#endif
    default: trap();
    }
}

template <u32 HAS> ROUNDELAY_DEVICE bool pass_entry(const Launch& launch, const Signals& signals, const Entry& entry) {
    const Waiter waiter = signals.waiter(i64(entry.step), entry.expected);
    const Local local{entry.at[0], entry.at[1]};
    return pass_lines<(HAS & RECEIVES) != 0, (HAS & OWN) != 0, (HAS & DST) != 0, (HAS & SENDS) != 0>(
        launch, waiter, entry.in, entry.out, local, entry.end, entry.divisor);
}

// The shapes of passes that the program has. False: this thread gave up.
ROUNDELAY_DEVICE bool pass_entry(const Launch& launch, const Signals& signals, const Entry& entry) {
    switch (entry.shape) {
#ifdef ROUNDELAY_PASSES
#define ROUNDELAY_PASS(NAME)                                                                                           \
    case passes::NAME: return pass_entry<passes::NAME>(launch, signals, entry);
        ROUNDELAY_PASSES(ROUNDELAY_PASS)
#undef ROUNDELAY_PASS
#endif
    default: trap();
    }
    return false;
}

// Does all ops that the walker of this CTA wrote, to the end. A thread that gave up goes on without doing any, so that
// the walker always comes to its end.
ROUNDELAY_SHARED void do_entries(const Launch& launch) {
    Queue& ring = queue();
    const u64 group = launch.first_group + u64(block_index()) / launch.parts;
    Signals signals(launch, group, u64(block_index()) % launch.parts);
    u32 known = 0;
    for (u32 nth = 0;; ++nth) {
        signals.at(nth);
        // Entries at which the threads did not meet are given back, too.
        if (nth - signals.met_at() >= QUEUED / 2) signals.meet();
        if (known == nth) known = wait_until_not(&ring.written, nth);
        const Entry& entry = ring.entries[nth % QUEUED];
        switch (entry.does) {
        case Does::Move:
            if (signals.begin_move()) move_entry(entry);
            break;
#ifdef ROUNDELAY_SWITCH_MOVES
        case Does::Switch:
            if (signals.begin_move()) switch_entry(launch, entry);
            break;
#endif
        case Does::Pass:
            if (signals.begin_move() && !pass_entry(launch, signals, entry)) signals.fail();
            break;
#ifdef ROUNDELAY_STAGED
        case Does::Stage:
            if (signals.begin_move()) move_entry<1, 1>(entry);
            break;
#endif
        case Does::Post: signals.post_all(entry.at, entry.shape); break;
        case Does::Wait: signals.wait_all(entry.waits, entry.shape); break;
        case Does::End: return;
        }
    }
}

// Runs a CTA; `walk` is the walker's part.
template <class Walk> ROUNDELAY_DEVICE void run_cta(const Launch& launch, const Walk& walk) {
    if (thread() == 0) {
        queue().written = 0;
        queue().done = 0;
    }
    everyone_sync();
    if (walks()) {
        walk(launch);
    } else {
        do_entries(launch);
    }
}

} // namespace roundelay

// Defines a kernel whose body the walker goes through.
#define ROUNDELAY_WALK(NAME)                                                                                           \
    static ROUNDELAY_DEVICE void NAME##_walk(const roundelay::Launch& launch);                                         \
    ROUNDELAY_WALKED_KERNEL(NAME) {                                                                                    \
        roundelay::run_cta(launch, [](const roundelay::Launch& launch) { NAME##_walk(launch); });                      \
    }                                                                                                                  \
    static ROUNDELAY_DEVICE void NAME##_walk(const roundelay::Launch& launch)
