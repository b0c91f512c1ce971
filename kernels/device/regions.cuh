// Regions: rational intervals of a buffer. A boundary p/q lies at element floor(p * count / q); a split refines the
// fraction and rounds nothing, so every rank cuts at the same element.
#pragma once
#include "arith.cuh"
#include "lists.cuh"

namespace roundelay {

// The largest denominator that leaves room for the number of ranks.
constexpr u64 COARSE = u64(1) << 31;

// The unit in which boundaries are counted: 1/den of the count.
struct Grain {
    u64 den;
    u64 whole; // count / den
    u64 rest;  // count % den

    ROUNDELAY_DEVICE u64 element(u64 number) const { return number * whole + mul_div(number, rest, den); }

    // An n-th of this grain.
    ROUNDELAY_DEVICE Grain finer(u64 n) const {
        const u64 part = quotient(whole, n);
        return {den * n, part, (whole - part * n) * den + rest};
    }

    ROUNDELAY_DEVICE u64 count() const { return whole * den + rest; }
};

ROUNDELAY_DEVICE Grain grain_of(u64 den, u64 count) {
    const u64 whole = quotient(count, den);
    return {den, whole, count - whole * den};
}

// The divisor of the terms before they are multiplied by n: most terms are low enough, and need no loop of divisions.
// The host refused terms that are too large even in lowest terms.
ROUNDELAY_SHARED u64 excess(u64 den, u64 lo, u64 hi, u64 n) {
    if (den <= COARSE && n <= COARSE && den * n <= COARSE) return 1;
    return gcd(gcd(den, hi), lo);
}

struct Call;
class Pieces;

struct Region {
    u64 lo, hi; // in grains
    Grain grain;
    i64 origin; // element where boundary 0 lies; for a floating slot, its first element
    i32 buffer;
    i32 slot;
    bool floating;    // a slot whose shape is that of what it holds
    const Call* call; // in a call that gives each rank a block of its own; the interval is this rank's then

    ROUNDELAY_DEVICE i64 begin() const { return origin + i64(grain.element(lo)); }

    ROUNDELAY_DEVICE u64 length() const { return grain.element(hi) - grain.element(lo); }

    // The region over the terms' common divisor.
    ROUNDELAY_DEVICE Region over(u64 common) const {
        Region region = between(quotient(lo, common), quotient(hi, common));
        region.grain = grain_of(quotient(grain.den, common), grain.count());
        return region;
    }

    ROUNDELAY_DEVICE Region lowest() const { return over(gcd(gcd(grain.den, hi), lo)); }

    // The region with terms low enough to be multiplied by n. The code has no branch, which would cost registers.
    ROUNDELAY_DEVICE Region ready_for(u64 n) const { return over(excess(grain.den, lo, hi, n)); }

    // The region in n-ths of its grain.
    ROUNDELAY_DEVICE Region finer(u64 n) const {
        Region region = between(lo * n, hi * n);
        region.grain = grain.finer(n);
        return region;
    }

    ROUNDELAY_DEVICE Region between(u64 from, u64 to) const {
        Region region = *this;
        region.lo = from;
        region.hi = to;
        return region;
    }

    ROUNDELAY_DEVICE Pieces split(i64 n) const;
    ROUNDELAY_DEVICE Pieces split(const List& weights) const;

    // The slot in the shape of the data that it meets.
    ROUNDELAY_DEVICE Region shaped_like(const Region& shape) const {
        Region region = between(shape.lo, shape.hi);
        region.grain = shape.grain;
        region.origin = origin - i64(shape.grain.element(shape.lo));
        region.floating = false;
        return region;
    }

    // The region moved by `by` times the width of `block`.
    ROUNDELAY_DEVICE Region moved(i64 by, const Region& block) const {
        u64 width = block.hi - block.lo, den = block.grain.den;
        Region fine = *this;
        if (grain.den > COARSE || remainder(grain.den, den) != 0) {
            const u64 common = gcd(width, den);
            width = quotient(width, common);
            den = quotient(den, common);
            fine = lowest();
            fine = fine.finer(quotient(den, gcd(den, fine.grain.den)));
        }
        // Modulo 2^64: `by` may be negative.
        const u64 distance = u64(by) * width * quotient(fine.grain.den, den);
        return fine.between(fine.lo + distance, fine.hi + distance);
    }
};

ROUNDELAY_DEVICE bool same_width(const Region& a, const Region& b) {
    return same_product(a.hi - a.lo, b.grain.den, b.hi - b.lo, a.grain.den);
}

ROUNDELAY_DEVICE bool same_region(const Region& a, const Region& b) {
    return a.buffer == b.buffer && a.slot == b.slot && a.floating == b.floating && a.call == b.call &&
           same_product(a.lo, b.grain.den, b.lo, a.grain.den) && same_product(a.hi, b.grain.den, b.hi, a.grain.den);
}

// The pieces of a region, or the slots of a scratch declaration.
class Pieces {
    enum class Cut { Even, Weighted, Slots };

    Region whole; // in the grain of the pieces; for slots, slot 0
    u64 width;    // of an even piece, or of weight 1
    i64 count;
    Cut cut;
    i64 stride; // elements from slot to slot
    List weights;

    ROUNDELAY_DEVICE u64 boundary(i64 index) const {
        if (cut == Cut::Even) return whole.lo + width * u64(index);
        u64 before = 0;
        for (i64 i = 0; i < min(index, count); ++i) before += u64(weights[i]);
        return whole.lo + width * before;
    }

    ROUNDELAY_DEVICE Pieces(const Region& whole, u64 width, i64 count, Cut cut, i64 stride, const List& weights)
        : whole(whole), width(width), count(count), cut(cut), stride(stride), weights(weights) {}

  public:
    ROUNDELAY_DEVICE static Pieces even(const Region& region, i64 n) {
        const i64 count = max(n, 1);
        const Region ready = region.ready_for(u64(count));
        return {ready.finer(u64(count)), ready.hi - ready.lo, count, Cut::Even, 0, List()};
    }

    ROUNDELAY_DEVICE static Pieces weighted(const Region& region, const List& weights) {
        u64 total = 0;
        for (const i64 weight : weights) total += u64(weight);
        if (total == 0) return even(region, len(weights));
        const Region ready = region.ready_for(total);
        return {ready.finer(total), ready.hi - ready.lo, len(weights), Cut::Weighted, 0, weights};
    }

    ROUNDELAY_DEVICE static Pieces slots(const Region& first, i64 count, i64 stride) {
        return {first, 0, count, Cut::Slots, stride, List()};
    }

    ROUNDELAY_DEVICE Region operator[](i64 index) const {
        if (cut != Cut::Slots) return range(index, index + 1);
        Region region = whole;
        region.slot = i32(index);
        region.origin += index * stride;
        return region;
    }

    // Pieces lo..hi as one region.
    ROUNDELAY_DEVICE Region range(i64 lo, i64 hi) const { return whole.between(boundary(lo), boundary(hi)); }

    friend ROUNDELAY_DEVICE i64 len(const Pieces& pieces) { return pieces.count; }
};

ROUNDELAY_DEVICE Pieces Region::split(i64 n) const { return Pieces::even(*this, n); }

ROUNDELAY_DEVICE Pieces Region::split(const List& weights) const { return Pieces::weighted(*this, weights); }

} // namespace roundelay
