//! The warnings of a source, their levels, and the limits of its loops.

mod lints;
mod nests;
mod unused;
