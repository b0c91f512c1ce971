//! What the values of the language are: numbers and their arithmetic, rings, trees, groups, topologies as ranks see
//! them, and the values that parameters take. Nothing here knows a page, a program or a schedule.

pub mod arith;
pub mod escape;
pub mod groups;
pub(crate) mod members;
pub mod params;
pub mod resource;
pub mod ring;
pub mod rings;
pub(crate) mod ranked_topology;
pub mod tree;
