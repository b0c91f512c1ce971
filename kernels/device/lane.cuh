// A CTA's walk through the program of its rank: the current stream and lane, the ranks that it sees, and the regions of
// its input and output. One warp walks, all its threads alike, and writes the work for the other threads.
#pragma once
#include "numbers.cuh"
#include "peer.cuh"
#include "queue.cuh"

namespace roundelay {

// A call of an algorithm on regions of its caller, one of which gives each rank a block of its own.
struct Call {
    Region large;
    Region block; // this rank's
    i32 me;       // this rank's number among the members
    const Members* members;
};

// The fifo of the running algorithm.
struct Fifo {
    i64 origin; // element of scratch where slot 0 begins
    i64 stride;
    i32 declaration;
    i32 scratch;
    u32 credits;
    u32 slices;
    i32 first_link; // of the open links, its first
};

// The state of a walk; blocks restore it at their end.
struct Walk {
    i64 path = 0;    // of calls
    i32 stream = 0;
    i32 running = 0; // children of the stream that are running
    i32 lane = 0;    // of signals: the values of the `parallel`s around, lane 0 outside all
    bool called = false;
    i32 next_members; // the work words of the next `within`
    const Members* seen = nullptr;
    Fifo fifo;
};

// This rank's end of a link, while it is the link at hand.
struct Link {
    i32 key = -1; // none
    i32 entry;    // among the open links
    i32 first_slot;
    i32 end;   // among all ends of links, the first of this one: each part has its own
    u32 steps; // since the fifo was declared
    u64 total; // since the plan was made
};

class Lane {
  public:
    // ---- constants of the walk ----------------------------------------------------------------------------
    const Launch& launch;
    const Facts facts;
    const i64* const group; // rank, stream, ops, first move or op
    u64* const work;        // shapes of slots, then open links, then members of `within` blocks
    const u32 part;
    const i32 me;
    const i32 mine;    // the stream that this CTA executes
    const i32 ranks;   // of the machine
    const i64 streams; // where the channels between streams of a rank begin

    // ---- state of the walk ----------------------------------------------------------------------------------
    Walker walker;
    u32 steps = 0;        // ops executed
    u32 moves = 0;        // of which moves
    i32 links = 0;        // open ones
    Walk at;
    Link incoming, outgoing;

    // The op in the making. It is a member, because a variable at each place of use would cost a register.
    Operand operands[16];
    u64 length;
    Place places[9];

    ROUNDELAY_DEVICE explicit Lane(const Launch& launch)
        : Lane(launch, {launch.facts}, launch.first_group + quotient(u64(block_index()), launch.parts)) {
        const i32 slots = i32(facts[Header::Slots]);
        at.next_members = HELD_WORDS * slots + LINK_WORDS * i32(facts[Header::LinksOfARank]);
        // Slots hold no data yet.
        for (i32 slot = roundelay::walker(); slot < slots; slot += WARP) work[HELD_WORDS * slot + 2] = 0;
        walker_sync();
    }

    // Ends the program.
    ROUNDELAY_DEVICE ~Lane() {
        walker.put([](Entry& entry) { entry.does = Does::End; });
    }

    Lane(const Lane&) = delete;

    // ---- questions of a program -------------------------------------------------------------------------------
    ROUNDELAY_DEVICE i64 nranks() const { return at.seen == nullptr ? ranks : at.seen->count; }
    ROUNDELAY_DEVICE i64 rank() const { return at.seen == nullptr ? me : at.seen->me; }
    ROUNDELAY_DEVICE Peer local() { return {this, me, i32(rank()), at.seen}; }
    ROUNDELAY_DEVICE Peer peer(i64 number) { return {this, rank_of(at.seen, number), i32(number), at.seen}; }

    ROUNDELAY_DEVICE Region input() const { return whole(INPUT, Header::InputUnits); }
    ROUNDELAY_DEVICE Region output() const { return whole(OUTPUT, Header::OutputUnits); }

    ROUNDELAY_DEVICE i64 int_param(i64 k) const { return facts[facts[Header::ParamsAt] + k]; }
    ROUNDELAY_DEVICE bool bool_param(i64 k) const { return int_param(k) != 0; }
    ROUNDELAY_DEVICE List list_param(i64 k) const { return list(int_param(k), nullptr); }
    ROUNDELAY_DEVICE Ring ring_param(i64 k) { return ring(int_param(k)); }
    ROUNDELAY_DEVICE Rings rings_param(i64 k) { return {*this, int_param(k)}; }
    ROUNDELAY_DEVICE Tree tree_param(i64 k) { return {*this, int_param(k)}; }
    ROUNDELAY_DEVICE Trees trees_param(i64 k) { return {*this, int_param(k)}; }
    ROUNDELAY_DEVICE Groups groups_param(i64 k) { return {*this, int_param(k)}; }
    ROUNDELAY_DEVICE Topology topology_param(i64 k) { return {*this, int_param(k)}; }

    ROUNDELAY_DEVICE Ring ring_natural() { return {*this, List(), at.seen}; }
    ROUNDELAY_DEVICE Ring ring_order(const List& order) { return {*this, order, at.seen}; }

    // Returns the value that the host computed for the text's `site` and these arguments.
    template <class... Args> ROUNDELAY_DEVICE Ring ring_at(i64 site, const Args&... args) {
        return ring(object(site, args...));
    }
    template <class... Args> ROUNDELAY_DEVICE Rings rings_at(i64 site, const Args&... args) {
        return {*this, object(site, args...)};
    }
    template <class... Args> ROUNDELAY_DEVICE Tree tree_at(i64 site, const Args&... args) {
        return {*this, object(site, args...)};
    }
    template <class... Args> ROUNDELAY_DEVICE Trees trees_at(i64 site, const Args&... args) {
        return {*this, object(site, args...)};
    }
    template <class... Args> ROUNDELAY_DEVICE Groups groups_at(i64 site, const Args&... args) {
        return {*this, object(site, args...)};
    }
    template <class... Args> ROUNDELAY_DEVICE Topology topology_at(i64 site, const Args&... args) {
        return {*this, object(site, args...)};
    }

    ROUNDELAY_DEVICE List relays(const Topology& topology, i64 from, i64 to) const {
        return list(facts.find(Key::Relays, topology, from, to), at.seen);
    }

    // ---- declarations ---------------------------------------------------------------------------------------------
    ROUNDELAY_DEVICE Region scratch(i64 k, const Region& like) const { return slot(declaration(k)).shaped_like(like); }

    ROUNDELAY_DEVICE Pieces scratch_slots(i64 k, i64 n, const Region& like) const {
        return Pieces::slots(scratch(k, like), n, stride(declaration(k)));
    }

    // Slots that take the shape of the data that is written to them.
    ROUNDELAY_DEVICE Pieces scratch_blocks(i64 k, i64 n, const Pieces&) const {
        return Pieces::slots(slot(declaration(k)), n, stride(declaration(k)));
    }

    template <class Like> ROUNDELAY_DEVICE void fifo(i64 k, const Like&, i64 credits, i64 slices) {
        lay_down_links();
        const i32 id = declaration(k);
        at.fifo = {facts[scratch_row(id)], stride(id), i32(k), id, u32(credits), u32(slices), links};
    }

    // The sender takes the outstanding credits, so the next run starts with slot 0 again.
    ROUNDELAY_DEVICE void end_fifo();

    // ---- blocks -----------------------------------------------------------------------------------------------------
    // Runs iteration `lo` on this stream, and the other iterations on its children. With WALK every CTA walks all
    // iterations, which is necessary where they change counters; otherwise each CTA walks its own iteration.
    template <bool WALK, class Body> ROUNDELAY_DEVICE void parallel(i64 lo, i64 hi, const Body& body) {
        const Walk outer = at;
        const bool parent = active();
        const i32 others = i32(max(hi - lo - 1, 0));
        const List children = others == 0 ? List() : list(facts.find(Key::Child, me, at.stream), nullptr);
        for (i32 k = 0; parent && k < others; ++k) stream_signal(true, i32(children[outer.running + k]), Signal::Fork);
        for (i32 k = -1; lo + 1 + k < hi; ++k) {
            if (!WALK && parent && k >= 0) break;
            at.stream = k < 0 ? outer.stream : i32(children[outer.running + k]);
            at.running = k < 0 ? outer.running + others : 0;
            if (WALK || active()) {
                at.lane = i32(facts.find(Key::Lane, at.lane, lo + 1 + k));
                const bool child = k >= 0 && active();
                if (child) stream_signal(false, at.stream, Signal::Fork);
                body(lo + 1 + k);
                if (child) stream_signal(true, at.stream, Signal::Join);
            }
            at = outer;
        }
        for (i32 k = 0; parent && k < others; ++k) stream_signal(false, i32(children[outer.running + k]), Signal::Join);
    }

    // For the ranks of the list, which see each other as 0, 1, 2, …
    template <class Body> ROUNDELAY_DEVICE void within(const List& list, const Body& body) {
        const Walk outer = at;
        const Members members = number(list);
        if (members.me == members.count) return;
        at.seen = &members;
        at.next_members += members.count;
        body(members.me, members.count);
        at = outer;
    }

    // Runs another algorithm on these regions. `in_many`, `out_many`: whether its input and output are as long as all
    // ranks' blocks together; where the caller's region has that length for the shorter of them too, each rank has a
    // block of it.
    template <class Body>
    ROUNDELAY_DEVICE void call(i64 id, bool in_many, bool out_many, const Region& input, const Region& output,
                               const Body& body) {
        const Walk outer = at;
        at.called = true;
        Hash hash;
        hash.word(at.path);
        hash.word(id);
        at.path = hash.positive();
        const Region& large = in_many ? input : output;
        const Region& small = in_many ? output : input;
        bool blocks = in_many != out_many && nranks() > 1;
        Call call{large, large, i32(rank()), at.seen};
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

    // The barrier of all parts of this stream.
    ROUNDELAY_SHARED void meet() {
        if (!active() || launch.parts == 1) return;
        const i64 channel = streams + CHILD_SIGNALS * facts[Header::Streams] + mine;
        put_post(launch.ranks[me], channel);
        put_wait(channel);
    }

    // Whether this CTA executes the ops that the walk comes to.
    // Whether this CTA executes the ops at which the walk is.
    ROUNDELAY_DEVICE bool active() const { return at.stream == mine; }

    ROUNDELAY_SHARED void post(i32 to, Signal kind) {
        if (active()) post_channel(to, channel(me, kind), kind, at.lane);
    }

    ROUNDELAY_SHARED void wait(i32 from, Signal kind) {
        if (active()) wait_channel(from, channel(from, kind), kind, at.lane);
    }

    ROUNDELAY_DEVICE void post_channel(i32 to, i64 channel, Signal kind, i32 lane) {
        if constexpr (TRACING) trace_signal(true, int(kind), me, to, lane);
        put_post(launch.ranks[to], channel);
        ++steps;
    }

    ROUNDELAY_DEVICE void wait_channel(i32 from, i64 channel, Signal kind, i32 lane) {
        if constexpr (TRACING) trace_signal(false, int(kind), from, me, lane);
        put_wait(channel);
        ++steps;
    }

    // The region at `rank`, where calls give each rank a block of its own.
    ROUNDELAY_DEVICE void locate(i32 rank, Region& region) const {
        while (region.call != nullptr) {
            const Call& call = *region.call;
            if (rank != me) region = region.moved(number_of(call.members, rank) - call.me, call.block);
            region.call = call.block.call;
        }
    }

    ROUNDELAY_DEVICE i64 scratch_row(i32 id) const { return facts[Header::ScratchAt] + SCRATCH_WORDS * id; }

    ROUNDELAY_DEVICE List list(i64 offset, const Members* made) const {
        return offset == 0 ? List() : List(facts.words + offset + 1, facts[offset], made, made);
    }

    ROUNDELAY_DEVICE void lay_down_links();

  private:
    // The counter of this part.
    ROUNDELAY_DEVICE u64 counter(u64 words, i64 channel) const {
        return words + 8 * (u64(channel) * launch.parts + part);
    }

    ROUNDELAY_DEVICE void put_post(const Memory& to, i64 channel) { walker.post(counter(to.posted, channel)); }

    ROUNDELAY_DEVICE void put_wait(i64 channel) {
        const Memory& mine = launch.ranks[me];
        walker.wait({mine.posted + 8 * u64(channel) * launch.parts, counter(mine.waited, channel), steps});
    }

    // The channel of this kind from that rank, in the lane of the walk; an i32 would overflow with many lanes.
    ROUNDELAY_DEVICE i64 channel(i32 from, Signal kind) const {
        return (i64(at.lane) * ranks + from) * PAIR_SIGNALS + i32(kind);
    }

    ROUNDELAY_DEVICE Lane(const Launch& launch, Facts facts, u64 row)
        : launch(launch), facts(facts), group(facts.words + facts[Header::GroupsAt] + GROUP_WORDS * i64(row)),
          work(launch.work + u64(block_index()) * u64(facts[Header::Work])),
          part(u32(remainder(u64(block_index()), launch.parts))), me(i32(constant(group))),
          mine(i32(constant(group + 1))), ranks(i32(facts[Header::Ranks])),
          streams(facts[Header::Lanes] * ranks * PAIR_SIGNALS) {}

    ROUNDELAY_DEVICE Region whole(i32 buffer, Header units) const {
        return {0, u64(facts[units]), {1, launch.count, 0}, 0, buffer, 0, false, nullptr};
    }

    ROUNDELAY_DEVICE Ring ring(i64 offset) { return {*this, list(offset, at.seen), at.seen}; }

    ROUNDELAY_DEVICE i32 declaration(i64 k) const {
        return i32(facts.find(Key::Scratch, at.path, at.called ? at.lane : 0, k));
    }

    ROUNDELAY_DEVICE Region slot(i32 id) const {
        return {0, 0, {1, launch.count, 0}, facts[scratch_row(id)], SCRATCH + id, 0, true, nullptr};
    }

    ROUNDELAY_DEVICE i64 stride(i32 id) const { return facts[scratch_row(id) + 1]; }

    template <class... Args> ROUNDELAY_DEVICE i64 object(i64 site, const Args&... args) const {
        i64 group = 0;
        if (at.seen != nullptr) {
            Hash hash;
            for (i32 i = 0; i < at.seen->count; ++i) hash.word(i64(at.seen->ranks[i]));
            group = hash.positive() | 1;
        }
        return facts.find(Key::Object, site, nranks(), group, args...);
    }

    // Builds the ranks that a `within` block sees. A rank outside the block has their count as its number.
    ROUNDELAY_SHARED Members number(const List& list) {
        u64* const numbered = work + at.next_members;
        // All threads have read the ranks of the block before, which were at the same place.
        walker_sync();
        for (i32 i = roundelay::walker(); i < len(list); i += WARP) numbered[i] = u64(rank_of(at.seen, list[i]));
        walker_sync();
        Members members{numbered, i32(len(list)), 0};
        while (members.me < members.count && i32(numbered[members.me]) != me) ++members.me;
        return members;
    }

    // Posts or waits between a stream and its child.
    ROUNDELAY_SHARED void stream_signal(bool posts, i32 child, Signal kind) {
        const i64 channel = streams + CHILD_SIGNALS * child + i32(kind) - PAIR_SIGNALS;
        if (posts) {
            post_channel(me, channel, kind, child);
        } else {
            wait_channel(me, channel, kind, child);
        }
    }
};

} // namespace roundelay
