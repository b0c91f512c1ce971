//! Algorithms that are found for a topology, and the pages of the language that they become.
//!
//! [`algorithm`] finds one algorithm, and [`executor`] an executor with an algorithm for each range of sizes. Both time
//! pages in simulated runs, by the parts of [`search`]. Below them, [`packing`] packs trees until they move data at the
//! highest rate that the links allow, and [`steps`] searches for the sends with the fewest rounds: by a greedy rule, or
//! exactly, by a solver of satisfiability. [`tree_page`], [`steps::SendList`] and [`executor::Waves`] write what was found as
//! a page, which the compiler then proves like any other page: a mistake of the search cannot become a wrong result.

pub mod algorithm;
pub mod executor;
pub mod packing;
pub mod page;
pub mod search;
pub mod steps;
pub mod tree_page;
