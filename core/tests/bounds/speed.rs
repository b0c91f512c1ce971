//! Large topologies: the values, which also shows that they come to an end.

use roundelay_core::collective::Collective;

use crate::bounds;

#[test]
fn sixty_four_hosts_under_spines() {
    let found = bounds("spine_leaf(8, 8, 4, 4)");
    // Eight hosts of a leaf share 2 b upwards; there are eight leaves.
    let gather = found.of(Collective::AllGather);
    assert_eq!((gather.per_byte.num(), gather.per_byte.den()), (63, 64));
    let reduce = found.of(Collective::AllReduce);
    assert_eq!((reduce.per_byte.num(), reduce.per_byte.den()), (63, 32));
    assert_eq!(found.rounds.one_port, 6);
}
