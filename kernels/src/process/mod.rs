//! Ranks as processes of one host: an arena of shared memory, calls that are published there, and data that is staged in
//! it or lies there anyway.

#[allow(dead_code, reason = "the worlds that watch processes come next")]
mod ending;
mod env;
#[allow(dead_code, reason = "the worlds that are joined come next")]
mod join;
#[allow(dead_code, reason = "as for `join`")]
mod system;
#[allow(dead_code, reason = "as for `join`")]
mod unique;

pub use env::{Place, from_env};
pub use unique::UniqueId;
