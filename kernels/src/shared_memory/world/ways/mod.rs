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
const TILES: [usize; 5] = [8 << 10, 32 << 10, 128 << 10, 1 << 20, 4 << 20];

/// The ranks that make the parts of a result that all ranks get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Makers {
    /// The rank that comes first to a part, or, without equal results for all ranks, the rank that gets the part.
    Any,
    /// Each rank makes an equal share for all ranks, in which it reads its own input where that lies.
    Share,
    /// The same, with each share stored over the parts of the staged inputs of which it is made: lines that a core has
    /// just read from another one are quicker to write than lines that others have read, and half as many pass.
    ShareInPlace,
}

/// The passage of data from a rank to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// A rank stores the data in the arena.
    Stored,
    /// A rank stores the data in the arena, past the caches: a line that another core has read is quicker to write so,
    /// where the cores share no cache.
    PastCaches,
    /// Readers have the system copy inputs that allow it, and where each rank makes a share, the results too.
    Lent,
    /// A rank that makes a share stores its input in the arena, and has the system copy the results of others.
    ResultsLent,
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

/// All ways but for their tiles. Where each rank makes a share of lent buffers, the system stores what a rank copies.
const KINDS: [(Makers, Passage, Stores); 12] = [
    (Makers::Any, Passage::Stored, Stores::Cached),
    (Makers::Share, Passage::Stored, Stores::Cached),
    (Makers::Any, Passage::PastCaches, Stores::Cached),
    (Makers::Share, Passage::PastCaches, Stores::Cached),
    (Makers::Any, Passage::Lent, Stores::Cached),
    (Makers::Any, Passage::Stored, Stores::Streaming),
    (Makers::Share, Passage::Stored, Stores::Streaming),
    (Makers::Any, Passage::Lent, Stores::Streaming),
    (Makers::Share, Passage::Lent, Stores::Cached),
    (Makers::Share, Passage::ResultsLent, Stores::Cached),
    (Makers::ShareInPlace, Passage::Stored, Stores::Cached),
    (Makers::ShareInPlace, Passage::Stored, Stores::Streaming),
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
    /// Whether each rank makes its own result where the makers are any, and can read lent inputs.
    pub(crate) pulls: bool,
    /// Whether every rank waits for every other one.
    pub(crate) all_wait: bool,
}

impl Shape {
    pub(crate) const EMPTY: Self =
        Self { bytes: 0, output: 0, shares: false, pulls: true, all_wait: true };

    /// Whether the ways of calls differ enough to be compared.
    pub(crate) fn is_measured(self) -> bool {
        self.bytes >= TRIED && !MODELLED
    }

    /// Returns the smallest size of tiles that hold the whole call; the largest if none does.
    fn whole(self) -> u8 {
        let whole = TILES.iter().position(|tile| self.bytes <= *tile);
        whole.unwrap_or(TILES.len() - 1) as u8
    }
}

impl Way {
    /// The number of layouts.
    pub(crate) const LAYOUTS: u64 = 3 * TILES.len() as u64;
    /// The size of tiles where no measurement says otherwise.
    const USUAL: u8 = 3;
    /// The size of tiles that stay in the second cache.
    const SMALL: u8 = 2;

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
        let stores = |stores| (self.makers, self.passage, stores);
        let kind = |of| KINDS.iter().position(|kind| *kind == of);
        let kind = kind(stores(self.stores)).or_else(|| kind(stores(Stores::Cached)));
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

    pub(crate) fn lends_results(self) -> bool {
        self.lends() || self.passage == Passage::ResultsLent
    }

    /// Returns the stores to memory that other ranks read.
    pub(crate) fn passing(self) -> Stores {
        match self.passage {
            Passage::PastCaches => Stores::Streaming,
            Passage::Stored | Passage::Lent | Passage::ResultsLent => Stores::Cached,
        }
    }

    /// Returns the way with these makers.
    pub(crate) fn with_makers(self, makers: Makers) -> Self {
        Self { makers, ..self }
    }

    /// Returns a number that is equal for ways whose ranks understand each other: they agree on tiles and makers.
    pub(crate) fn layout(self) -> u64 {
        self.makers as u64 * TILES.len() as u64 + u64::from(self.tile)
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
    pub(crate) fn coarse(shape: Shape, can_lend: bool) -> Self {
        let usual = Way { passage: Passage::Stored, ..Way::usual(shape) };
        // A large call may be a pipeline of tiles that stay in the caches.
        let small = usual.with_tile(Way::SMALL.min(usual.tile), shape).unwrap_or(usual);
        let streaming = Way { stores: Stores::Streaming, ..usual };
        let ways = [
            (usual, Makers::Any, Passage::Stored, true),
            (usual, Makers::Any, Passage::PastCaches, true),
            (small, Makers::Any, Passage::Stored, true),
            (usual, Makers::Any, Passage::Lent, can_lend && shape.pulls),
            (small, Makers::Any, Passage::Lent, can_lend && shape.pulls),
            (usual, Makers::Share, Passage::Stored, shape.shares),
            (usual, Makers::Share, Passage::PastCaches, shape.shares),
            (small, Makers::Share, Passage::Stored, shape.shares),
            (streaming, Makers::Share, Passage::Stored, shape.shares && shape.output >= LARGE),
            (usual, Makers::ShareInPlace, Passage::Stored, shape.shares),
            (small, Makers::ShareInPlace, Passage::Stored, shape.shares),
            (usual, Makers::Share, Passage::Lent, shape.shares && can_lend),
            (usual, Makers::Share, Passage::ResultsLent, shape.shares && can_lend),
        ];
        let ways = ways.into_iter().filter(|(.., fits)| *fits);
        let ways = ways.map(|(way, makers, passage, _)| Way { makers, passage, ..way });
        Self::of(ways)
    }

    /// Returns the ways that differ from `best` in their tiles or in their stores to outputs.
    pub(crate) fn near(best: Way, shape: Shape) -> Self {
        let tiles = [best.tile.wrapping_sub(1), best.tile + 1];
        let tiles = tiles.map(|tile| best.with_tile(tile, shape));
        let other = match best.stores {
            Stores::Streaming => Stores::Cached,
            Stores::Cached => Stores::Streaming,
        };
        let stores = (shape.output >= LARGE).then_some(Way { stores: other, ..best });
        Self::of(tiles.into_iter().chain([stores]).flatten())
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
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
            Makers::ShareInPlace => {
                ", a share of the result by each rank in the place of the inputs"
            }
        })?;
        f.write_str(match self.passage {
            Passage::Stored => ", inputs staged in the caches",
            Passage::PastCaches => ", inputs staged past the caches",
            Passage::Lent if self.makers == Makers::Share => ", all copied by the system",
            Passage::Lent => ", inputs copied by the system",
            Passage::ResultsLent => ", inputs staged in the caches, results copied by the system",
        })?;
        f.write_str(match self.stores {
            Stores::Streaming => ", outputs past the caches",
            Stores::Cached => "",
        })
    }
}
