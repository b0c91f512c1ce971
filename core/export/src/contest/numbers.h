// Elements before the boundary num/den of a unit: floor(num * count / den), with no product beyond 64 bits.
inline u64 ElementAt(u64 num, u64 den, u64 count) { return count / den * num + count % den * num / den; }

// A piece of a buffer. Its ends are numbers of equal pieces of a unit, as many as the class says; in a scratch
// buffer also which slot, and where the data began that the slot holds.
struct Piece {
    constexpr Piece(u64 low = 0, u64 high = 0, u64 inSlot = 0, u64 slotBase = 0)
        : lo(low), hi(high), slot(inSlot), base(slotBase) {}
    u64 lo;
    u64 hi;
    u64 slot;
    u64 base;
};

using i64 = int64_t;

// The piece that begins so many equal pieces into a unit, and is that many long.
inline Piece At(i64 low, i64 width, i64 slot = 0, i64 base = 0) {
    return Piece(u64(low), u64(low + width), u64(slot), u64(base));
}

// Quotient and remainder of the page: the remainder is never below zero. And its functions of numbers.
inline i64 mod(i64 a, i64 b) { return a % b + (a % b < 0 ? (b < 0 ? -b : b) : 0); }
inline i64 quo(i64 a, i64 b) { return a / b - (a % b < 0 ? (b < 0 ? -1 : 1) : 0); }
inline i64 log2(i64 a) { return a < 2 ? 0 : 1 + log2(a / 2); }
inline i64 ceil_log2(i64 a) { return a < 2 ? 0 : 1 + log2(a - 1); }
inline i64 pow2(i64 a) { return i64(1) << a; }
inline i64 min(i64 a, i64 b) { return a < b ? a : b; }
inline i64 max(i64 a, i64 b) { return a < b ? b : a; }
inline i64 abs(i64 a) { return a < 0 ? -a : a; }
inline i64 popcount(i64 a) { return a == 0 ? 0 : a % 2 + popcount(a / 2); }
inline i64 trailing_zeros(i64 a) { return a % 2 != 0 ? 0 : 1 + trailing_zeros(a / 2); }
inline i64 bit_reverse(i64 a, i64 bits) {
    return bits == 0 ? 0 : a % 2 * pow2(bits - 1) + bit_reverse(a / 2, bits - 1);
}
inline bool is_power_of_two(i64 a) { return a > 0 && (a & (a - 1)) == 0; }

// A scratch buffer: where it begins, and bytes of a slot. Neither depends on a count, so what one run leaves in it is
// never in the way of the next.
struct Slots {
    u64 offset;
    u64 bytes;
};

constexpr u32 INPUT = 0;
constexpr u32 OUTPUT = 1;
constexpr u32 SCRATCH = 2; // and those that follow
constexpr u64 TILE = 1 << 20;
