//! Pictures: what a reader of the file can check without looking at it.

mod elements;
mod passing;
mod runs;
mod spacetime;
mod topologies;
mod views;
