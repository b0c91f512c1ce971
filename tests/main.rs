//! Properties across the crates, one module for each subject; README.md names the property of each. The tests are one
//! binary: it is linked once, and long tests of one subject run beside those of another.

#![allow(missing_docs)]

mod book;
mod command;
mod contest;
mod cuda;
mod driver;
mod exchange;
mod executor;
mod formulas;
mod frontends;
mod goal;
mod golden;
mod hardware;
mod machines;
mod mistakes;
mod modules;
mod mpi;
mod mscclpp;
mod order;
mod processes;
mod random;
mod select;
mod semantics;
mod tables;
mod topologies;
mod twins;
mod ui;
mod uneven;
mod words;
mod wrong;
