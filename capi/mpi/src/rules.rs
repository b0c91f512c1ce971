//! The table of rules for the arguments of all collectives: who gives a side, where it may be in place, how it is
//! counted, and which blocks must be apart.

use crate::call::MpiCollective;

/// The ranks that give a buffer, or may give `MPI_IN_PLACE` for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Givers {
    None,
    All,
    Root,
}

/// How the values of a side are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// The side is one block.
    Block,
    /// The side is a block for each rank, all of one count.
    Each,
    /// The side is a block for each rank, with a count for each.
    List,
    /// The side is one block, with this rank's count of the side that is sent.
    OfList,
}

/// The rules of a side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SideRules {
    pub(crate) givers: Givers,
    pub(crate) in_place: Givers,
    pub(crate) counts: Counts,
}

/// The block of one side that must not lie where the other side lies, where all types and counts are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    /// No library looks.
    Never,
    /// Both buffers have one address.
    Buffers,
    /// A rank sends from its own block of the values that it receives.
    OfReceived,
    /// A rank receives into its own block of the values that it sends.
    OfSent,
}

/// The rules of a collective.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) send: SideRules,
    pub(crate) recv: SideRules,
    pub(crate) apart: Apart,
}

const fn side(givers: Givers, in_place: Givers, counts: Counts) -> SideRules {
    SideRules { givers, in_place, counts }
}

/// Returns the rules of a collective.
#[rustfmt::skip]
pub(crate) const fn rules(what: MpiCollective) -> Rules {
    use Apart::{Buffers, Never, OfReceived, OfSent};
    use Counts::{Block, Each, List, OfList};
    use Givers::{All, None, Root};
    use MpiCollective as M;
    let (send, recv, apart) = match what {
        M::Allreduce          => (side(All, All, Block), side(All, None, Block), Buffers),
        M::Reduce             => (side(All, Root, Block), side(Root, None, Block), Buffers),
        M::ReduceScatterBlock => (side(All, All, Each), side(All, None, Block), Buffers),
        M::ReduceScatter      => (side(All, All, List), side(All, None, OfList), Buffers),
        M::Bcast              => (side(None, None, Block), side(All, None, Block), Never),
        M::Allgather          => (side(All, All, Block), side(All, None, Each), OfReceived),
        M::Allgatherv         => (side(All, All, Block), side(All, None, List), OfReceived),
        M::Gather             => (side(All, Root, Block), side(Root, None, Each), OfReceived),
        M::Gatherv            => (side(All, Root, Block), side(Root, None, List), OfReceived),
        M::Scatter            => (side(Root, None, Each), side(All, Root, Block), OfSent),
        M::Scatterv           => (side(Root, None, List), side(All, Root, Block), OfSent),
        M::Alltoall           => (side(All, All, Each), side(All, None, Each), Buffers),
        M::Alltoallv          => (side(All, All, List), side(All, None, List), Buffers),
        M::Barrier            => (side(None, None, Block), side(None, None, Block), Never),
    };
    Rules { send, recv, apart }
}
