//! Pictures as SVG: a run on its topology over time, and a topology with rings, trees and the load of its links.
//!
//! A picture comes from the compiler's values: [`spacetime`] draws a simulated run, [`topology_svg`] a topology.
//! [`picture`] has the parts that both and charts are made of. A text of a picture is escaped, so a name of an author
//! cannot leave its place. README.md says which file to read first.

#[doc(hidden)]
pub mod picture;
pub mod spacetime;
pub mod topology_svg;
