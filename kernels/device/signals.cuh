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
        return !is_time() || still_lasts(launch, waiter, seen);
    }

    // After a poll in vain: whether it is time to look at the clock.
    ROUNDELAY_DEVICE bool is_time() {
        polls += 1;
        return polls % POLLS == 0;
    }

    // Whether to poll again, by the abort flag and the clock.
    ROUNDELAY_DEVICE bool still_lasts(const Launch& launch, const Waiter& waiter, u64 seen) {
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

// A wait, as words: where the counters of its channel are, one for each part of the poster; where it says how often this part has
// waited there; and the ops that the stream had executed.
struct Awaited {
    u64 counters;
    u64 waited;
    u64 step;
};

// Waits for one more post of all parts to each of `count` channels than before; by one warp, whose threads share the counters
// between them. No channel comes twice. False: gave up.
ROUNDELAY_SHARED bool await(const Launch& launch, const Awaited* waits, u32 count, Waiter waiter) {
    const u64 parts = launch.parts;
    Patience patience;
    u32 nth = 0;
    u64 part = u64(thread());
    for (;;) {
        for (; nth < count && part >= parts; ++nth) part -= parts;
        bool lacks = nth < count;
        if (warp_all(!lacks)) break;
        u64 seen = 0, expected = 0;
        if (lacks) {
            expected = load<u64>(waits[nth].waited) + 1;
            seen = load_relaxed<SCOPE>(reinterpret_cast<const u64*>(waits[nth].counters) + part);
            lacks = seen < expected;
            if (!lacks) part += WARP;
        }
        if (!patience.is_time()) continue;
        // One speaks for all, of what the first of them lacks.
        const int first = warp_first(lacks);
        if (first < 0) continue;
        waiter.expected = warp_get(expected, first);
        waiter.step = waits[warp_get(nth, first)].step;
        seen = warp_get(seen, first);
        if (!warp_all(thread() != 0 || patience.still_lasts(launch, waiter, seen))) return false;
    }
    fence<SCOPE>();
    if (thread() == 0) patience.over(launch, waiter);
    for (u32 i = u32(thread()); i < count; i += WARP) store<u64>(waits[i].waited, load<u64>(waits[i].waited) + 1);
    return true;
}

// Entries of the walker that are done with: see queue.cuh.
ROUNDELAY_DEVICE u32& entries_done() { return *static_cast<u32*>(shared_memory()); }

// What a CTA knows about the order of its own threads, and its way to signal others; the same in all threads.
class Signals {
    const Launch& launch;
    // Narrow, since they are kept in registers all along.
    u32 group;
    u32 part;
    // Of what the walker put down, which is at hand, and which was when the threads last met.
    u32 nth = 0;
    u32 met = 0;
    // Whether a move was begun since then.
    bool unmet = false;
    // Whether this thread gave up; and whether all know that one did.
    bool mine_failed = false;
    bool all_stopped = false;

    ROUNDELAY_DEVICE void have_met() {
        unmet = false;
        if (nth == met) return;
        met = nth;
        if (thread() == 0) publish(&entries_done(), nth);
    }

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

    // All threads that move meet.
    ROUNDELAY_DEVICE void meet() {
        cta_sync();
        have_met();
    }

    // Which of the entries that the walker put down is at hand.
    ROUNDELAY_DEVICE void at(u32 entry) { nth = entry; }
    ROUNDELAY_DEVICE u32 met_at() const { return met; }

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
        const u64 counter = word(to.posted, index);
        post_all(&counter, 1);
    }

    // Posts to each of these counters, after all that this CTA did before: with one release for all.
    ROUNDELAY_DEVICE void post_all(const u64* counters, u32 count) {
        if (all_stopped) {
            return;
        }
        delay();
        if (unmet) {
            meet();
        }
        for (u32 i = u32(thread()); i < count; i += u32(threads())) {
            add_release<SCOPE>(reinterpret_cast<u64*>(counters[i]), 1);
        }
    }

    // Waits for the next post to channel `index` at `me`, before all that this CTA does from here on. False: it gave up.
    ROUNDELAY_DEVICE bool wait(const Memory& me, i64 index, i64 step) {
        const Awaited one{me.posted + 8 * u64(index) * launch.parts, word(me.waited, index), u64(step)};
        return wait_all(&one, 1);
    }

    // The same for the next post to each of several channels.
    ROUNDELAY_DEVICE bool wait_all(const Awaited* waits, u32 count) {
        if (all_stopped) {
            return false;
        }
        delay();
        if (thread() < WARP) {
            // What a thread of it could not wait for, none waits for.
            if (!warp_all(!mine_failed) || !await(launch, waits, count, waiter(0, 0))) mine_failed = true;
        }
        all_stopped = cta_any(mine_failed);
        have_met();
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
