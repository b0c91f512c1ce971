// Lists of integers, and the ranks that a `within` block sees under numbers of their own.
#pragma once
#include "facts.cuh"

namespace roundelay {

// The ranks of a `within` block in the order of their numbers. Outside all blocks these are all ranks, and numbers are
// ranks.
struct Members {
    const u64* ranks;
    i32 count;
    i32 me; // this rank's number
};

ROUNDELAY_DEVICE i32 rank_of(const Members* members, i64 number) {
    if (members == nullptr) return i32(number);
    return u64(number) < u64(members->count) ? i32(members->ranks[number]) : 0;
}

ROUNDELAY_SHARED i32 number_among(const Members& members, i32 rank) {
    for (i32 number = 0; number < members.count; ++number) {
        if (i32(members.ranks[number]) == rank) return number;
    }
    return 0;
}

ROUNDELAY_DEVICE i32 number_of(const Members* members, i32 rank) {
    return members == nullptr ? rank : number_among(*members, rank);
}

// Integers: those of a literal, or those of an object, which may be numbers among other ranks than the program sees.
class List {
    const i64* words = nullptr;
    i64 count = 0;
    bool reversed = false;
    const Members* made = nullptr; // those whose numbers the words are
    const Members* seen = nullptr; // those whose numbers are asked for

  public:
    ROUNDELAY_DEVICE List() {}

    ROUNDELAY_DEVICE List(const i64* first, i64 many) : words(first), count(many) {}

    ROUNDELAY_DEVICE List(const i64* first, i64 many, const Members* made, const Members* seen)
        : words(first), count(many), made(made), seen(seen) {}

    ROUNDELAY_DEVICE i64 operator[](i64 index) const {
        if (u64(index) >= u64(count)) return 0;
        const i64 number = words[reversed ? count - 1 - index : index];
        return made == seen ? number : number_of(seen, rank_of(made, number));
    }

    struct Iterator {
        const List* list;
        i64 index;

        ROUNDELAY_DEVICE i64 operator*() const { return (*list)[index]; }
        ROUNDELAY_DEVICE void operator++() { ++index; }
        ROUNDELAY_DEVICE bool operator!=(const Iterator& other) const { return index != other.index; }
    };

    ROUNDELAY_DEVICE Iterator begin() const { return {this, 0}; }
    ROUNDELAY_DEVICE Iterator end() const { return {this, count}; }

    friend ROUNDELAY_DEVICE i64 len(const List& list) { return list.count; }

    friend ROUNDELAY_DEVICE List rev(List list) {
        list.reversed = !list.reversed;
        return list;
    }
};

ROUNDELAY_DEVICE void spell(Hash& hash, const List& list) {
    hash.word(len(list));
    for (const i64 value : list) hash.word(value);
}

} // namespace roundelay
