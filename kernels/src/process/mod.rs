//! Ranks as processes of one host: an arena of shared memory, calls that are published there, and data that is staged in
//! it or lies there anyway.

mod ending;
mod env;
mod join;
mod unique;

pub use env::{Place, from_env};
pub use unique::UniqueId;
