// The LL protocol: one store carries data and the signal of its arrival. A line has two words of 4 bytes of data below
// the flag of its step; a word arrives whole, so a reader that sees the flag sees the data, without a barrier or a
// fence. It costs twice the bytes, and no wait comes after them.
#pragma once
#include "base.cuh"
#include "moves.cuh"
#include "numbers.cuh"
#include "signals.cuh"

namespace roundelay {

// Bytes of data in a line of 16.
constexpr u64 LINE_DATA = 8;
// Lines that a thread waits for at once.
constexpr int LINES = 4;

// One end of a link at one step: the slot, aligned to a line, and the low bits of 1 + the steps before it.
struct Slot {
    u64 lines;
    u32 flag;
    u64 rewritten; // lines that all get the flag, whatever is sent; 0 in general: see `wraps`
};

// The addresses of this rank's first elements: those that are sent or folded in, and those that are written.
struct Local {
    u64 own;
    u64 dst;
};

// Whether flags are about to repeat. Then all lines of a slot are rewritten, so that none has an old flag, and waited
// for like data, because the slot is not free before.
ROUNDELAY_DEVICE bool wraps(u32 flag) { return flag >= 0u - (1u << 21); }

using LineData = Registers<LINE_DATA / sizeof(Register)>;

// The elements of a line; the last line may have fewer.
ROUNDELAY_DEVICE LineData load_elements(u64 address, u64 elements) {
    constexpr u64 ALL = LINE_DATA / sizeof(Element);
    if (elements >= ALL && address % LINE_DATA == 0) {
        return bits_as<LineData>(load<u64>(address));
    }
    u64 data = 0;
#pragma unroll
    for (u64 e = 0; e < ALL; ++e) {
        if (e < elements) {
            data |= u64(load_unit<Element>(address + e * sizeof(Element)).at[0]) << (e * sizeof(Element) * 8 % 64);
        }
    }
    return bits_as<LineData>(data);
}

ROUNDELAY_DEVICE void store_elements(u64 address, u64 elements, LineData line) {
    constexpr u64 ALL = LINE_DATA / sizeof(Element);
    const u64 data = bits_as<u64>(line);
    if (elements >= ALL && address % LINE_DATA == 0) {
        store<u64>(address, data);
        return;
    }
#pragma unroll
    for (u64 e = 0; e < ALL; ++e) {
        if (e < elements) {
            store_unit<Element>(address + e * sizeof(Element), {{Register(data >> (e * sizeof(Element) * 8 % 64))}});
        }
    }
}

ROUNDELAY_DEVICE void store_line(Slot slot, u64 at, u64 data) {
    const u64 flag = u64(slot.flag) << 32;
    store_words<SCOPE>(reinterpret_cast<Vector*>(slot.lines) + at, {{(data & 0xffffffff) | flag, (data >> 32) | flag}});
}

ROUNDELAY_DEVICE Vector load_line(Slot slot, u64 at) {
    return load_words<SCOPE>(reinterpret_cast<const Vector*>(slot.lines) + at);
}

ROUNDELAY_DEVICE u64 data_of(Vector line) { return (line.words[0] & 0xffffffff) | (line.words[1] << 32); }

// Loads a line again and again until all of it has arrived. False: the thread gave up.
ROUNDELAY_DEVICE bool receive(const Launch& launch, Waiter waiter, Slot slot, u64 at, Vector& line, Patience& patience) {
    while (u32(line.words[0] >> 32) != slot.flag || u32(line.words[1] >> 32) != slot.flag) {
        if (!patience.lasts(launch, waiter, waiter.expected - 1)) {
            return false;
        }
        line = load_line(slot, at);
    }
    return true;
}

// Performs this part of a pass of `len` elements: received from `in`, with `local.own` folded into it, divided by
// `divisor` unless that is 0 and rounded, to `local.dst` and on to `out`. False: this thread gave up.
template <bool RECEIVES, bool OWN, bool DST, bool SENDS>
ROUNDELAY_SHARED bool pass_lines(const Launch& launch, Waiter waiter, Slot in, Slot out, Local local, u64 len,
                                 i64 divisor) {
    constexpr u64 EACH = LINE_DATA / sizeof(Element);
    delay();
    const Portion mine = portion(len, launch.parts, waiter.part);
    // Parts begin at the start of a line, or at the end of all elements.
    const u64 begin = (mine.begin + EACH - 1) / EACH, end = (mine.end + EACH - 1) / EACH;
    const u64 warp = thread() / WARP, lane = thread() % WARP;
    Patience patience;
    for (u64 first = begin + warp * (WARP * LINES) + lane; first < end; first += u64(threads()) * LINES) {
        Vector line[LINES];
        LineData data[LINES];
#pragma unroll
        for (int u = 0; u < LINES; ++u) {
            const u64 at = first + u * WARP;
            if (RECEIVES && at < end) {
                line[u] = load_line(in, at);
            }
            if (OWN && at < end) {
                data[u] = load_elements(local.own + at * LINE_DATA, mine.end - at * EACH);
            }
        }
#pragma unroll
        for (int u = 0; u < LINES; ++u) {
            const u64 at = first + u * WARP;
            if (at >= end) {
                continue;
            }
            if constexpr (RECEIVES) {
                if (!receive(launch, waiter, in, at, line[u], patience)) {
                    return false;
                }
                const LineData received = bits_as<LineData>(data_of(line[u]));
#pragma unroll
                for (int r = 0; r < int(LINE_DATA / sizeof(Register)); ++r) {
                    data[u].at[r] = OWN ? fold_last(received.at[r], data[u].at[r], divisor) : received.at[r];
                }
            }
            if constexpr (AVERAGE && !(RECEIVES && OWN)) {
#pragma unroll
                for (int r = 0; r < int(LINE_DATA / sizeof(Register)); ++r) {
                    data[u].at[r] = divisor != 0 ? finish(data[u].at[r], divisor) : data[u].at[r];
                }
            }
            // The line that another rank waits for is written first.
            if constexpr (SENDS) {
                store_line(out, at, bits_as<u64>(data[u]));
            }
            if constexpr (DST) {
                store_elements(local.dst + at * LINE_DATA, mine.end - at * EACH, data[u]);
            }
        }
    }
    const u64 rest = (len + EACH - 1) / EACH + waiter.part * threads() + thread(), all = launch.parts * threads();
    if constexpr (SENDS) {
        for (u64 at = rest; at < out.rewritten; at += all) {
            store_line(out, at, 0);
        }
    }
    if constexpr (RECEIVES) {
        for (u64 at = rest; at < in.rewritten; at += all) {
            Vector line = load_line(in, at);
            if (!receive(launch, waiter, in, at, line, patience)) {
                return false;
            }
        }
    }
    patience.over(launch, waiter);
    return true;
}

} // namespace roundelay
