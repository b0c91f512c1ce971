// One warp of a CTA walks the program, the walker; the others do what it comes by, the movers. The walker is ahead: where
// regions lie was found out when a wait is over, and the walk's variables are in no register of those who move.
//
// What is to be done goes through a ring of entries in shared memory. The walker waits for an entry that is free, and
// the movers for one that is written; a mover never waits for another CTA with an entry that the walker needs, since those
// before the one at hand are given back whenever the movers meet.
#pragma once
#include "ll.cuh"
#include "moves.cuh"
#include "signals.cuh"

namespace roundelay {

// Entries of the ring.
constexpr u32 QUEUED = 8;

enum class Does : u32 { Move, Pass, Post, Wait, End };

// What a pass of slots has, as bits.
enum Has : u32 { RECEIVES = 1, OWN = 2, DST = 4, SENDS = 8 };

// What the primitives have.
namespace passes {
constexpr u32 send = OWN | SENDS;
constexpr u32 recv = RECEIVES | DST;
constexpr u32 recv_copy_send = RECEIVES | DST | SENDS;
constexpr u32 recv_reduce_send = RECEIVES | OWN | SENDS;
constexpr u32 recv_reduce_copy = RECEIVES | OWN | DST;
constexpr u32 recv_reduce_copy_send = RECEIVES | OWN | DST | SENDS;
} // namespace passes

// Posts and waits that one entry has, one behind the other in the program.
constexpr u32 POSTS = 16;
constexpr u32 WAITS = 5;

struct Entry {
    Does does;
    // Of a move, its sources and above 8 bits its destinations; of a pass, what it has; of posts and waits, how many.
    u32 shape;
    u64 step;
    // Of a move, the elements of this part; of a pass, those of all.
    u64 begin, end;
    i64 divisor;
    union {
        // Of a move, where its sources and then its destinations begin; of a pass, its own elements and those it writes; of
        // posts, the counters.
        u64 at[POSTS];
        Awaited waits[WAITS];
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

// The walker's end; the same in all its threads. Posts that follow each other are one entry, and so are waits: the movers then
// have one release for the posts, and poll for all waits at once. An entry that may still grow is published when the walker
// comes by something else, which is soon, as the walk itself waits for nothing but room.
class Walker {
    u32 written = 0; // the entry at hand, if one is open, is not among them
    u32 done = 0;
    u32 open = 0; // posts or waits of the entry at hand
    Does grows = Does::End;

    ROUNDELAY_DEVICE Entry& next() const { return queue().entries[written % QUEUED]; }

    ROUNDELAY_DEVICE void close() {
        open = 0;
        written += 1;
        walker_sync();
        if (leads()) publish(&queue().written, written);
    }

    // Room for an entry, behind the one that was open.
    ROUNDELAY_DEVICE void begin() {
        if (open > 0) close();
        while (written - done >= QUEUED) done = wait_until_not(&queue().done, done);
    }

    ROUNDELAY_DEVICE void grow(Does does, u32 most) {
        if (open == 0 || open == most || grows != does) begin();
        grows = does;
    }

    ROUNDELAY_DEVICE bool has(u64 counters) const {
        // What its leading thread wrote is seen by all.
        walker_sync();
        bool found = false;
        for (u32 i = 0; i < open; ++i) found = found || next().waits[i].counters == counters;
        return found;
    }

  public:
    // Has `fill` write the next entry, when there is room.
    template <class Fill> ROUNDELAY_DEVICE void put(const Fill& fill) {
        begin();
        if (leads()) fill(next());
        close();
    }

    ROUNDELAY_SHARED void post(u64 counter) {
        grow(Does::Post, POSTS);
        if (leads()) {
            next().does = Does::Post;
            next().at[open] = counter;
            next().shape = open + 1;
        }
        open += 1;
    }

    ROUNDELAY_SHARED void wait(const Awaited& wait) {
        if (open > 0 && grows == Does::Wait && has(wait.counters)) begin();
        grow(Does::Wait, WAITS);
        if (leads()) {
            next().does = Does::Wait;
            next().waits[open] = wait;
            next().shape = open + 1;
        }
        open += 1;
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

// The shapes that the program has.
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

template <u32 HAS> ROUNDELAY_DEVICE bool pass_entry(const Launch& launch, const Signals& signals, const Entry& entry) {
    const Waiter waiter = signals.waiter(i64(entry.step), entry.expected);
    const Local local{entry.at[0], entry.at[1]};
    return pass_lines<(HAS & RECEIVES) != 0, (HAS & OWN) != 0, (HAS & DST) != 0, (HAS & SENDS) != 0>(
        launch, waiter, entry.in, entry.out, local, entry.end, entry.divisor);
}

// The passes that the program has. False: this thread gave up.
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

// All that the walker of this CTA puts down, to the end. Who gave up goes on without doing anything, so that the walker
// always comes to its end.
ROUNDELAY_SHARED void do_entries(const Launch& launch) {
    Queue& ring = queue();
    const u64 group = launch.first_group + u64(block_index()) / launch.parts;
    Signals signals(launch, group, u64(block_index()) % launch.parts);
    u32 known = 0;
    for (u32 nth = 0;; ++nth) {
        signals.at(nth);
        // Entries that nobody met at are given back, too.
        if (nth - signals.met_at() >= QUEUED / 2) signals.meet();
        if (known == nth) known = wait_until_not(&ring.written, nth);
        const Entry& entry = ring.entries[nth % QUEUED];
        switch (entry.does) {
        case Does::Move:
            if (signals.begin_move()) move_entry(entry);
            break;
        case Does::Pass:
            if (signals.begin_move() && !pass_entry(launch, signals, entry)) signals.fail();
            break;
        case Does::Post: signals.post_all(entry.at, entry.shape); break;
        case Does::Wait: signals.wait_all(entry.waits, entry.shape); break;
        case Does::End: return;
        }
    }
}

// A CTA's whole life: `walk` is the walker's.
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

// A kernel whose body the walker goes through.
#define ROUNDELAY_WALK(NAME)                                                                                           \
    static ROUNDELAY_DEVICE void NAME##_walk(const roundelay::Launch& launch);                                         \
    ROUNDELAY_WALKED_KERNEL(NAME) {                                                                                    \
        roundelay::run_cta(launch, [](const roundelay::Launch& launch) { NAME##_walk(launch); });                      \
    }                                                                                                                  \
    static ROUNDELAY_DEVICE void NAME##_walk(const roundelay::Launch& launch)
