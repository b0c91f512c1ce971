// The protocols LL and LL128: one store carries data and the signal of its arrival, so that no wait, barrier or fence comes
// between them. Slots hold lines, whose flag is the number of their step.
//
// A line of LL is a vector of one thread: two words of 4 bytes of data below the flag. A word arrives whole, so a reader
// that sees the flag sees the data. It costs twice the bytes.
//
// A line of LL128 is 128 bytes, a vector of each of 8 threads side by side, whose last 8 bytes are the flag: 120 bytes of
// data. PTX promises no order among these vectors. The protocol is right where the threads of a warp store and load a line
// at once, as NVLink does from sm_70 on, and the memory of one device; PCI Express does not.
#pragma once
#include "base.cuh"
#include "moves.cuh"
#include "numbers.cuh"
#include "signals.cuh"

#ifndef ROUNDELAY_PROTOCOL
#define ROUNDELAY_PROTOCOL Direct
#endif

namespace roundelay {

// The way of data between ranks: by the program's own moves and signals, or through slots, with signals or as lines.
enum class Protocol { Direct, Simple, Ll, Ll128 };

// Whether slots hold lines, whose flags tell that they have arrived; and whether those are lines of LL128.
constexpr bool WIDE_LINES = Protocol::ROUNDELAY_PROTOCOL == Protocol::Ll128;
constexpr bool LINED = WIDE_LINES || Protocol::ROUNDELAY_PROTOCOL == Protocol::Ll;

// Vectors that the threads of a warp move at once, as they lie in a slot, and bytes of data in them. Data is dealt in
// vectors, too: first to all threads without a flag, and then to those with flags, of which each pair shares a vector.
constexpr u64 UNIT = WIDE_LINES ? 32 : 1;
constexpr u64 UNIT_DATA = WIDE_LINES ? 480 : 8;
// Vectors of a wide line.
constexpr u64 LINE = 8;
// Units that a thread waits for at once, and its vectors in each of them: one, but for a thread that is a warp of its own.
constexpr int UNITS = 4;
constexpr int EACH = UNIT > u64(WARP) ? int(UNIT) / WARP : 1;

// One end of a link at one step: the slot, aligned to a line, and 1 + the steps before it, of which a line of LL has the
// low bits.
struct Slot {
    u64 lines;
    u64 flag;
    u64 rewritten; // lines that all get the flag, whatever is sent; 0 in general: see `wraps`
};

// The addresses of this rank's first elements: those that are sent or folded in, and those that are written.
struct Local {
    u64 own;
    u64 dst;
};

// Whether the flags of LL are about to repeat. Then all lines of a slot are rewritten, so that none has an old flag, and
// waited for like data, because the slot is not free before. Those of LL128 have 64 bits.
ROUNDELAY_DEVICE bool wraps(u64 flag) { return !WIDE_LINES && u32(flag) >= 0u - (1u << 21); }

// The data of a vector.
struct Words {
    u64 at[WIDE_LINES ? 2 : 1];
};

using LineData = Registers<sizeof(Words) / sizeof(Register)>;

// Whether a vector of a slot ends a wide line, with its flag; and whether its word of data is the upper one of the vector
// that it shares.
ROUNDELAY_DEVICE bool has_flag(u64 at) { return at % LINE == LINE - 1; }
ROUNDELAY_DEVICE bool has_upper(u64 at) { return at % (2 * LINE) == 2 * LINE - 1; }

// The first element of the data of a vector.
ROUNDELAY_DEVICE u64 first_of(u64 at) {
    constexpr u64 ALL = sizeof(Words) / sizeof(Element);
    if constexpr (!WIDE_LINES) return at * ALL;
    const u64 vector = at % UNIT, line = vector / LINE;
    return at / UNIT * (UNIT_DATA / sizeof(Element)) + (has_flag(at) ? UNIT - UNIT / LINE + line / 2 : vector - line) * ALL;
}

// The elements from one on to the end of all. A unit of one vector begins before it.
ROUNDELAY_DEVICE u64 left(u64 first, u64 end) { return UNIT > 1 && first >= end ? 0 : end - first; }

// The elements from an address on, of which there may be fewer than a vector has.
ROUNDELAY_DEVICE Words load_elements(u64 address, u64 elements) {
    constexpr u64 ALL = sizeof(Words) / sizeof(Element);
    if (elements >= ALL && address % sizeof(Words) == 0) {
        if constexpr (WIDE_LINES) return bits_as<Words>(load<Vector>(address));
        else return bits_as<Words>(load<u64>(address));
    }
    Words data{};
#pragma unroll
    for (u64 e = 0; e < ALL; ++e) {
        if (e < elements) {
            const u64 bit = e * sizeof(Element) * 8;
            data.at[bit / 64] |= u64(load_unit<Element>(address + e * sizeof(Element)).at[0]) << (bit % 64);
        }
    }
    return data;
}

ROUNDELAY_DEVICE void store_elements(u64 address, u64 elements, Words data) {
    constexpr u64 ALL = sizeof(Words) / sizeof(Element);
    if (elements >= ALL && address % sizeof(Words) == 0) {
        if constexpr (WIDE_LINES) store(address, bits_as<Vector>(data));
        else store(address, bits_as<u64>(data));
        return;
    }
#pragma unroll
    for (u64 e = 0; e < ALL; ++e) {
        if (e < elements) {
            const u64 bit = e * sizeof(Element) * 8;
            store_unit<Element>(address + e * sizeof(Element), {{Register(data.at[bit / 64] >> (bit % 64))}});
        }
    }
}

// Loads this thread's data of a unit, from `at` on, out of a buffer of `end` elements.
ROUNDELAY_DEVICE void load_data(u64 address, u64 at, u64 end, Words (&data)[EACH]) {
#pragma unroll
    for (int nth = 0; nth < EACH; ++nth) {
        const u64 first = first_of(at + nth);
        data[nth] = load_elements(address + first * sizeof(Element), left(first, end));
        if constexpr (WIDE_LINES) {
            if (has_upper(at + nth)) data[nth].at[0] = data[nth].at[1];
        }
    }
}

// Stores it. The thread with the lower word of a vector gets the upper one, and stores both.
ROUNDELAY_DEVICE void store_data(u64 address, u64 at, u64 end, Words (&data)[EACH]) {
#pragma unroll
    for (int nth = 0; nth < EACH; ++nth) {
        if constexpr (WIDE_LINES) {
            const u64 upper = (at + nth + LINE) % UNIT;
            const u64 word = EACH == 1 ? warp_get(data[0].at[0], int(upper)) : data[upper % EACH].at[0];
            if (has_flag(at + nth)) data[nth].at[1] = word;
            if (has_upper(at + nth)) continue;
        }
        const u64 first = first_of(at + nth);
        store_elements(address + first * sizeof(Element), left(first, end), data[nth]);
    }
}

// Stores this thread's vectors of a unit, from `at` on. All threads of a warp store a wide line together.
ROUNDELAY_DEVICE void store_unit(const Slot& slot, u64 at, const Words (&data)[EACH]) {
    Vector* const lines = reinterpret_cast<Vector*>(slot.lines) + at;
    if constexpr (!WIDE_LINES) {
        const u64 flag = slot.flag << 32, words = data[0].at[0];
        store_words<SCOPE, WIDE_LINES>(lines, {{(words & 0xffffffff) | flag, (words >> 32) | flag}});
    } else {
        warp_sync();
#pragma unroll
        for (int nth = 0; nth < EACH; ++nth) {
            const Words& words = data[nth];
            store_words<SCOPE, WIDE_LINES>(lines + nth, {{words.at[0], has_flag(at + nth) ? slot.flag : words.at[1]}});
        }
    }
}

// Loads them. A thread that is a warp of its own loads each flag before the data of its line.
ROUNDELAY_DEVICE void load_unit(const Slot& slot, u64 at, Vector (&line)[EACH]) {
    if constexpr (WIDE_LINES) warp_sync();
#pragma unroll
    for (int nth = EACH - 1; nth >= 0; --nth) {
        line[nth] = load_words<SCOPE, WIDE_LINES>(reinterpret_cast<const Vector*>(slot.lines) + at + nth);
    }
}

ROUNDELAY_DEVICE Words data_of(Vector line) {
    if constexpr (WIDE_LINES) return bits_as<Words>(line);
    else return {{(line.words[0] & 0xffffffff) | (line.words[1] << 32)}};
}

// Whether a unit has arrived: for wide lines, what all threads of the warp have loaded.
ROUNDELAY_DEVICE bool has_arrived(const Slot& slot, u64 at, const Vector (&line)[EACH]) {
    if constexpr (!WIDE_LINES) {
        return u32(line[0].words[0] >> 32) == u32(slot.flag) && u32(line[0].words[1] >> 32) == u32(slot.flag);
    }
    bool all = true;
#pragma unroll
    for (int nth = 0; nth < EACH; ++nth) all = all && (!has_flag(at + nth) || line[nth].words[1] == slot.flag);
    return warp_all(all);
}

// Loads a unit again and again until all of it has arrived. False: the thread gave up, or the warp whose threads go on
// together.
ROUNDELAY_DEVICE bool receive(const Launch& launch, Waiter waiter, const Slot& slot, u64 at, Vector (&line)[EACH],
                              Patience& patience) {
    while (!has_arrived(slot, at, line)) {
        if constexpr (WIDE_LINES) {
            const bool lasts = thread() % WARP != 0 || patience.lasts(launch, waiter, waiter.expected - 1);
            if (!warp_all(lasts)) return false;
        } else if (!patience.lasts(launch, waiter, waiter.expected - 1)) {
            return false;
        }
        load_unit(slot, at, line);
    }
    return true;
}

// Folds a vector of this rank into what it received, and divides it by `divisor` unless that is 0. The flag of a wide line
// is folded, too, and then replaced.
ROUNDELAY_DEVICE Words folded(Words received, Words own, i64 divisor) {
    LineData result = bits_as<LineData>(own);
    const LineData from = bits_as<LineData>(received);
#pragma unroll
    for (int r = 0; r < int(sizeof(Words) / sizeof(Register)); ++r) result.at[r] = fold_last(from.at[r], result.at[r], divisor);
    return bits_as<Words>(result);
}

ROUNDELAY_DEVICE Words finished(Words words, i64 divisor) {
    LineData result = bits_as<LineData>(words);
#pragma unroll
    for (int r = 0; r < int(sizeof(Words) / sizeof(Register)); ++r) result.at[r] = finish(result.at[r], divisor);
    return bits_as<Words>(result);
}

// Performs this part of a pass of `len` elements: received from `in`, with `local.own` folded into it, divided by
// `divisor` unless that is 0 and rounded, to `local.dst` and on to `out`. False: this thread gave up.
template <bool RECEIVES, bool OWN, bool DST, bool SENDS>
ROUNDELAY_SHARED bool pass_lines(const Launch& launch, Waiter waiter, Slot in, Slot out, Local local, u64 len,
                                 i64 divisor) {
    constexpr u64 ELEMENTS = UNIT_DATA / sizeof(Element), SPAN = u64(WARP) * EACH;
    delay();
    const Portion mine = portion<WIDE_LINES ? ELEMENTS : GRAIN>(len, launch.parts, waiter.part);
    // Parts begin at the start of a unit, or at the end of all elements.
    const u64 begin = (mine.begin + ELEMENTS - 1) / ELEMENTS * UNIT, end = (mine.end + ELEMENTS - 1) / ELEMENTS * UNIT;
    const u64 warp = thread() / WARP, lane = thread() % WARP;
    Patience patience;
    for (u64 first = begin + warp * (SPAN * UNITS) + lane; first < end; first += u64(threads()) * (EACH * UNITS)) {
        Vector line[UNITS][EACH];
        Words data[UNITS][EACH];
#pragma unroll
        for (int u = 0; u < UNITS; ++u) {
            const u64 at = first + u * SPAN;
            if (RECEIVES && at < end) {
                load_unit(in, at, line[u]);
            }
            if (OWN && at < end) {
                load_data(local.own, at, mine.end, data[u]);
            }
        }
#pragma unroll
        for (int u = 0; u < UNITS; ++u) {
            const u64 at = first + u * SPAN;
            if (at >= end) {
                continue;
            }
            if constexpr (RECEIVES) {
                if (!receive(launch, waiter, in, at, line[u], patience)) {
                    return false;
                }
            }
#pragma unroll
            for (int nth = 0; nth < EACH; ++nth) {
                if constexpr (RECEIVES) {
                    const Words received = data_of(line[u][nth]);
                    data[u][nth] = OWN ? folded(received, data[u][nth], divisor) : received;
                }
                if constexpr (AVERAGE && !(RECEIVES && OWN)) {
                    if (divisor != 0) data[u][nth] = finished(data[u][nth], divisor);
                }
            }
            // The line that another rank waits for is written first.
            if constexpr (SENDS) {
                store_unit(out, at, data[u]);
            }
            if constexpr (DST) {
                store_data(local.dst, at, mine.end, data[u]);
            }
        }
    }
    const u64 rest = (len + ELEMENTS - 1) / ELEMENTS + waiter.part * threads() + thread(), all = launch.parts * threads();
    if constexpr (SENDS && !WIDE_LINES) {
        for (u64 at = rest; at < out.rewritten; at += all) {
            store_unit(out, at, {});
        }
    }
    if constexpr (RECEIVES && !WIDE_LINES) {
        for (u64 at = rest; at < in.rewritten; at += all) {
            Vector line[EACH];
            load_unit(in, at, line);
            if (!receive(launch, waiter, in, at, line, patience)) {
                return false;
            }
        }
    }
    patience.over(launch, waiter);
    return true;
}

} // namespace roundelay
