//! Tests of the interpreter of PTX.

mod axioms;
mod litmus;
mod machine;
mod mutants;
mod programs;
