//! Tests of the interpreter of PTX.

mod litmus;
mod machine;
