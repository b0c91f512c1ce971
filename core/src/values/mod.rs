//! The values of the language: numbers and their arithmetic, rings, trees, groups, topologies as ranks see them, and
//! the values that parameters take. No value knows a source, a program or a schedule.

pub mod arith;
pub mod escape;
pub mod groups;
pub(crate) mod members;
pub mod order_class;
pub mod params;
pub(crate) mod ranked_topology;
pub mod resource;
pub mod ring;
pub mod rings;
pub mod tree;
pub mod trees;
