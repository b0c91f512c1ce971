// Signals between CTAs, and the polls of a CTA that waits.
//
// A channel has one counter for each part of its poster, at the receiver. The k-th wait is over when every counter is
// at least k: their sum would not do, as one part may be several posts ahead of another. Counters only rise, over all
// launches, so none is ever reset.
//
// Words of `control`: [0] is 0, or 1 + the group that gave up first: from then on no op has an effect. From [8 + 8 *
// group] on, the wait of a group: state (0 none, 1 waiting, 2 gave up), step, expected, seen, part; nanoseconds so far.
#pragma once
#include "base.cuh"

namespace roundelay {

// The owner of a wait, for the record.
struct Waiter {
    u64 group;
    u64 part;
    u64 step;     // ops that the stream has executed
    u64 expected; // posts
};

// The time of a wait. It checks the abort flag and the clock once in POLLS polls: both are slow to read.
class Patience {
    enum State : u64 { NOTHING, WAITING, GAVE_UP };
    // A shorter wait is not recorded for the host.
    static constexpr u64 LONG_NS = 1000000;

    u32 polls = 0;
    u64 since = 0;
    bool recorded = false;

    ROUNDELAY_DEVICE static u64* record_of(const Launch& launch, const Waiter& waiter) {
        return launch.control + 8 + 8 * waiter.group;
    }

    ROUNDELAY_DEVICE void record(const Launch& launch, const Waiter& waiter, u64 seen, u64 waited, State state) {
        u64* record = record_of(launch, waiter);
        store_relaxed<Scope::System>(record + 1, waiter.step);
        store_relaxed<Scope::System>(record + 2, waiter.expected);
        store_relaxed<Scope::System>(record + 3, seen);
        store_relaxed<Scope::System>(record + 4, waiter.part);
#ifdef ROUNDELAY_STAGED // Ranks with a process each are looked at from outside.
        store_relaxed<Scope::System>(record + 5, waited);
#endif
        store_release<Scope::System>(record, state);
        recorded = true;
    }

  public:
    // Called after a poll in vain: returns whether to poll again.
    ROUNDELAY_DEVICE bool lasts(const Launch& launch, const Waiter& waiter, u64 seen) {
        return !is_time() || still_lasts(launch, waiter, seen);
    }

    // Called after a poll in vain: returns whether it is time to check the clock.
    ROUNDELAY_DEVICE bool is_time() {
        polls += 1;
        return polls % POLLS == 0;
    }

    // Returns whether to poll again, by the abort flag and the clock.
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
            record(launch, waiter, seen, now - since, GAVE_UP);
            store_release<Scope::System>(launch.control, 1 + waiter.group);
            return false;
        }
        if (now - since >= LONG_NS) {
            record(launch, waiter, seen, now - since, WAITING);
        }
        return true;
    }

    // Called after a successful poll. A record of another part stays.
    ROUNDELAY_DEVICE void over(const Launch& launch, const Waiter& waiter) {
        u64* record = record_of(launch, waiter);
        if (recorded && load_relaxed<Scope::System>(record + 4) == waiter.part) {
            store_relaxed<Scope::System>(record, NOTHING);
        }
    }
};

// A wait, as words: the address of the counters of its channel, one for each part of the poster; the address of the
// number of waits that this part has done there; and the ops that the stream had executed.
struct Awaited {
    u64 counters;
    u64 waited;
    u64 step;
};

// Waits for one more post of all parts to each of `count` channels than before; called by one warp, whose threads share
// the counters between them. No channel comes twice. False: the warp gave up.
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
        // One thread records the wait for all, with the first counter that is too low.
        const int first = warp_first(lacks);
        if (first < 0) continue;
        waiter.expected = warp_get(expected, first);
        waiter.step = waits[warp_get(nth, first)].step;
        seen = warp_get(seen, first);
        if (!warp_all(thread() != 0 || patience.still_lasts(launch, waiter, seen))) return false;
    }
    fence<SCOPE>();
    // All threads have read the numbers of waits that are counted now.
    warp_sync();
    if (thread() == 0) patience.over(launch, waiter);
    for (u32 i = u32(thread()); i < count; i += WARP) store<u64>(waits[i].waited, load<u64>(waits[i].waited) + 1);
    return true;
}

// Whether a post is a load and a store, as where atomics are not whole between the devices. One thread alone posts to a
// counter then, always the same one.
#ifdef ROUNDELAY_ONE_WRITER
constexpr bool ONE_WRITER = true;
#else
constexpr bool ONE_WRITER = false;
#endif

// Raises a counter by 1, after all earlier work of this thread.
ROUNDELAY_DEVICE void raise(u64 counter) {
    u64* const at = reinterpret_cast<u64*>(counter);
    if constexpr (ONE_WRITER) {
        store_release<SCOPE>(at, load_relaxed<SCOPE>(at) + 1);
    } else {
        add_release<SCOPE>(at, 1);
    }
}

// Gives back entries of the walker that are done: see queue.cuh.
ROUNDELAY_DEVICE u32& entries_done() { return *static_cast<u32*>(shared_memory()); }

// The knowledge of a CTA about the order of its own threads, and its way to signal others; with equal values in all
// threads.
class Signals {
    const Launch& launch;
    // Narrow types, since they stay in registers throughout.
    u32 group;
    u32 part;
    // The walker's entry at hand, and the entry at hand when the threads last met.
    u32 nth = 0;
    u32 met = 0;
    // Whether a move was begun since then.
    bool unmet = false;
    // Whether this thread gave up; and whether all threads know that one did.
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
    // `group`: the (rank, stream) of this CTA, `part`: the index of this CTA among its parts.
    ROUNDELAY_DEVICE Signals(const Launch& launch, u64 group, u64 part)
        : launch(launch), group(u32(group)), part(u32(part)) {}

    // Whether the kernel winds down: then the CTA moves, posts and waits no more.
    ROUNDELAY_DEVICE bool stopped() const { return all_stopped; }

    ROUNDELAY_DEVICE Waiter waiter(i64 step, u64 expected) const { return {group, part, u64(step), expected}; }

    // Records that this thread gave up; the others learn it at their next wait.
    ROUNDELAY_DEVICE void fail() { mine_failed = true; }

    // The barrier of all threads that move.
    ROUNDELAY_DEVICE void meet() {
        cta_sync();
        have_met();
    }

    // Sets the entry at hand among those that the walker wrote.
    ROUNDELAY_DEVICE void at(u32 entry) { nth = entry; }
    ROUNDELAY_DEVICE u32 met_at() const { return met; }

    // Called before a move touches memory: all threads have done the moves before it. False: leave the move out.
    ROUNDELAY_DEVICE bool begin_move() {
        if (unmet && !all_stopped) {
            meet();
        }
        unmet = true;
        return !all_stopped;
    }

    // Posts to channel `index` at `to`, after all work of this CTA before.
    ROUNDELAY_DEVICE void post(const Memory& to, i64 index) {
        const u64 counter = word(to.posted, index);
        post_all(&counter, 1);
    }

    // Posts to each of these counters, after all work of this CTA before: with one release for all.
    ROUNDELAY_DEVICE void post_all(const u64* counters, u32 count) {
        if (all_stopped) {
            return;
        }
        delay();
        if (unmet) {
            meet();
        }
        if constexpr (ONE_WRITER) {
            for (u32 i = 0; i < count; ++i) {
                if (u32(counters[i] / sizeof(u64)) % u32(threads()) == u32(thread())) raise(counters[i]);
            }
        } else {
            for (u32 i = u32(thread()); i < count; i += u32(threads())) raise(counters[i]);
        }
    }

    // Waits for the next post to channel `index` at `me`, before all later work of this CTA. False: it gave up.
    ROUNDELAY_DEVICE bool wait(const Memory& me, i64 index, i64 step) {
        const Awaited one{me.posted + 8 * u64(index) * launch.parts, word(me.waited, index), u64(step)};
        return wait_all(&one, 1);
    }

    // Waits for the next post to each of several channels.
    ROUNDELAY_DEVICE bool wait_all(const Awaited* waits, u32 count) {
        if (all_stopped) {
            return false;
        }
        delay();
        if (thread() < WARP) {
            // If one thread of the warp has given up, no thread of the warp waits.
            if (!warp_all(!mine_failed) || !await(launch, waits, count, waiter(0, 0))) mine_failed = true;
        }
        all_stopped = cta_any(mine_failed);
        have_met();
        return !all_stopped;
    }

    // The barrier of all parts of this stream.
    ROUNDELAY_DEVICE void meet_parts(const Memory& me, i64 index, i64 step) {
        if (launch.parts > 1) {
            post(me, index);
            wait(me, index, step);
        }
    }
};

} // namespace roundelay
