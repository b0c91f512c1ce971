//! Back ends: what a checked algorithm becomes besides a schedule.

pub mod cuda;
pub mod hccl_cpp;
mod picture;
mod repeats;
pub mod rust;
mod rust_body;
mod rust_calls;
mod rust_executor;
mod rust_exprs;
mod rust_membership;
mod rust_origin;
mod rust_topology;
pub mod spacetime;
pub mod steps;
pub mod topology_svg;
