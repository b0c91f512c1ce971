// A CTA's walk through the program of its rank: which stream and lane it is at, whose numbers it sees, which regions
// are its input and output. All threads walk alike; what differs between them begins inside a move.
#pragma once
#include "numbers.cuh"
#include "peer.cuh"
#include "signals.cuh"

namespace roundelay {

// Kinds of channel, as the counters of a pair of ranks are numbered; those of a child stream come behind them.
enum class Signal : int { Ack, Data, Head, Tail, Fork, Join };

// An algorithm on regions of its caller, one of which gives each rank a block of its own.
struct Call {
    Region large;
    Region block; // this rank's
    i64 me;       // this rank's number among
    const Members* members;
};

// The fifo of the algorithm that is running.
struct Fifo {
    i64 declaration;
    i64 scratch;
    i64 origin; // element of scratch where slot 0 begins
    i64 stride;
    i64 credits;
    i64 slices;
    i64 first_link; // of the open links, its first
};

// Where a walk is; blocks put it back as it was.
struct Walk {
    i64 stream = 0;
    i64 running = 0; // children of the stream that are running
    i64 lane = 0;    // of signals: the values of the `parallel`s around
    i64 depth = 0;   // how many these are
    i64 path = 0;    // of calls
    bool called = false;
    const Members* seen = nullptr;
    i64 next_members; // the work words of the next `within`
    Fifo fifo;
};

// One end of a link while it is at hand.
struct Link {
    i64 key = -1; // none
    i64 entry;    // among the open links
    i64 first_slot;
    i64 end;      // among all ends of links, the first of this one: each part has its own
    u64 steps;    // since the fifo was declared
    u64 total;    // since the plan was made
};

class Lane {
  public:
    // ---- what does not change -----------------------------------------------------------------------------
    const Launch& launch;
    const Facts facts;
    const u64 part;
    const i64* const group; // rank, stream, ops, first move or op
    const i64 me;
    const i64 mine;         // the stream that this CTA executes
    const i64 ranks;        // of the machine
    const i64 streams;      // where the channels between streams of a rank begin
    u64* const work;        // shapes of slots, then open links, then members of `within` blocks

    // ---- what does ------------------------------------------------------------------------------------------
    Signals signals;
    i64 steps = 0;        // ops executed
    i64 moves = 0;        // of which moves
    i64 links = 0;        // open ones
    bool touched = false; // whether threads used `work` since all met
    Walk at;
    Link incoming, outgoing;

    ROUNDELAY_DEVICE explicit Lane(const Launch& launch)
        : launch(launch), facts(launch.facts), part(u64(block_index()) % launch.parts),
          group(facts.at(facts[Header::Groups] + 4 * i64(launch.first_group + u64(block_index()) / launch.parts))),
          me(constant(group)), mine(constant(group + 1)), ranks(facts[Header::Ranks]),
          streams(facts[Header::Lanes] * ranks * 4), work(launch.work + u64(block_index()) * u64(facts[Header::WorkWords])),
          signals(launch, launch.first_group + u64(block_index()) / launch.parts, part) {
        const i64 slots = facts[Header::HeldSlots];
        at.next_members = 3 * slots + 4 * facts[Header::Links];
        // Slots hold nothing yet.
        for (i64 slot = thread(); slot < slots; slot += threads()) work[3 * slot + 2] = 0;
        touched = slots > 0;
    }

    Lane(const Lane&) = delete;

    // ---- what a program asks ----------------------------------------------------------------------------------
    ROUNDELAY_DEVICE i64 nranks() const { return at.seen == nullptr ? ranks : at.seen->count; }
    ROUNDELAY_DEVICE i64 rank() const { return at.seen == nullptr ? me : at.seen->me; }
    ROUNDELAY_DEVICE Peer local() { return {this, me, rank(), at.seen}; }
    ROUNDELAY_DEVICE Peer peer(i64 number) { return {this, rank_of(at.seen, number), number, at.seen}; }

    ROUNDELAY_DEVICE Region input() const { return whole(INPUT, Header::InputUnits); }
    ROUNDELAY_DEVICE Region output() const { return whole(OUTPUT, Header::OutputUnits); }

    ROUNDELAY_DEVICE i64 int_param(i64 k) const { return facts[facts[Header::Params] + k]; }
    ROUNDELAY_DEVICE bool bool_param(i64 k) const { return int_param(k) != 0; }
    ROUNDELAY_DEVICE List list_param(i64 k) const { return list(int_param(k), nullptr); }
    ROUNDELAY_DEVICE Ring ring_param(i64 k) { return ring(int_param(k)); }
    ROUNDELAY_DEVICE Rings rings_param(i64 k) { return {*this, int_param(k)}; }
    ROUNDELAY_DEVICE Tree tree_param(i64 k) { return {*this, int_param(k)}; }
    ROUNDELAY_DEVICE Groups groups_param(i64 k) { return {*this, int_param(k)}; }
    ROUNDELAY_DEVICE Topology topology_param(i64 k) { return {*this, int_param(k)}; }

    ROUNDELAY_DEVICE Ring ring_natural() { return {*this, List(), at.seen}; }
    ROUNDELAY_DEVICE Ring ring_order(const List& order) { return {*this, order, at.seen}; }

    // What the host made where the text has `site`, of these arguments.
    template <class... Args> ROUNDELAY_DEVICE Ring ring_at(i64 site, const Args&... args) {
        return ring(object(site, args...));
    }
    template <class... Args> ROUNDELAY_DEVICE Rings rings_at(i64 site, const Args&... args) {
        return {*this, object(site, args...)};
    }
    template <class... Args> ROUNDELAY_DEVICE Tree tree_at(i64 site, const Args&... args) {
        return {*this, object(site, args...)};
    }
    template <class... Args> ROUNDELAY_DEVICE Groups groups_at(i64 site, const Args&... args) {
        return {*this, object(site, args...)};
    }
    template <class... Args> ROUNDELAY_DEVICE Topology topology_at(i64 site, const Args&... args) {
        return {*this, object(site, args...)};
    }

    ROUNDELAY_DEVICE List relays(const Topology& topology, i64 from, i64 to) const {
        return list(facts.find(0, Key::Relays, topology, from, to), at.seen);
    }

    // ---- declarations ---------------------------------------------------------------------------------------------
    ROUNDELAY_DEVICE Region scratch(i64 k, const Region& like) const { return slot(declaration(k)).shaped_like(like); }

    ROUNDELAY_DEVICE Pieces scratch_slots(i64 k, i64 n, const Region& like) const {
        return Pieces::slots(scratch(k, like), n, stride(declaration(k)));
    }

    // Slots that take the shape of what is written to them.
    ROUNDELAY_DEVICE Pieces scratch_blocks(i64 k, i64 n, const Pieces&) const {
        return Pieces::slots(slot(declaration(k)), n, stride(declaration(k)));
    }

    template <class Like> ROUNDELAY_DEVICE void fifo(i64 k, const Like&, i64 credits, i64 slices) {
        lay_down_links();
        const i64 id = declaration(k);
        at.fifo = {k, id, facts[scratch_row(id)], stride(id), credits, slices, links};
    }

    // The sender takes the credits that are still out, so the next run starts with slot 0 again.
    ROUNDELAY_DEVICE void end_fifo();

    // ---- blocks -----------------------------------------------------------------------------------------------------
    // Iteration `lo` on this stream, the others on children of it. With WALK every CTA walks all iterations, which it
    // must where they hold what is counted on the way; else each walks its own.
    template <bool WALK, class Body> ROUNDELAY_DEVICE void parallel(i64 lo, i64 hi, Body body) {
        const Walk outer = at;
        const bool parent = active();
        const i64 others = max(hi - lo - 1, 0);
        // Nobody asks for the children of a stream that is alone.
        const i64 offset = others == 0 ? 0 : facts.find(0, Key::Child, me, at.stream);
        const List children = list(offset, nullptr);
        for (i64 k = 0; parent && k < others; ++k) post_stream(children[at.running + k], Signal::Fork);
        for (i64 k = -1; lo + 1 + k < hi; ++k) {
            if (!WALK && parent && k >= 0) break;
            at.stream = k < 0 ? outer.stream : children[outer.running + k];
            at.running = k < 0 ? outer.running + others : 0;
            if (WALK || active()) {
                enter_lane(lo + 1 + k);
                if (k >= 0 && active()) wait_stream(at.stream, Signal::Fork);
                body(lo + 1 + k);
                if (k >= 0 && active()) post_stream(at.stream, Signal::Join);
            }
            at = outer;
        }
        for (i64 k = 0; parent && k < others; ++k) wait_stream(children[at.running + k], Signal::Join);
    }

    // For the ranks of the list, which see each other as 0, 1, 2, …
    template <class Body> ROUNDELAY_DEVICE void within(const List& list, Body body) {
        const Walk outer = at;
        u64* const numbered = work + at.next_members;
        touch();
        for (i64 number = thread(); number < len(list); number += threads()) {
            numbered[number] = u64(rank_of(at.seen, list[number]));
        }
        touch();
        Members members{numbered, len(list), 0};
        while (members.me < members.count && i64(numbered[members.me]) != me) ++members.me;
        if (members.me == members.count) return;
        at.seen = &members;
        at.next_members += members.count;
        body(members.me, members.count);
        at = outer;
    }

    // Another algorithm on these regions. `in_many`, `out_many`: whether its input and output are as long as all ranks'
    // blocks together; where the caller's region is that long for the shorter one too, each rank has a block of it.
    template <class Body>
    ROUNDELAY_DEVICE void call(i64 id, bool in_many, bool out_many, const Region& input, const Region& output, Body body) {
        const Walk outer = at;
        at.called = true;
        Hash hash;
        hash.word(at.path);
        hash.word(id);
        at.path = hash.positive();
        const Region& large = in_many ? input : output;
        const Region& small = in_many ? output : input;
        bool blocks = in_many != out_many && nranks() > 1;
        Call call{large, large, rank(), at.seen};
        if (blocks) {
            const bool same = same_width(small, large);
            call.large = same ? small : large;
            call.block = call.large.split(nranks())[call.me];
            blocks = same || same_region(small, call.block);
        }
        Region block = call.block;
        block.call = &call;
        body(blocks && !in_many ? block : input, blocks && in_many ? block : output);
        at = outer;
    }

    // All parts of this stream.
    ROUNDELAY_DEVICE void meet() {
        if (active()) signals.meet_parts(launch.ranks[me], streams + 2 * facts[Header::Streams] + mine, steps);
    }

    // ---- for the rest of the prelude ----------------------------------------------------------------------------------
    // Whether what the walk comes by is for this CTA to do.
    ROUNDELAY_DEVICE bool active() const { return at.stream == mine && !signals.stopped(); }

    // Before work words are used: what other threads read or wrote of them is over.
    ROUNDELAY_DEVICE void touch() {
        if (touched) signals.meet();
        touched = true;
    }

    ROUNDELAY_DEVICE void post(i64 to, i64 lane, Signal kind) {
        if (active()) post_channel(to, (lane * ranks + me) * 4 + i64(kind), kind, lane);
    }

    ROUNDELAY_DEVICE void wait(i64 from, i64 lane, Signal kind) {
        if (active()) wait_channel(from, (lane * ranks + from) * 4 + i64(kind), kind, lane);
    }

    ROUNDELAY_DEVICE void post_channel(i64 to, i64 channel, Signal kind, i64 lane) {
        if constexpr (TRACING) trace_signal(true, int(kind), me, to, lane);
        signals.post(launch.ranks[to], channel);
        ++steps;
    }

    ROUNDELAY_DEVICE void wait_channel(i64 from, i64 channel, Signal kind, i64 lane) {
        if constexpr (TRACING) trace_signal(false, int(kind), from, me, lane);
        signals.wait(launch.ranks[me], channel, steps);
        touched = false;
        ++steps;
    }

    // The region as it lies at `rank`, where calls give each rank a block of its own.
    ROUNDELAY_DEVICE Region locate(i64 rank, Region region) const {
        while (region.call != nullptr) {
            const Call& call = *region.call;
            if (rank != me) region = region.moved(number_of(call.members, rank) - call.me, call.block);
            region.call = call.block.call;
        }
        return region;
    }

    ROUNDELAY_DEVICE i64 scratch_row(i64 id) const { return facts[Header::Scratch] + 3 * id; }

    ROUNDELAY_DEVICE List list(i64 offset, const Members* made) const {
        return offset == 0 ? List() : List(facts.at(offset + 1), facts[offset], made, made);
    }

    ROUNDELAY_DEVICE Ring ring(i64 offset) { return {*this, list(offset, at.seen), at.seen}; }

    ROUNDELAY_DEVICE void take_up(Link& link, i64 from, i64 to);
    ROUNDELAY_DEVICE void lay_down(Link& link);
    ROUNDELAY_DEVICE void lay_down_links();

  private:
    ROUNDELAY_DEVICE Region whole(Buffer buffer, Header units) const {
        return {0, u64(facts[units]), grain_of(1, launch.count), 0, buffer, 0, false, nullptr};
    }

    ROUNDELAY_DEVICE i64 declaration(i64 k) const {
        return facts.find(0, Key::Scratch, at.path, at.called ? at.lane : 0, k);
    }

    ROUNDELAY_DEVICE Region slot(i64 id) const {
        return {0, 0, grain_of(1, launch.count), facts[scratch_row(id)], SCRATCH + id, 0, true, nullptr};
    }

    ROUNDELAY_DEVICE i64 stride(i64 id) const { return facts[scratch_row(id) + 1]; }

    template <class... Args> ROUNDELAY_DEVICE i64 object(i64 site, const Args&... args) const {
        i64 group = 0;
        if (at.seen != nullptr) {
            Hash hash;
            for (i64 i = 0; i < at.seen->count; ++i) hash.word(i64(at.seen->ranks[i]));
            group = hash.positive() | 1;
        }
        return facts.find(0, Key::Object, site, nranks(), group, args...);
    }

    // Value 0 leads to the lane outside: trailing zeros do not count.
    ROUNDELAY_DEVICE void enter_lane(i64 value) {
        if (value != 0) at.lane = facts.find(0, Key::Lane, at.depth, at.lane, value);
        at.depth += 1;
    }

    ROUNDELAY_DEVICE void post_stream(i64 child, Signal kind) {
        post_channel(me, streams + 2 * child + (kind == Signal::Join), kind, child);
    }

    ROUNDELAY_DEVICE void wait_stream(i64 child, Signal kind) {
        wait_channel(me, streams + 2 * child + (kind == Signal::Join), kind, child);
    }
};

} // namespace roundelay
