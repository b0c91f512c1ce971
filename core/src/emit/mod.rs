//! Back ends: what a checked algorithm becomes besides a schedule.

#[cfg(feature = "tools")]
pub mod cuda;
#[cfg(feature = "tools")]
pub mod goal;
#[cfg(feature = "tools")]
pub mod hccl_cpp;
#[cfg(feature = "tools")]
pub mod mpi;
#[cfg(feature = "tools")]
mod picture;
mod repeats;
pub mod rust;
mod rust_calls;
mod rust_escape;
mod rust_executor;
mod rust_origin;
#[cfg(feature = "tools")]
pub mod spacetime;
#[cfg(feature = "tools")]
pub mod steps;
#[cfg(feature = "tools")]
pub mod straight;
#[cfg(feature = "tools")]
pub mod topology_svg;
