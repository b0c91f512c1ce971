//! The ways of the data of a fused schedule through shared memory: the ways differ in their time alone. All ways run one
//! schedule, so the bits of a result do not depend on the way.

pub(crate) mod choices;
pub(crate) mod known_ways;
pub(crate) mod trials;

use std::ops::RangeInclusive;

use crate::reduce::Stores;
use crate::sync::MODELLED;

/// The bytes of an input from which its readers have the system copy it, where no measurement says otherwise.
const LENT: RangeInclusive<usize> = 48 << 10..=12 << 20;
/// The bytes of an output from which stores bypass the caches, where no measurement says otherwise.
const STREAMING: usize = 4 << 20;
/// The bytes from which other ways than the usual one are worth a trial: for fewer bytes, waits take the time and not data.
const TRIED: usize = 2 << 10;
/// The bytes from which it is worth a trial that each rank makes a share, which takes one more wait.
pub(crate) const SHARED: usize = 8 << 10;
/// The bytes of an output from which stores past the caches are worth a trial.
const LARGE: usize = 256 << 10;

/// The calls of a turn.
const TURN: u64 = 4;

/// The bytes of tiles: a small tile stays in the first cache, and a large one has left the cache of the rank that wrote it
/// when another rank reads it.
const TILES: [usize; 6] = [8 << 10, 32 << 10, 128 << 10, 512 << 10, 1 << 20, 4 << 20];

/// The ranks that make the parts of a result that all ranks get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Makers {
    /// The rank that comes first to a part, or, without equal results for all ranks, the rank that gets the part.
    Any,
    /// Each rank makes an equal share for all ranks, in which it reads its own input where that lies.
    Share,
}

/// The passage of data from a rank to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// A rank stores the data in the arena.
    Stored,
    /// A rank stores the data in the arena, past the caches: a line that another core has read is quicker to write so,
    /// where the cores share no cache.
    PastCaches,
    /// Readers have the system copy inputs that allow it.
    Lent,
}

/// One way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) makers: Makers,
    /// The size of a tile, by its place in [`TILES`].
    tile: u8,
    /// The stores to outputs.
    pub(crate) stores: Stores,
    pub(crate) passage: Passage,
}

/// All ways but for their tiles. Ranks that each make a share lend no input.
const KINDS: [(Makers, Passage, Stores); 10] = [
    (Makers::Any, Passage::Stored, Stores::Cached),
    (Makers::Share, Passage::Stored, Stores::Cached),
    (Makers::Any, Passage::PastCaches, Stores::Cached),
    (Makers::Share, Passage::PastCaches, Stores::Cached),
    (Makers::Any, Passage::Lent, Stores::Cached),
    (Makers::Any, Passage::Stored, Stores::Streaming),
    (Makers::Share, Passage::Stored, Stores::Streaming),
    (Makers::Any, Passage::PastCaches, Stores::Streaming),
    (Makers::Share, Passage::PastCaches, Stores::Streaming),
    (Makers::Any, Passage::Lent, Stores::Streaming),
];

/// A number below [`Set::WAYS`] for each way.
pub(crate) type WayId = u8;

/// A set of ways: a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Set(pub(crate) u64);

/// The calls for which a way is chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The most bytes that a rank stages.
    pub(crate) bytes: usize,
    /// The bytes of the largest output.
    pub(crate) output: usize,
    /// Whether ranks can share the work on a result that all ranks get, of a call that is large enough for it.
    pub(crate) shares: bool,
}

impl Shape {
    pub(crate) const EMPTY: Self = Self { bytes: 0, output: 0, shares: false };

    /// Returns the smallest size of tiles that hold the whole call; the largest if none does.
    fn whole(self) -> u8 {
        let whole = TILES.iter().position(|tile| self.bytes <= *tile);
        whole.unwrap_or(TILES.len() - 1) as u8
    }
}

impl Way {
    /// The number of layouts.
    pub(crate) const LAYOUTS: u64 = 2 * TILES.len() as u64;
    /// The size of tiles where no measurement says otherwise.
    const USUAL: u8 = 4;

    /// Returns the way of calls that are not measured.
    pub(crate) fn usual(shape: Shape) -> Self {
        let lent = LENT.contains(&shape.bytes);
        Self {
            makers: Makers::Any,
            tile: Self::USUAL.min(shape.whole()),
            stores: if shape.output >= STREAMING { Stores::Streaming } else { Stores::Cached },
            passage: if lent { Passage::Lent } else { Passage::Stored },
        }
    }

    /// Returns the bytes of a tile.
    pub(crate) fn tile(self) -> usize {
        if MODELLED { 2 * super::memory::arena::LINE } else { TILES[self.tile as usize] }
    }

    pub(crate) fn id(self) -> WayId {
        let kind = (self.makers, self.passage, self.stores);
        let lent = (Makers::Any, self.passage, self.stores);
        let kind = KINDS.iter().position(|of| *of == kind || *of == lent && self.lends());
        kind.expect("all kinds are in the list") as WayId * TILES.len() as WayId + self.tile
    }

    /// Returns the way with a number below [`Set::WAYS`].
    pub(crate) fn of(id: WayId) -> Self {
        let (kind, tile) = (id / TILES.len() as WayId, id % TILES.len() as WayId);
        let (makers, passage, stores) = KINDS[kind as usize];
        Self { makers, tile, stores, passage }
    }

    pub(crate) fn lends(self) -> bool {
        self.passage == Passage::Lent
    }

    /// Returns the stores to memory that other ranks read.
    pub(crate) fn passing(self) -> Stores {
        match self.passage {
            Passage::PastCaches => Stores::Streaming,
            Passage::Stored | Passage::Lent => Stores::Cached,
        }
    }

    /// Returns the way with which each rank makes a share of the result.
    pub(crate) fn shared(self) -> Self {
        let passage = if self.lends() { Passage::Stored } else { self.passage };
        Self { makers: Makers::Share, passage, ..self }
    }

    /// Returns a number that is equal for ways whose ranks understand each other: they agree on tiles and makers.
    pub(crate) fn layout(self) -> u64 {
        let shares = u64::from(self.makers == Makers::Share);
        shares * TILES.len() as u64 + u64::from(self.tile)
    }

    /// Returns the way with another size of tiles, if that size makes a difference for the call.
    fn with_tile(self, tile: u8, shape: Shape) -> Option<Self> {
        (tile <= shape.whole()).then_some(Self { tile, ..self })
    }
}

impl Set {
    pub(crate) const WAYS: WayId = (TILES.len() * KINDS.len()) as WayId;

    fn of(ways: impl IntoIterator<Item = Way>) -> Self {
        Self(ways.into_iter().fold(0, |set, way| set | 1 << way.id()))
    }

    pub(crate) fn one(way: Way) -> Self {
        Self::of([way])
    }

    /// Returns the ways of the first calls of a shape: they differ in their tiles, in the passage of data, and in the
    /// ranks that make a result.
    pub(crate) fn coarse(shape: Shape) -> Self {
        let usual = Way::usual(shape);
        if shape.bytes < TRIED || MODELLED {
            return Self::one(usual);
        }
        // A small call may be a pipeline of small tiles; a large one may have larger tiles than usual.
        let other = if shape.bytes <= LARGE { 0 } else { usual.tile + 1 };
        let tiles = [Some(usual), usual.with_tile(other, shape)].into_iter().flatten();
        let passages = [Passage::Stored, Passage::PastCaches];
        let ways = tiles.flat_map(|way| passages.map(|passage| Way { passage, ..way }));
        let ways = ways.flat_map(|way| [Some(way), shape.shares.then(|| way.shared())]);
        Self::of(ways.flatten().chain([usual]))
    }

    /// Returns the ways that differ from `best` in one respect, and `best`.
    pub(crate) fn near(best: Way, shape: Shape, can_lend: bool) -> Self {
        let tiles = [best.tile.wrapping_sub(1), best.tile + 1];
        let tiles = tiles.map(|tile| best.with_tile(tile, shape));
        let other = match best.stores {
            Stores::Streaming => Stores::Cached,
            Stores::Cached => Stores::Streaming,
        };
        let stores = (shape.output >= LARGE).then_some(Way { stores: other, ..best });
        let lent = Way { makers: Makers::Any, passage: Passage::Lent, ..best };
        Self::of(
            tiles.into_iter().chain([stores, can_lend.then_some(lent)]).flatten().chain([best]),
        )
    }

    /// Returns the ways in the order of their numbers.
    pub(crate) fn ways(self) -> impl Iterator<Item = Way> {
        (0..Self::WAYS).filter(move |id| self.0 >> id & 1 == 1).map(Way::of)
    }

    /// Returns the only way of the set, if the set has one way.
    pub(crate) fn only(self) -> Option<Way> {
        let mut ways = self.ways();
        ways.next().filter(|_| ways.next().is_none())
    }

    /// Returns the way of the call with this number: the ways take turns of a few calls, as a call also takes the time that
    /// the call before it has left to do, in an order that no period of calls follows.
    pub(crate) fn turn(self, number: u64) -> Option<Way> {
        let count = self.ways().count() as u128;
        let mixed = (number / TURN).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let nth = ((u128::from(mixed) * count) >> 64) as usize;
        self.ways().nth(nth)
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kib = TILES[self.tile as usize] >> 10;
        match kib {
            ..1024 => write!(f, "tiles of {kib} KiB")?,
            _ => write!(f, "tiles of {} MiB", kib >> 10)?,
        }
        f.write_str(match self.makers {
            Makers::Any => "",
            Makers::Share => ", a share of the result by each rank",
        })?;
        f.write_str(match self.passage {
            Passage::Stored => ", inputs staged in the caches",
            Passage::PastCaches => ", inputs staged past the caches",
            Passage::Lent => ", inputs copied by the system",
        })?;
        f.write_str(match self.stores {
            Stores::Streaming => ", outputs past the caches",
            Stores::Cached => "",
        })
    }
}
