//! Algorithms of the library in the forms of other runtimes.

mod msccl;
mod unrolled;
