// Facts: words that the host found out about a schedule, and how they are looked up.
#pragma once
#include "base.cuh"

namespace roundelay {

// Words of the header, by number.
enum class Header {
    Ranks = 1,
    Groups = 3, // rank, stream, ops, first move or first op of each (rank, stream)
    Lanes = 4,
    Scratch = 7, // offset, slot length, index of what slot 0 holds, for each declaration
    Finish = 8,  // a bit for each move: whether it completes an average
    Table = 9,
    TableMask = 10,
    Params = 12,
    InputUnits = 13,
    OutputUnits = 14,
    Streams = 15,
    HeldSlots = 16,
    Links = 17,
    Ops = 20, // of the table form
    Operands = 21,
    Divisor = 22, // of an average
    WorkWords = 24,
};

// What a key begins with.
enum class Key { Lane = 1, Child = 2, Scratch = 3, Link = 4, EndFifo = 5, Object = 6, Relays = 7 };

// The hash of a row of words.
struct Hash {
    u64 value = 0xcbf29ce484222325;

    ROUNDELAY_DEVICE void word(i64 next) {
        value = (value ^ u64(next)) * 0x100000001b3;
        value ^= value >> 29;
    }

    ROUNDELAY_DEVICE i64 positive() const { return i64(value << 1 >> 1); }
};

// Parts of a key; lists and topologies have words of their own.
ROUNDELAY_DEVICE void spell(Hash& hash, i64 part) { hash.word(part); }

// The value of a key, by its hash: no two keys of a table share one. 0 if nobody wrote it down.
ROUNDELAY_SHARED i64 look_up(const i64* words, u64 hash) {
    const i64* const table = words + constant(words + i64(Header::Table));
    const u64 mask = u64(constant(words + i64(Header::TableMask)));
    hash = hash == 0 ? 1 : hash;
    for (u64 slot = hash & mask;; slot = (slot + 1) & mask) {
        const u64 there = u64(constant(table + 2 * slot));
        if (there == hash) return constant(table + 2 * slot + 1);
        if (there == 0) return 0;
    }
}

struct Facts {
    const i64* words;

    ROUNDELAY_DEVICE i64 operator[](i64 index) const { return constant(words + index); }

    ROUNDELAY_DEVICE i64 operator[](Header word) const { return constant(words + i64(word)); }

    template <class... Parts> ROUNDELAY_DEVICE i64 find(Key kind, const Parts&... parts) const {
        Hash hash;
        spell(hash, i64(kind));
        (spell(hash, parts), ...);
        return look_up(words, hash.value);
    }
};

} // namespace roundelay
