// The sources of the library: file name and text. Included where they are embedded.
&[
    ("ring.coll", include_str!("ring.coll")),
    ("nccl_ring.coll", include_str!("nccl_ring.coll")),
    ("twisted_ring.coll", include_str!("twisted_ring.coll")),
    ("multi_ring.coll", include_str!("multi_ring.coll")),
    ("tree.coll", include_str!("tree.coll")),
    ("halving_doubling.coll", include_str!("halving_doubling.coll")),
    ("nhr.coll", include_str!("nhr.coll")),
    ("mesh.coll", include_str!("mesh.coll")),
    ("around.coll", include_str!("around.coll")),
    ("doubling.coll", include_str!("doubling.coll")),
    ("bruck.coll", include_str!("bruck.coll")),
    ("pairwise.coll", include_str!("pairwise.coll")),
    ("hierarchical.coll", include_str!("hierarchical.coll")),
    ("islands.coll", include_str!("islands.coll")),
    ("contest.coll", include_str!("contest.coll")),
]
