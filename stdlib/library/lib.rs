//! The library's algorithms as they are written: the text of each `.coll` file. A crate of its own, as the macro, which
//! may call them, and the crate `roundelay`, which expands them, both carry them.

/// Name and text of each file, in the order in which the book describes them.
pub const SOURCES: &[(&str, &str)] = &[
    ("ring.coll", include_str!("ring.coll")),
    ("nccl_ring.coll", include_str!("nccl_ring.coll")),
    ("twisted_ring.coll", include_str!("twisted_ring.coll")),
    ("multi_ring.coll", include_str!("multi_ring.coll")),
    ("tree.coll", include_str!("tree.coll")),
    ("nccl_tree.coll", include_str!("nccl_tree.coll")),
    ("trees.coll", include_str!("trees.coll")),
    ("halving_doubling.coll", include_str!("halving_doubling.coll")),
    ("nhr.coll", include_str!("nhr.coll")),
    ("mesh.coll", include_str!("mesh.coll")),
    ("switch.coll", include_str!("switch.coll")),
    ("ordered.coll", include_str!("ordered.coll")),
    ("pushed.coll", include_str!("pushed.coll")),
    ("around.coll", include_str!("around.coll")),
    ("doubling.coll", include_str!("doubling.coll")),
    ("bruck.coll", include_str!("bruck.coll")),
    ("pairwise.coll", include_str!("pairwise.coll")),
    ("hierarchical.coll", include_str!("hierarchical.coll")),
    ("islands.coll", include_str!("islands.coll")),
    ("contest.coll", include_str!("contest.coll")),
];
