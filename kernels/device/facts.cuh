// Facts: words that the host computed about a schedule, and the functions that look them up.
#pragma once
#include "words.cuh"

namespace roundelay {

// The hash of a row of words.
struct Hash {
    u64 value = HASH_START;

    ROUNDELAY_DEVICE void word(i64 next) {
        value = (value ^ u64(next)) * HASH_FACTOR;
        value ^= value >> HASH_SHIFT;
    }

    ROUNDELAY_DEVICE i64 positive() const { return i64(value << 1 >> 1); }
};

// Adds a part of a key; lists and topologies have functions with words of their own.
ROUNDELAY_DEVICE void spell(Hash& hash, i64 part) { hash.word(part); }

// Returns the value of a key, by its hash: no two keys of a table share one. 0 if the table lacks the key.
ROUNDELAY_SHARED i64 look_up(const i64* words, u64 hash) {
    const i64* const table = words + constant(words + i64(Header::TableAt));
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
