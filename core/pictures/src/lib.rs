//! Pictures as SVG: a run on its topology over time, a topology with rings, trees and the load of its links, and charts.
//!
//! A picture comes from the compiler's values: [`spacetime`] draws a simulated run, [`topology_svg`] a topology,
//! [`curves`] the times of several algorithms over rank counts, and [`bandwidths`] measured runs over sizes. The last two
//! are a [`chart`], which is also drawn in letters for a terminal. [`picture`] has the parts of all of them. A text of a
//! picture is escaped, so a name of an author cannot leave its place. README.md says which file to read first.

pub mod bandwidths;
pub mod chart;
pub mod curves;
#[doc(hidden)]
pub mod picture;
pub mod spacetime;
pub mod topology_svg;
