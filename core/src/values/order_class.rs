//! The promises that a reduction can make about the order in which it takes the ranks' contributions.

use std::fmt;

/// A promise about the order of a reduction. Two operands of one fold may change places, which changes no bit of the
/// built-in ops; only [`Self::RankOrder`] has none of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OrderClass {
    /// All ranks that hold an element have reduced it in one order.
    AllRanks,
    /// All elements of all outputs are reduced in one order.
    AllElements,
    /// On each rank, an element's order depends neither on its place in its block nor on the count: the result of a
    /// row is the same in a batch of any size.
    AllCounts,
    /// Contributions are taken in the order of the ranks, so that an op need not commute.
    RankOrder,
}

impl OrderClass {
    /// All promises.
    pub const ALL: [Self; 4] =
        [Self::AllRanks, Self::AllElements, Self::AllCounts, Self::RankOrder];

    /// Returns the word for the promise in `#[order(…)]` and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllRanks => "all_ranks",
            Self::AllElements => "all_elements",
            Self::AllCounts => "all_counts",
            Self::RankOrder => "rank_order",
        }
    }

    /// Returns the promise that `name` stands for.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

impl fmt::Display for OrderClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
