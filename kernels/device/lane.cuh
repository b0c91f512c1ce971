// A CTA's walk through the program of its rank: its signals, its moves, and its streams. One warp walks, all its threads
// alike, and writes the work for the other threads.
#pragma once
#include "arith.cuh"
#include "queue.cuh"
#include "words.cuh"

// Equal pieces of a unit of the count, at whose boundaries the program cuts its buffers.
#ifndef ROUNDELAY_PIECES
#define ROUNDELAY_PIECES 1
#endif
// The most passes of a link of lines in a launch.
#ifndef ROUNDELAY_LINK_PASSES
#define ROUNDELAY_LINK_PASSES 1
#endif

namespace roundelay {

// Whether a rank's buffers may be those of its caller, which all ranks have mapped. There are several tables of ranks
// then, and each rank tells the others in each launch which of them has its buffers.
#ifdef ROUNDELAY_REGISTERED
constexpr bool REGISTERED = true;
#else
constexpr bool REGISTERED = false;
#endif

// Words that the host computed for a schedule.
struct Facts {
    const i64* words;

    ROUNDELAY_DEVICE i64 operator[](i64 index) const { return constant(words + index); }

    ROUNDELAY_DEVICE i64 operator[](Header word) const { return constant(words + i64(word)); }
};

// A part of a buffer, in pieces of a unit. Of a slot: its number, and the first piece of the data in it.
struct Piece {
    num lo;
    num width;
    num slot = 0;
    num base = 0;
};

// An operand of a move.
struct Place {
    u64 address; // of its first element
    u64 length;  // elements
    Traced traced;
};

// The state of a walk; the end of a `parallel` restores it.
struct Walk {
    i32 stream = 0;
    i32 running = 0; // children of the stream that are running
    i32 lane = 0;    // of signals: the values of the `parallel`s around, lane 0 outside all
};

class Lane {
  public:
    // ---- constants of the walk ----------------------------------------------------------------------------
    const Launch& launch;
    const Facts facts;
    const i64* const group; // rank, stream, ops, first move or op
    const u32 part;
    const num me;
    const i32 stream;  // the stream that this CTA executes
    const i32 ranks;   // of the machine
    const i64 streams; // where the channels between streams of a rank begin
    const u64 whole;   // the elements of a piece,
    const u64 rest;    // and those of a unit beyond its pieces
    const u64 flags;   // of each link of lines, in the launches before

    // ---- state of the walk ----------------------------------------------------------------------------------
    Walker walker;
    u32 steps = 0; // ops executed
    u32 moves = 0; // of which moves
    Walk at;
#ifdef ROUNDELAY_REGISTERED
    // The number of this launch, from 1 on; the rank whose table was looked for last, and that table.
    u64 number = 0;
    num lender = -1;
    i64 lent = 0;
#endif

    ROUNDELAY_DEVICE explicit Lane(const Launch& launch)
        : Lane(launch, {launch.facts}, launch.first_group + quotient(u64(block_index()), launch.parts)) {
#ifdef ROUNDELAY_REGISTERED
        number = *launches() + 1;
        if (active()) lend();
#endif
#ifdef ROUNDELAY_STAGED
        // Children of the first stream begin after it, and end before it.
        if (active() && copies()) {
            stage(launch.stage.input, launch.ranks[me].input, launch.stage.input_length);
            meet();
        }
#endif
    }

    // Ends the program.
    ROUNDELAY_DEVICE ~Lane() {
#ifdef ROUNDELAY_STAGED
        if (stream == 0 && copies()) {
            at = Walk{};
            meet();
            stage(launch.ranks[me].output, launch.stage.output, launch.stage.output_length);
        }
#endif
        walker.put([](Entry& entry) { entry.does = Does::End; });
        if ((LINED || REGISTERED) && leads()) *launches() += 1;
    }

    Lane(const Lane&) = delete;

    // ---- tables -----------------------------------------------------------------------------------------------
    ROUNDELAY_DEVICE num entry(num at) const { return num(facts[at]); }

    ROUNDELAY_DEVICE Piece piece(num at) const {
        const num lo = entry(at);
        return {lo, entry(at + 1) - lo, entry(at + 2), entry(at + 3)};
    }

    // ---- operands -----------------------------------------------------------------------------------------------
    ROUNDELAY_DEVICE Place mine(i32 buffer, const Piece& piece) { return of(me, buffer, piece); }

    ROUNDELAY_DEVICE Place of(num rank, i32 buffer, const Piece& piece) {
        const i64 lo = element(piece.lo);
        const i64 length = element(piece.lo + piece.width) - lo;
        if (buffer < SCRATCH) return place(rank, buffer, lo, length);
        const i64 row = HEADER_WORDS + SCRATCH_WORDS * (buffer - SCRATCH);
        return place(rank, SCRATCH, facts[row] + facts[row + 1] * piece.slot + lo - element(piece.base), length);
    }

    // The elements from `at` on of a buffer.
    ROUNDELAY_DEVICE Place place(i32 rank, i32 buffer, i64 at, i64 length) {
        i64 row = rank;
#ifdef ROUNDELAY_REGISTERED
        if (buffer < SCRATCH) row += table(rank) * ranks;
#endif
        // The addresses of the buffers are the first words of a rank's memory, in this order.
        const i64* const memory = reinterpret_cast<const i64*>(launch.ranks + row);
        return {u64(constant(memory + buffer) + at * i64(sizeof(Element))), u64(length), {rank, buffer, at}};
    }

    // ---- moves ----------------------------------------------------------------------------------------------------
    // Folds the sources, one after the other, into all destinations.
    template <int S, int D> ROUNDELAY_DEVICE void fold(const Place (&srcs)[S], const Place (&dsts)[D]) {
        if (!active()) return;
        if constexpr (TRACING) trace(srcs, dsts, divisor() != 0);
        begin_move(S | D << 8, srcs[0].length, divisor());
#pragma unroll
        for (int i = 0; i < S; ++i) walker.operand(i, srcs[i].address);
#pragma unroll
        for (int i = 0; i < D; ++i) walker.operand(S + i, dsts[i].address);
        end_move();
    }

    template <class... Dsts> ROUNDELAY_DEVICE void copy(const Place& src, const Dsts&... dsts) { fold({src}, {dsts...}); }

    // dst = src op dst
    ROUNDELAY_DEVICE void reduce(const Place& src, const Place& dst) { fold({dst, src}, {dst}); }

    ROUNDELAY_SHARED void begin_move(u32 shape, u64 length, i64 divisor) {
        const Portion portion = roundelay::portion(length, launch.parts, part);
        walker.open([&](Entry& entry) {
            entry.does = Does::Move;
            entry.shape = shape;
            entry.begin = portion.begin;
            entry.end = portion.end;
            entry.divisor = divisor;
        });
    }

    // Has a switch make a move.
    ROUNDELAY_SHARED void begin_switch(u32 sides, u64 length, i64 divisor, const SwitchMove& move) {
        const Portion portion = roundelay::portion(length, launch.parts, part);
        walker.open([&](Entry& entry) {
            entry.does = Does::Switch;
            entry.shape = sides;
            entry.begin = portion.begin;
            entry.end = portion.end;
            entry.divisor = divisor;
            entry.by_switch = move;
        });
        end_move();
    }

    ROUNDELAY_DEVICE void end_move() {
        walker.close();
        ++moves;
        ++steps;
    }

    // The divisor of the next move of this stream, where it completes an average.
    ROUNDELAY_DEVICE i64 divisor() const {
        if constexpr (!AVERAGE) return 0;
        const u64 bit = u64(constant(group + 3)) + moves;
        const bool finishes = u64(facts[facts[Header::FinishAt] + i64(bit / 64)]) >> bit % 64 & 1;
        return finishes ? facts[Header::Divisor] : 0;
    }

    // The barrier of all parts of this stream.
    ROUNDELAY_SHARED void meet() {
        if (!active() || launch.parts == 1) return;
        const i64 channel = streams + CHILD_SIGNALS * facts[Header::Streams] + stream;
        put_post(me, channel);
        put_wait(channel);
    }

    // ---- signals --------------------------------------------------------------------------------------------------
    ROUNDELAY_DEVICE void TxAck(num to) { post(to, Signal::Ack); }
    ROUNDELAY_DEVICE void RxAck(num from) { wait(from, Signal::Ack); }
    ROUNDELAY_DEVICE void TxDataSignal(num to) { post(to, Signal::Data); }
    ROUNDELAY_DEVICE void RxDataSignal(num from) { wait(from, Signal::Data); }
    // A slot of the link from that rank is free again.
    ROUNDELAY_DEVICE void TxHead(num to) { post(to, Signal::Head); }
    ROUNDELAY_DEVICE void RxHead(num from) { wait(from, Signal::Head); }
    ROUNDELAY_DEVICE void TxFork(num child) { of_child(true, child, Signal::Fork); }
    ROUNDELAY_DEVICE void RxFork(num child) { of_child(false, child, Signal::Fork); }
    ROUNDELAY_DEVICE void TxJoin(num child) { of_child(true, child, Signal::Join); }
    ROUNDELAY_DEVICE void RxJoin(num child) { of_child(false, child, Signal::Join); }
    // Data has arrived in a slot; the flags in the lines tell it where there are lines.
    ROUNDELAY_DEVICE void TxTail(num to) {
        if constexpr (LINED) return flagged(true, me, to);
        post(to, Signal::Tail);
    }
    ROUNDELAY_DEVICE void RxTail(num from) {
        if constexpr (LINED) return flagged(false, from, me);
        wait(from, Signal::Tail);
    }

    ROUNDELAY_SHARED void post(i32 to, Signal kind) {
        if (active()) post_channel(to, channel(me, kind), kind, at.lane);
    }

    ROUNDELAY_SHARED void wait(i32 from, Signal kind) {
        if (active()) wait_channel(from, channel(from, kind), kind, at.lane);
    }

    ROUNDELAY_DEVICE void post_channel(i32 to, i64 channel, Signal kind, i32 lane) {
        if constexpr (TRACING) trace_signal(true, int(kind), me, to, lane);
        put_post(to, channel);
        ++steps;
    }

    ROUNDELAY_DEVICE void wait_channel(i32 from, i64 channel, Signal kind, i32 lane) {
        if constexpr (TRACING) trace_signal(false, int(kind), from, me, lane);
        put_wait(channel);
        ++steps;
    }

    // ---- passes through slots of lines ---------------------------------------------------------------------------
    // A slot, and the number of passes on its link before in this launch.
    struct Lined {
        Place place;
        u64 lines; // of the whole slot
        u64 step;
    };

    ROUNDELAY_DEVICE Lined slot(num rank, i32 buffer, const Piece& piece, num step) {
        const i64 stride = facts[HEADER_WORDS + SCRATCH_WORDS * (buffer - SCRATCH) + 1];
        return {of(rank, buffer, piece), u64(stride) * sizeof(Element) / sizeof(Vector), u64(step)};
    }

    ROUNDELAY_DEVICE void send(const Place& own, const Lined& out) { pass<OWN | SENDS>(own, {}, {}, out); }

    ROUNDELAY_DEVICE void recv(const Lined& in, const Place& dst) { pass<RECEIVES | DST>({}, in, dst, {}); }

    ROUNDELAY_DEVICE void recv_copy_send(const Lined& in, const Place& dst, const Lined& out) {
        pass<RECEIVES | DST | SENDS>({}, in, dst, out);
    }

    ROUNDELAY_DEVICE void recv_reduce_send(const Place& own, const Lined& in, const Lined& out) {
        pass<RECEIVES | OWN | SENDS>(own, in, {}, out);
    }

    ROUNDELAY_DEVICE void recv_reduce_copy(const Place& own, const Lined& in, const Place& dst) {
        pass<RECEIVES | OWN | DST>(own, in, dst, {});
    }

    ROUNDELAY_DEVICE void recv_reduce_copy_send(const Place& own, const Lined& in, const Place& dst, const Lined& out) {
        pass<RECEIVES | OWN | DST | SENDS>(own, in, dst, out);
    }

    // ---- streams --------------------------------------------------------------------------------------------------
    // Runs iteration `lo` on this stream, and the other iterations on its children. With NESTED, iterations may fork
    // streams of their own, so every CTA walks all iterations to number these; otherwise each CTA walks its own one.
    template <bool NESTED, class Body> ROUNDELAY_DEVICE void parallel(num lo, num hi, const Body& body) {
        const Walk outer = at;
        const bool parent = active();
        const i32 others = hi - lo > 1 ? i32(hi - lo - 1) : 0;
        // The children of a stream, in the order of their first forks.
        const i64 children =
            others == 0 ? 0 : facts[facts[Header::ChildrenAt] + facts[Header::Streams] * me + at.stream] + at.running;
        for (i32 k = 0; parent && k < others; ++k) stream_signal(true, i32(facts[children + k]), Signal::Fork);
        for (i32 k = -1; lo + 1 + k < hi; ++k) {
            if (!NESTED && parent && k >= 0) break;
            at.stream = k < 0 ? outer.stream : i32(facts[children + k]);
            at.running = k < 0 ? outer.running + others : 0;
            if (NESTED || active()) {
                // Lanes inside one lane are numbered in the order of their values.
                at.lane = i32(facts[facts[Header::LanesAt] + outer.lane] + lo + 1 + k);
                const bool child = k >= 0 && active();
                if (child) stream_signal(false, at.stream, Signal::Fork);
                body(num(lo + 1 + k));
                if (child) stream_signal(true, at.stream, Signal::Join);
            }
            at = outer;
        }
        for (i32 k = 0; parent && k < others; ++k) stream_signal(false, i32(facts[children + k]), Signal::Join);
    }

    // Runs statements on a stream.
    template <class Body> ROUNDELAY_DEVICE void on(i32 stream, const Body& body) {
        at.stream = stream;
        if (active()) body();
        at.stream = 0;
    }

    // The lane of the next signal.
    ROUNDELAY_DEVICE Lane& in(num lane) {
        at.lane = lane;
        return *this;
    }

    // Whether this CTA executes the ops at which the walk is.
    ROUNDELAY_DEVICE bool active() const { return at.stream == stream; }

    // Records a move.
    template <int S, int D> ROUNDELAY_DEVICE void trace(const Place (&srcs)[S], const Place (&dsts)[D], bool finishes) const {
        Traced traced[S + D];
        for (int i = 0; i < S; ++i) traced[i] = srcs[i].traced;
        for (int i = 0; i < D; ++i) traced[S + i] = dsts[i].traced;
        trace_move(traced, S, D, i64(srcs[0].length), finishes);
    }

  private:
#ifdef ROUNDELAY_STAGED
    // Whether the rank's buffers are copied in this launch, and not used where they are.
    ROUNDELAY_DEVICE bool copies() const { return !REGISTERED || launch.stage.table == 0; }

    // Copies between a buffer of the caller and its stage; such a copy is no step of the program.
    ROUNDELAY_SHARED void stage(u64 from, u64 to, u64 length) {
        const Portion portion = roundelay::portion(length, launch.parts, part);
        walker.put([&](Entry& entry) {
            entry.does = Does::Stage;
            entry.begin = portion.begin;
            entry.end = portion.end;
            entry.divisor = 0;
            entry.at[0] = from;
            entry.at[1] = to;
        });
    }
#endif

#ifdef ROUNDELAY_REGISTERED
    // ---- registered buffers -----------------------------------------------------------------------------------------
    // The channel by which that rank tells its table.
    ROUNDELAY_DEVICE i64 tables_of(i32 rank) const {
        return streams + (CHILD_SIGNALS + 1) * facts[Header::Streams] + rank;
    }

    // Tells the other ranks which table has the buffers of this one: the word of a launch is that of the next one only
    // when nobody uses this rank's buffers any more.
    ROUNDELAY_DEVICE void lend() {
        for (i32 to = roundelay::walker(); to < ranks; to += WARP) {
            u64* const word = reinterpret_cast<u64*>(counter(launch.ranks[to].posted, tables_of(me)));
            if (to != me) store_relaxed<SCOPE>(word, number << 8 | launch.stage.table);
        }
    }

    // The table that has the buffers of a rank in this launch. The walker waits for it as long as movers wait for a signal
    // of that rank, without which no op uses its buffers: their patience ends both waits.
    ROUNDELAY_SHARED i64 table(i32 rank) {
        if (rank == me) return i64(launch.stage.table);
        if (!active()) return 0;
        if (rank == lender) return lent;
        const u64* const word = reinterpret_cast<const u64*>(counter(launch.ranks[me].posted, tables_of(rank)));
        u64 told = load_relaxed<SCOPE>(word);
        if (told >> 8 < number) walker.show();
        for (u32 polls = 1; told >> 8 < number; ++polls) {
            if (polls % POLLS == 0) {
                make_room();
                if (load_relaxed<Scope::System>(launch.control) != 0) return 0;
            }
            told = load_relaxed<SCOPE>(word);
        }
        lender = num(rank);
        lent = i64(told & 0xff);
        return lent;
    }
#endif

    // The counter of this part.
    ROUNDELAY_DEVICE u64 counter(u64 words, i64 channel) const {
        return words + 8 * (u64(channel) * launch.parts + part);
    }

    ROUNDELAY_DEVICE void put_post(i32 to, i64 channel) { walker.post(counter(launch.ranks[to].posted, channel)); }

    ROUNDELAY_DEVICE void put_wait(i64 channel) {
        const Memory& mine = launch.ranks[me];
        walker.wait({mine.posted + 8 * u64(channel) * launch.parts, counter(mine.waited, channel), steps});
    }

    // The channel of this kind from that rank, in the lane of the walk; an i32 would overflow with many lanes.
    ROUNDELAY_DEVICE i64 channel(i32 from, Signal kind) const {
        return (i64(at.lane) * ranks + from) * PAIR_SIGNALS + i32(kind);
    }

    ROUNDELAY_DEVICE void flagged(bool post, num from, num to) {
        if (!active()) return;
        if constexpr (TRACING) trace_signal(post, int(Signal::Tail), from, to, at.lane);
        ++steps;
    }

    // The number of launches before: a word of each CTA.
    ROUNDELAY_DEVICE u64* launches() const { return launch.launches + launch.first_group * launch.parts + u64(block_index()); }

    ROUNDELAY_DEVICE Slot lines_of(const Lined& slot) const {
        const u64 flag = flags + slot.step + 1;
        return {slot.place.address, flag, wraps(flag) ? slot.lines : 0};
    }

    // Performs a pass; its tail was waited for, and is then posted.
    template <u32 HAS>
    ROUNDELAY_DEVICE void pass(const Place& own, const Lined& in, const Place& dst, const Lined& out) {
        if (!active()) return;
        const bool receives = HAS & RECEIVES, folds = HAS & OWN, keeps = HAS & DST, sends = HAS & SENDS;
        const u64 length = folds ? own.length : keeps ? dst.length : in.place.length;
        if constexpr (TRACING) {
            Traced traced[4];
            int n = 0;
            if (folds) traced[n++] = own.traced;
            if (receives) traced[n++] = in.place.traced;
            if (keeps) traced[n++] = dst.traced;
            if (sends) traced[n++] = out.place.traced;
            trace_move(traced, receives + folds, keeps + sends, i64(length), divisor() != 0);
        }
        walker.put([&](Entry& entry) {
            entry.does = Does::Pass;
            entry.shape = HAS;
            entry.step = steps;
            entry.end = length;
            entry.divisor = divisor();
            entry.at[0] = own.address;
            entry.at[1] = dst.address;
            if (receives) entry.in = lines_of(in);
            if (sends) entry.out = lines_of(out);
            entry.expected = receives ? flags + in.step + 1 : 0;
        });
        ++moves;
        ++steps;
    }

    ROUNDELAY_DEVICE void of_child(bool posts, i32 child, Signal kind) {
        if (active()) stream_signal(posts, child, kind);
    }

    ROUNDELAY_SHARED void stream_signal(bool posts, i32 child, Signal kind) {
        const i64 channel = streams + CHILD_SIGNALS * child + i32(kind) - PAIR_SIGNALS;
        if (posts) {
            post_channel(me, channel, kind, child);
        } else {
            wait_channel(me, channel, kind, child);
        }
    }

    ROUNDELAY_DEVICE i64 element(num piece) const {
        const u64 past = rest == 0 ? 0 : u64(piece) * rest / ROUNDELAY_PIECES;
        return i64(u64(piece) * whole + past);
    }

    ROUNDELAY_DEVICE Lane(const Launch& launch, Facts facts, u64 row)
        : launch(launch), facts(facts), group(facts.words + facts[Header::GroupsAt] + GROUP_WORDS * i64(row)),
          part(u32(remainder(u64(block_index()), launch.parts))), me(num(constant(group))),
          stream(i32(constant(group + 1))), ranks(i32(facts[Header::Ranks])),
          streams(facts[Header::Lanes] * ranks * PAIR_SIGNALS), whole(launch.count / ROUNDELAY_PIECES),
          rest(launch.count % ROUNDELAY_PIECES), flags(LINED ? *launches() * ROUNDELAY_LINK_PASSES : 0) {}
};

// ---- averages that are divided at the end ----------------------------------------------------------------------

// Divides the output of one rank of this device in each `parts` blocks.
ROUNDELAY_DEVICE void scale(const Launch& launch) {
    const Facts facts{launch.facts};
    const i64 first = facts[facts[Header::GroupsAt] + GROUP_WORDS * i64(launch.first_group)];
    const i64 rank = first + i64(u64(block_index()) / launch.parts);
    if (rank >= facts[Header::Ranks]) return;
    const u64 output = launch.ranks[(REGISTERED ? i64(launch.stage.table) * facts[Header::Ranks] : 0) + rank].output;
    const u64 length = output == 0 ? 0 : u64(facts[Header::OutputUnits]) * launch.count;
    const Portion mine = portion(length, launch.parts, u64(block_index()) % launch.parts);
    const u64 place[1] = {output};
    move<1, 1>(place, place, mine.begin, mine.end, facts[Header::Divisor]);
}

} // namespace roundelay

#define ROUNDELAY_SCALE_KERNEL(NAME)                                                                                   \
    ROUNDELAY_KERNEL(NAME) { roundelay::scale(launch); }
