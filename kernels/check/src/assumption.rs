//! The assumptions beyond PTX on which production kernels rely, by their names.

use std::collections::BTreeSet;

use roundelay_core::dtype::named_enum;

named_enum! {
    /// An assumption that a harness may declare.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Assumption as slice {
        /// A vector of 16 bytes is one object.
        Vec16 = "vec16",
        /// An aligned pair of 4 bytes of a vector is one object.
        Vec8 = "vec8",
        /// A strong load acquires at its scope.
        PollsAcquire = "polls-acquire",
        /// A strong store releases all that its thread knows.
        FlagsRelease = "flags-release",
        /// The start of a kernel releases the launches before it to all devices.
        StartReleases = "start-releases",
        /// Loads before a barrier are complete when a later strong store is seen.
        LoadsBeforeFlag = "loads-before-flag",
        /// Plain accesses of named buffers are relaxed at the scope of the system.
        WeakAsRelaxed = "weak-as-relaxed",
        /// A relaxed count of blocks that a strong load sees orders the threads that counted.
        CountedBlocks = "counted-blocks",
        /// `ld.global.nc` reads as a plain load does.
        NcOnPeers = "nc-on-peers",
        /// Every rank launches its streams in one order.
        OneOrder = "one-order",
        /// Inputs never equal the sentinel.
        PayloadDiffers = "payload-differs",
        /// All blocks of a launch run at once.
        Resident = "resident",
        /// A launch with the attribute may begin early.
        Pdl = "pdl",
        /// Atomic operations on the memory of peers are atomic.
        PeerAtomics = "peer-atomics",
        /// Pads and sentinels are set before any peer writes.
        Zeroed = "zeroed",
        /// Copies and fills are launches in the order of their stream.
        CopiesAreLaunches = "copies-are-launches",
        /// Other virtual addresses of a peer's memory are the same proxy.
        PeerAlias = "peer-alias",
        /// The same of multicast addresses.
        MulticastAlias = "multicast-alias",
        /// A plain store to a multicast address stores to all.
        MulticastStore = "multicast-store",
        /// A multicast sum has one order and rounding.
        MulticastSum = "multicast-sum",
    }
}

/// A set of assumptions.
pub type Assumptions = BTreeSet<Assumption>;

impl Assumption {
    /// Whether a run without it exists: all others are granted to every kernel, and never told as used.
    pub const fn is_optional(self) -> bool {
        (self as u8) <= Self::PayloadDiffers as u8
    }

    /// One line of what it says.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Vec16 => "an access of 16 bytes in a vector is one object",
            Self::Vec8 => "an aligned pair of 4 bytes in a vector is one object",
            Self::PollsAcquire => "strong loads acquire",
            Self::FlagsRelease => "strong stores release",
            Self::StartReleases => {
                "the start of a kernel releases the launches before it to all devices"
            }
            Self::LoadsBeforeFlag => {
                "loads before a barrier are complete when a later flag is seen"
            }
            Self::WeakAsRelaxed => {
                "plain accesses of the buffer are relaxed accesses of the system"
            }
            Self::CountedBlocks => "a relaxed count orders the blocks that counted",
            Self::NcOnPeers => "ld.global.nc reads as a plain load",
            Self::OneOrder => "every rank launches its streams in one order",
            Self::PayloadDiffers => "inputs never equal the sentinel",
            Self::Resident => "all blocks of a launch run at once",
            Self::Pdl => "a launch with the attribute may begin early",
            Self::PeerAtomics => "atomic operations on peers are atomic",
            Self::Zeroed => "pads and sentinels are set before any peer writes",
            Self::CopiesAreLaunches => "copies and fills are launches of their stream",
            Self::PeerAlias => "a peer's mapping is the same proxy",
            Self::MulticastAlias => "a multicast mapping is the same proxy",
            Self::MulticastStore => "a plain store to a multicast address stores to all",
            Self::MulticastSum => "a multicast sum has one order and rounding",
        }
    }
}

/// The names of a set, sorted, with commas between them.
pub fn names(set: &Assumptions) -> String {
    let mut names: Vec<_> = set.iter().map(|one| one.name()).collect();
    names.sort_unstable();
    names.join(", ")
}
