/// A buffer of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Buffer {
    /// The input.
    Input,
    /// The output.
    Output,
    /// The scratch buffer with a number.
    Scratch(usize),
}

/// A kind of signal from a rank to a rank, or between two streams of a rank. Each pair of ranks has a counter for
/// each kind in each lane, and each stream of a rank has one of `Fork` and one of `Join`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    /// The rank's memory may be accessed.
    Ack,
    /// Data is there.
    Data,
    /// A slot of a fifo is free.
    Head,
    /// A slot of a fifo is full.
    Tail,
    /// A stream may go on. In place of the peer is the number of that stream.
    Fork,
    /// A stream has ended its work. In place of the peer is the number of that stream.
    Join,
}

/// A part of a buffer of a rank, in equal pieces of a unit, which is what a collective's count is the length of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The rank.
    pub rank: i64,
    /// The buffer.
    pub buffer: Buffer,
    /// The first piece.
    pub lo: i64,
    /// The number of pieces.
    pub width: i64,
    /// The slot, in scratch.
    pub slot: i64,
    /// The piece that the slot begins with.
    pub base: i64,
}

impl Place {
    /// Returns the elements of the place in its buffer, or in its slot, where a unit has `count` elements in
    /// `pieces` pieces.
    pub fn elements(&self, count: usize, pieces: i64) -> std::ops::Range<usize> {
        let end = |piece: i64| (piece as u128 * count as u128 / pieces as u128) as usize;
        let begin = end(self.base);
        end(self.lo) - begin..end(self.lo + self.width) - begin
    }
}

/// A stream of statements of one rank: the moves, the signals and the further streams that it starts.
pub trait Lane: Sized {
    /// Returns the number of the rank.
    fn me(&self) -> i64;

    /// Adds one to the counter of a signal to a peer, after all earlier moves of the stream.
    fn post(&self, signal: Signal, peer: i64);

    /// Waits for one more signal from a peer, before all later moves of the stream.
    fn wait(&self, signal: Signal, peer: i64);

    /// Returns the same stream for signals in the lane with a number, where streams were found in a schedule.
    #[must_use]
    fn in_lane(&self, lane: i64) -> Self;

    /// Combines the elements of all sources, from the first to the last, and writes them to all destinations.
    fn fold(&self, srcs: &[Place], dsts: &[Place]);

    /// Runs the body for each number, each on a stream of its own, and returns when all of them have ended. The
    /// signals of a stream have a lane of their own, which the streams of other ranks with the same numbers share:
    /// those of the streams around, and the stream's own.
    fn parallel(&self, numbers: std::ops::Range<i64>, body: impl Fn(&Self, i64) + Sync);

    /// Copies elements.
    fn copy(&self, from: Place, to: Place) {
        self.fold(&[from], &[to]);
    }

    /// Combines elements into those of a place.
    fn reduce(&self, from: Place, into: Place) {
        self.fold(&[into, from], &[into]);
    }

    /// Returns a place of the rank: its first piece and its number of pieces, its slot and the slot's first piece.
    fn mine<const N: usize>(&self, buffer: Buffer, piece: [i64; N]) -> Place {
        self.of(self.me(), buffer, piece)
    }

    /// Returns a place of a rank.
    fn of<const N: usize>(&self, rank: i64, buffer: Buffer, piece: [i64; N]) -> Place {
        let number = |at: usize| piece.get(at).copied().unwrap_or(0);
        let [lo, width, slot, base] = [number(0), number(1), number(2), number(3)];
        Place { rank, buffer, lo, width, slot, base }
    }
}

/// Returns the logarithm of a number to base 2, rounded down.
pub fn log2(x: i64) -> i64 {
    x.ilog2().into()
}

/// Returns the logarithm of a number to base 2, rounded up.
pub fn ceil_log2(x: i64) -> i64 {
    (64 - (x - 1).leading_zeros()).into()
}

/// Returns a power of two.
pub fn pow2(exponent: i64) -> i64 {
    1 << exponent
}

/// Returns the smaller number.
pub fn min(a: i64, b: i64) -> i64 {
    a.min(b)
}

/// Returns the larger number.
pub fn max(a: i64, b: i64) -> i64 {
    a.max(b)
}

/// Returns the magnitude of a number.
pub fn abs(x: i64) -> i64 {
    x.abs()
}

/// Returns the number of one bits.
pub fn popcount(x: i64) -> i64 {
    x.count_ones().into()
}

/// Returns the number of zero bits below the lowest one bit.
pub fn trailing_zeros(x: i64) -> i64 {
    x.trailing_zeros().into()
}

/// Returns the lowest `bits` bits in reverse order.
pub fn bit_reverse(x: i64, bits: i64) -> i64 {
    (0..bits).map(|bit| (x >> bit & 1) << (bits - 1 - bit)).sum()
}

/// Whether a number is a power of two.
pub fn is_power_of_two(x: i64) -> bool {
    x > 0 && x & (x - 1) == 0
}
