//! The ways of the data of a fused schedule through shared memory: the ways differ in their time alone. All ways run one
//! schedule, so the bits of a result do not depend on the way.

use std::ops::RangeInclusive;

use super::arena::SLOT;
use crate::reduce::Stores;

/// The bytes of an input from which its readers have the system copy it, where no measurement says otherwise.
const LENT: RangeInclusive<usize> = 48 << 10..=12 << 20;
/// The bytes of an output from which stores bypass the caches, where no measurement says otherwise.
const STREAMING: usize = 4 << 20;
/// The bytes from which other ways than the first are worth a trial: for fewer bytes, waits take the time and not data.
const TRIED: usize = 8 << 10;

/// The sizes of tiles: powers of two from [`LEAST`](Way::LEAST) bytes.
const SIZES: u8 = 7;

/// The ranks that make the parts of a result that all ranks get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Makers {
    /// The rank that comes first to a part, or, without equal results for all ranks, the rank that gets the part.
    Any,
    /// Each rank makes an equal share for all ranks, in which it reads its own input where that lies.
    Share,
}

/// One way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) makers: Makers,
    /// The binary logarithm of the bytes of a tile.
    tile: u8,
    pub(super) stores: Stores,
    /// Whether readers have the system copy inputs that allow it.
    pub(super) lends: bool,
}

/// A number below [`Set::WAYS`] for each way.
pub(super) type WayId = u8;

/// A set of ways: a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Set(pub(super) u64);

/// The call for which a way is chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The most bytes that a rank stages.
    pub(super) bytes: usize,
    /// The bytes of the largest output.
    pub(super) output: usize,
    /// Whether ranks can share the work on a result that all ranks get.
    pub(super) shares: bool,
}

impl Shape {
    pub(super) const EMPTY: Self = Self { bytes: 0, output: 0, shares: false };
}

impl Way {
    /// The number of layouts.
    pub(super) const LAYOUTS: u8 = 16;
    const LEAST: u8 = 16;
    /// The size of tiles where no measurement says otherwise.
    const USUAL: u8 = 20;

    /// Returns the way of calls that are not measured.
    pub(super) fn first(shape: Shape) -> Self {
        Self {
            makers: Makers::Any,
            tile: Self::USUAL,
            stores: if shape.output >= STREAMING { Stores::Streaming } else { Stores::Cached },
            lends: LENT.contains(&shape.bytes),
        }
    }

    /// Returns the bytes of a tile.
    pub(super) fn tile(self) -> usize {
        if cfg!(all(test, loom)) { 2 * super::arena::LINE } else { 1 << self.tile }
    }

    pub(super) fn id(self) -> WayId {
        let flag = |set, bit: u8| u8::from(set) << bit;
        (self.tile - Self::LEAST)
            | flag(self.makers == Makers::Share, 3)
            | flag(self.stores == Stores::Streaming, 4)
            | flag(self.lends, 5)
    }

    /// Returns the way with a number below [`Set::WAYS`].
    pub(super) fn of(id: WayId) -> Self {
        let flag = |bit: u8| id >> bit & 1 == 1;
        Self {
            makers: if flag(3) { Makers::Share } else { Makers::Any },
            tile: (id & 7).min(SIZES - 1) + Self::LEAST,
            stores: if flag(4) { Stores::Streaming } else { Stores::Cached },
            lends: flag(5),
        }
    }

    /// Returns the way with which each rank makes a share of the result.
    pub(super) fn shared(self) -> Self {
        Self { makers: Makers::Share, ..self }
    }

    /// Returns a number that is equal for ways whose ranks understand each other: they agree on tiles and makers.
    pub(super) fn layout(self) -> u64 {
        u64::from(self.id() & (Self::LAYOUTS - 1))
    }

    fn with_tile(self, tile: u8, shape: Shape) -> Option<Self> {
        let sizes = Self::LEAST..Self::LEAST + SIZES;
        // A tile that holds the whole call is one size only.
        let new = sizes.contains(&tile) && 1 << tile < 2 * shape.bytes.next_power_of_two();
        (new && 1 << tile <= SLOT).then_some(Self { tile, ..self })
    }

    /// Returns the size of tiles of at most `tile` bytes that makes a difference for the call.
    pub(super) fn within(self, shape: Shape) -> Self {
        let whole = shape.bytes.next_power_of_two().ilog2() as u8;
        Self { tile: self.tile.min(whole.max(Self::LEAST)), ..self }
    }
}

impl Set {
    pub(super) const WAYS: WayId = 64;

    fn of(ways: impl IntoIterator<Item = Way>) -> Self {
        Self(ways.into_iter().fold(0, |set, way| set | 1 << way.id()))
    }

    pub(super) fn one(way: Way) -> Self {
        Self::of([way])
    }

    /// Returns the ways of the first calls of a shape, which differ in their tiles and in the ranks that make a result.
    pub(super) fn coarse(shape: Shape) -> Self {
        let first = Way::first(shape).within(shape);
        if shape.bytes < TRIED || cfg!(all(test, loom)) {
            return Self::one(first);
        }
        let tiles = [first.tile, 18, 20, 22].into_iter();
        let tiles = tiles.filter_map(|tile| first.with_tile(tile, shape)).chain([first]);
        let makers = if shape.shares { &[Makers::Any, Makers::Share][..] } else { &[Makers::Any] };
        Self::of(
            tiles.flat_map(|way| makers.iter().map(move |makers| Way { makers: *makers, ..way })),
        )
    }

    /// Returns the ways that differ from `best` in one respect, and `best`.
    pub(super) fn near(best: Way, shape: Shape, can_lend: bool) -> Self {
        let tiles = [best.tile - 1, best.tile + 1].map(|tile| best.with_tile(tile, shape));
        let other = match best.stores {
            Stores::Streaming => Stores::Cached,
            Stores::Cached => Stores::Streaming,
        };
        let stores = (shape.output >= TRIED << 4).then_some(Way { stores: other, ..best });
        let lent = can_lend && shape.bytes >= TRIED && best.makers == Makers::Any;
        let lends = lent.then_some(Way { lends: !best.lends, ..best });
        Self::of(tiles.into_iter().chain([stores, lends]).flatten().chain([best]))
    }

    /// Returns the ways in the order of their numbers.
    pub(super) fn ways(self) -> impl Iterator<Item = Way> {
        (0..Self::WAYS).filter(move |id| self.0 >> id & 1 == 1).map(Way::of)
    }

    /// Returns the only way of the set, if the set has one way.
    pub(super) fn only(self) -> Option<Way> {
        (self.0.count_ones() == 1).then(|| Way::of(self.0.trailing_zeros() as WayId))
    }

    /// Returns the way of the call with this number: the ways take turns in an order that no period of calls follows.
    pub(super) fn turn(self, number: u64) -> Option<Way> {
        let count = u64::from(self.0.count_ones());
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let nth = (u128::from(mixed) * u128::from(count) >> 64) as usize;
        self.ways().nth(nth)
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = 1_u32 << (self.tile - 10);
        if bytes >= 1024 {
            write!(f, "tiles of {} MiB", bytes >> 10)?
        } else {
            write!(f, "tiles of {bytes} KiB")?
        }
        f.write_str(match self.makers {
            Makers::Any => "",
            Makers::Share => ", a share of the result by each rank",
        })?;
        f.write_str(if self.lends { ", inputs copied by the system" } else { ", staged inputs" })?;
        f.write_str(match self.stores {
            Stores::Streaming => ", stores past the caches",
            Stores::Cached => "",
        })
    }
}
