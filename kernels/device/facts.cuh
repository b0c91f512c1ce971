// Facts: words that the host found out about a schedule, and how they are looked up.
#pragma once
#include "base.cuh"

namespace roundelay {

// Words of the header, by number.
enum class Header {
    Ranks = 1,
    Groups = 3,      // rank, stream, ops, first move or first op of each (rank, stream)
    Lanes = 4,
    Scratch = 7,     // offset, slot length, index of what slot 0 holds, for each declaration
    Finish = 8,      // a bit for each move: whether it completes an average
    Table = 9,
    TableMask = 10,
    Params = 12,
    InputUnits = 13,
    OutputUnits = 14,
    Streams = 15,
    HeldSlots = 16,
    Links = 17,
    Ops = 20,        // of the table form
    Operands = 21,
    Divisor = 22,    // of an average
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

// Compares a row of words with those of an entry.
struct Comparison {
    const i64* at;
    bool equal = true;

    ROUNDELAY_DEVICE void word(i64 next) { equal = equal && constant(at++) == next; }
};

// Numbers the words of a key: most parts are one word, lists and topologies say themselves which are theirs.
struct Count {
    i64 words = 0;

    ROUNDELAY_DEVICE void word(i64) { ++words; }
};

template <class Visitor> ROUNDELAY_DEVICE void spell(Visitor& visitor, i64 part) { visitor.word(part); }

class Facts {
    const i64* words;

  public:
    ROUNDELAY_DEVICE explicit Facts(const i64* facts) : words(facts) {}

    ROUNDELAY_DEVICE i64 operator[](i64 index) const { return constant(words + index); }

    ROUNDELAY_DEVICE i64 operator[](Header word) const { return (*this)[i64(word)]; }

    ROUNDELAY_DEVICE const i64* at(i64 index) const { return words + index; }

    // The value of a key, or `otherwise` if nobody wrote it down.
    template <class... Parts> ROUNDELAY_DEVICE i64 find(i64 otherwise, Key kind, const Parts&... parts) const {
        Hash hash;
        Count count;
        spell(hash, i64(kind));
        spell(count, i64(kind));
        (spell(hash, parts), ...);
        (spell(count, parts), ...);
        const i64 table = (*this)[Header::Table];
        const u64 mask = u64((*this)[Header::TableMask]);
        for (u64 slot = hash.value & mask;; slot = (slot + 1) & mask) {
            const i64 entry = (*this)[table + i64(slot)];
            if (entry == 0) return otherwise;
            if ((*this)[entry] != count.words) continue;
            Comparison same{words + entry + 1};
            spell(same, i64(kind));
            (spell(same, parts), ...);
            if (same.equal) return constant(same.at);
        }
    }
};

} // namespace roundelay
