//! The families of the library against the literature: steps, peers and slices are read from the schedules,
//! not from the code that made them.

#![allow(missing_docs)]

mod mesh;
#[allow(dead_code)] // what the rings ask of it
mod pulls;
