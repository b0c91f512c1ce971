//! The words that all crates of Roundelay share: ranks and ids, element types, collectives and counts of their blocks,
//! exact fractions, places in a source, errors with their codes, random numbers of a seed, and the stages of a proof.
//!
//! Nothing here knows a program, a schedule or a machine. `roundelay_core` has these modules in its own paths.

pub mod collective;
pub mod counts;
pub mod diagnostics;
pub mod dtype;
pub mod foreign;
pub mod ids;
pub mod json;
pub mod line;
pub mod lints;
pub mod random;
pub mod rational;
pub mod source;
pub mod stages;
pub mod turns;
pub mod units;
