//! Pictures: what a reader of the file can check without looking at it.

#![allow(missing_docs)]

mod elements;
mod runs;
mod spacetime;
mod topologies;
mod views;
