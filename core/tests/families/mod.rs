//! The families of the library against the literature: steps, peers and slices are read from the schedules,
//! not from the code that made them.

mod halving_doubling;
mod hierarchical;
mod mesh;
mod nccl_ring;
mod nccl_tree;
mod nhr;
mod pat;
mod pulls;
mod ring;
mod tree;
mod trees;
