//! Pictures: what a reader of the file can check without looking at it.

mod elements;
mod runs;
mod spacetime;
mod topologies;
