//! Algorithms that are found for a topology, and the pages of the language that they become.
//!
//! [`packing`] packs trees until they move data at the highest rate that the links allow. [`steps`] searches for the
//! sends with the fewest rounds: by a greedy rule, or exactly, by a solver of satisfiability. [`trees`] and
//! [`steps::SendList`] write what was found as a page, which the compiler then proves like any other page: a mistake of
//! the search cannot become a wrong result.

pub mod packing;
pub mod page;
pub mod steps;
pub mod trees;
