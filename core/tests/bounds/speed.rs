//! Large topologies: the values, which also shows that they come to an end.

use roundelay_core::collective::Collective;
use roundelay_core::ids::RankId;
use roundelay_topology::bounds::Binding;

use crate::bounds::{bounds, of};

#[test]
fn sixty_four_hosts_under_spines() {
    let found = bounds("spine_leaf(8, 8, 4, 4)");
    // Eight hosts of a leaf share 2 B upwards; there are eight leaves.
    let gather = found.bound(Collective::AllGather);
    assert_eq!((gather.per_byte.num(), gather.per_byte.den()), (63, 64));
    let reduce = found.bound(Collective::AllReduce);
    assert_eq!((reduce.per_byte.num(), reduce.per_byte.den()), (63, 32));
    assert_eq!(found.rounds.one_port, 6);
}

/// Rotations leave one rank to ask; a ring has no two ranks that could change places.
#[test]
fn large_rings_and_meshes() {
    let (ring, mesh) = (bounds("ring(256)"), bounds("full_mesh(128)"));
    assert_eq!(ring.bound(Collective::AllGather).per_byte.to_string(), "255/512");
    assert_eq!(ring.bound(Collective::AllToAll).per_byte.to_string(), "32");
    assert_eq!(ring.rounds.diameter, 128);
    assert_eq!(mesh.bound(Collective::AllReduce).per_byte.to_string(), "1/64");
}

/// A torus is narrowest across its longest dimension, in any order of the dimensions.
#[test]
fn halves_of_a_torus() {
    let upper_columns = |rank: &u32| rank % 8 >= 4;
    let halves: [(&str, Vec<u32>); 2] = [
        ("torus([8, 4])", (16..32).collect()),
        ("torus([4, 8])", (0..32).filter(upper_columns).collect()),
    ];
    for (text, half) in halves {
        let found = of(text, Collective::AllToAll);
        assert_eq!(found.per_byte.to_string(), "1", "{text}");
        assert_eq!(found.binding, Binding::Cut(half.into_iter().map(RankId).collect(), 32));
    }
}
