// Signals between CTAs, and what a CTA does while it waits.
//
// A channel has one counter for each part of its poster, at the receiver. The k-th wait is over when every one of them
// is at least k: a sum would not do, as one part may be several posts ahead of another. Counters only rise, over
// all launches, so nothing is ever reset.
//
// Words of `control`: [0] is 0, or 1 + the group that gave up first: from then on no op does anything. From
// [8 + 8 * group] on, what a group waits for: state (0 nothing, 1 waiting, 2 gave up), step, expected, seen, part.
#pragma once
#include "base.cuh"

namespace roundelay {

// Whose wait it is, for the record.
struct Waiter {
    u64 group;
    u64 part;
    u64 step;     // ops that the stream has executed
    u64 expected; // posts
};

// How long a wait has lasted. Looks at the abort flag and the clock once in POLLS polls: both are far away.
class Patience {
    enum State : u64 { NOTHING, WAITING, GAVE_UP };
    // A wait shorter than this is not worth a word to the host.
    static constexpr u64 LONG_NS = 1000000;

    u32 polls = 0;
    u64 since = 0;
    bool recorded = false;

    ROUNDELAY_DEVICE static u64* record_of(const Launch& launch, const Waiter& waiter) {
        return launch.control + 8 + 8 * waiter.group;
    }

    ROUNDELAY_DEVICE void record(const Launch& launch, const Waiter& waiter, u64 seen, State state) {
        u64* record = record_of(launch, waiter);
        store_relaxed<Scope::System>(record + 1, waiter.step);
        store_relaxed<Scope::System>(record + 2, waiter.expected);
        store_relaxed<Scope::System>(record + 3, seen);
        store_relaxed<Scope::System>(record + 4, waiter.part);
        store_release<Scope::System>(record, state);
        recorded = true;
    }

  public:
    // After a poll in vain: whether to poll again.
    ROUNDELAY_DEVICE bool lasts(const Launch& launch, const Waiter& waiter, u64 seen) {
        polls += 1;
        if (polls % POLLS != 0) {
            return true;
        }
        make_room();
        if (load_relaxed<Scope::System>(launch.control) != 0) {
            return false;
        }
        const u64 now = nanoseconds();
        if (since == 0) {
            since = now;
        }
        if (now - since >= launch.poll_limit_ns) {
            record(launch, waiter, seen, GAVE_UP);
            store_release<Scope::System>(launch.control, 1 + waiter.group);
            return false;
        }
        if (now - since >= LONG_NS) {
            record(launch, waiter, seen, WAITING);
        }
        return true;
    }

    // After a poll that was not in vain. Another part's record stays.
    ROUNDELAY_DEVICE void over(const Launch& launch, const Waiter& waiter) {
        u64* record = record_of(launch, waiter);
        if (recorded && load_relaxed<Scope::System>(record + 4) == waiter.part) {
            store_relaxed<Scope::System>(record, NOTHING);
        }
    }
};

// Waits for one more post of all `parts` than before; by one thread. False: gave up.
ROUNDELAY_SHARED bool await(const Launch& launch, u64 counters, u64 waited, Waiter waiter) {
    const u64* posted = reinterpret_cast<const u64*>(counters);
    const u64 parts = launch.parts;
    waiter.expected = load<u64>(waited) + 1;
    Patience patience;
    for (;;) {
        u64 seen;
        if (parts == 1) {
            seen = load_acquire<SCOPE>(posted);
        } else {
            seen = ~0ull;
#pragma unroll 4
            for (u64 part = 0; part < parts; ++part) {
                const u64 now = load_relaxed<SCOPE>(posted + part);
                seen = now < seen ? now : seen;
            }
        }
        if (seen >= waiter.expected) {
            break;
        }
        if (!patience.lasts(launch, waiter, seen)) {
            return false;
        }
    }
    if (parts > 1) {
        fence<SCOPE>();
    }
    patience.over(launch, waiter);
    store<u64>(waited, waiter.expected);
    return true;
}

// What a CTA knows about the order of its own threads, and its way to signal others; the same in all threads.
class Signals {
    const Launch& launch;
    // Narrow, since they are kept in registers all along.
    u32 group;
    u32 part;
    // Whether a move was begun since the threads last met.
    bool unmet = false;
    // Whether this thread gave up; and whether all know that one did.
    bool mine_failed = false;
    bool all_stopped = false;

    ROUNDELAY_DEVICE u64 word(u64 words, i64 index) const { return words + 8 * (u64(index) * launch.parts + part); }

  public:
    // `group`: the (rank, stream) of this CTA, `part`: which of its parts.
    ROUNDELAY_DEVICE Signals(const Launch& launch, u64 group, u64 part)
        : launch(launch), group(u32(group)), part(u32(part)) {}

    // Whether the kernel winds down: nothing is moved, posted or waited for any more.
    ROUNDELAY_DEVICE bool stopped() const { return all_stopped; }

    ROUNDELAY_DEVICE Waiter waiter(i64 step, u64 expected) const { return {group, part, u64(step), expected}; }

    // This thread gave up; the others learn it at their next wait.
    ROUNDELAY_DEVICE void fail() { mine_failed = true; }

    // All threads of the CTA meet.
    ROUNDELAY_DEVICE void meet() {
        cta_sync();
        unmet = false;
    }

    // Before a move touches memory: the moves before it are done by all threads. False: leave it out.
    ROUNDELAY_DEVICE bool begin_move() {
        if (unmet && !all_stopped) {
            meet();
        }
        unmet = true;
        return !all_stopped;
    }

    // Posts to channel `index` at `to`, after all that this CTA did before.
    ROUNDELAY_DEVICE void post(const Memory& to, i64 index) {
        if (all_stopped) {
            return;
        }
        delay();
        if (unmet) {
            meet();
        }
        if (thread() == 0) {
            add_release<SCOPE>(reinterpret_cast<u64*>(word(to.posted, index)), 1);
        }
    }

    // Waits for the next post to channel `index` at `me`, before all that this CTA does from here on. False: it gave up.
    ROUNDELAY_DEVICE bool wait(const Memory& me, i64 index, i64 step) {
        if (all_stopped) {
            return false;
        }
        delay();
        if (thread() == 0 && !mine_failed) {
            const u64 counters = me.posted + 8 * u64(index) * launch.parts;
            mine_failed = !await(launch, counters, word(me.waited, index), waiter(step, 0));
        }
        all_stopped = cta_any(mine_failed);
        unmet = false;
        return !all_stopped;
    }

    // All parts of this stream meet.
    ROUNDELAY_DEVICE void meet_parts(const Memory& me, i64 index, i64 step) {
        if (launch.parts > 1) {
            post(me, index);
            wait(me, index, step);
        }
    }
};

} // namespace roundelay
