//! The promises that a reduction can make about the order in which it takes the ranks' contributions.

use roundelay_base::named_enum;
use std::fmt;

named_enum! {
    /// A promise about the order of a reduction. Two operands of one fold may change places, which changes no bit of the
    /// built-in ops; only [`Self::RankOrder`] has none of that.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum OrderClass {
        /// All ranks that hold an element have reduced it in one order.
        AllRanks = "all_ranks",
        /// All elements of all outputs are reduced in one order.
        AllElements = "all_elements",
        /// On each rank, an element's order depends neither on its place in its block nor on the count: the result of a
        /// row is the same in a batch of any size.
        AllCounts = "all_counts",
        /// Contributions are taken in the order of the ranks, so that an op need not commute.
        RankOrder = "rank_order",
        /// Every run takes contributions in the same order: no switch folds them in an order of its own.
        EveryRun = "every_run",
    }
}

impl fmt::Display for OrderClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
