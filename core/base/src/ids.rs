//! Typed indices: ranks, streams and ops have types of their own; none of them is a bare `usize`.

use std::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the position of this id in the table it belongs to.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

impl From<u32> for RankId {
    fn from(rank: u32) -> Self {
        Self(rank)
    }
}

impl From<RankId> for u32 {
    fn from(rank: RankId) -> Self {
        rank.0
    }
}

ids! {
    /// A rank of the communicator, `0..nranks`.
    RankId;
    /// A stream: one rank's sequential lane of ops. Global, an index into the table `streams` of a schedule.
    StreamId;
    /// An op, an index into the table `ops` of a schedule.
    OpId;
    /// A region in the table `regions` of a schedule.
    RegionId;
    /// A signal counter in the table `channels` of a schedule.
    ChannelId;
    /// The values of the enclosing `parallel` variables, in the table `lanes` of a schedule.
    LaneId;
    /// A scratch declaration in the table `scratch` of a schedule.
    ScratchId;
    /// A statement of the source program, an index into the table `locations` of a schedule.
    SpanId;
    /// A variable of a checked algorithm, and of its program: an index into the table `vars` of the program.
    VarId;
}
