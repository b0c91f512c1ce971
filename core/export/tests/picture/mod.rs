//! Pictures: properties that a program can check in the file.

mod charts;
mod elements;
mod passing;
mod runs;
mod spacetime;
mod topologies;
mod trees;
mod units;
mod views;
