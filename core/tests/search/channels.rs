//! Channels: none takes more than its links have, and known totals are reached.

use super::topology;
use roundelay_core::ids::RankId;
use roundelay_core::rational::Rat;
use roundelay_topology::Fabric;
use roundelay_topology::search::channels::{Channels, channels};
use roundelay_topology::shape::{Shape, ShapeKind};
use roundelay_topology::{NodeId, paths};

const GB: u64 = 1_000_000_000;

/// Returns the channels, after adding up their use of each link.
fn sound(topology: &Fabric, nranks: u32, sm: Option<u32>) -> Channels {
    let found = channels(topology, nranks, sm).unwrap();
    let mut uses = vec![0; topology.links().len()];
    for order in &found.orders {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq((0..nranks).map(RankId)));
        for (a, b) in order.iter().zip(order.iter().cycle().skip(1)) {
            let path = &paths::paths_from(topology, NodeId::from(*a))[b.index()];
            assert!(path.kind <= found.kind);
            path.links.iter().for_each(|l| uses[*l as usize] += 1);
        }
    }
    for (link, uses) in topology.links().iter().zip(uses) {
        let taken = Rat::new(found.speed.num() * uses, found.speed.den()).unwrap();
        assert!(taken <= link.capacity, "{found:?} {link:?}");
    }
    found
}

#[test]
fn known_totals() {
    let crossbar = topology(ShapeKind::Crossbar, &[8], &[240 * GB]);
    for sm in [None, Some(80), Some(90)] {
        let found = sound(&crossbar, 8, sm);
        assert_eq!((found.total(), found.fallback), (Some(Rat::whole(240 * GB)), false));
    }
    let ring = sound(&topology(ShapeKind::Ring, &[8], &[20 * GB]), 8, Some(80));
    assert_eq!(ring.total(), Some(Rat::whole(40 * GB)));
    let mesh = sound(&topology(ShapeKind::FullMesh, &[8], &[20 * GB]), 8, Some(80));
    assert!(mesh.total() >= Some(Rat::whole(120 * GB)), "{mesh:?}");
    let relative = sound(&topology(ShapeKind::FullMesh, &[5], &[]), 5, None);
    assert_eq!(relative.total(), Some(Rat::whole(4)));
}

#[test]
fn islands_use_all_their_rails() {
    let found = sound(&topology(ShapeKind::Islands, &[2, 4], &[300 * GB, 25 * GB]), 8, None);
    assert!(!found.fallback);
    assert_eq!(found.total(), Some(Rat::whole(100 * GB)));
}

#[test]
fn it_always_ends() {
    let broken = Shape::full_mesh(8).without(0, 1).build().unwrap();
    assert!(!sound(&broken, 8, None).fallback);
    let torus = topology(ShapeKind::Torus, &[8, 8], &[20 * GB]);
    assert!(sound(&torus, 64, Some(90)).total() >= Some(Rat::whole(20 * GB)));
    assert!(sound(&topology(ShapeKind::FullMesh, &[65], &[]), 65, None).fallback);
    assert!(sound(&topology(ShapeKind::FullMesh, &[1], &[]), 1, None).fallback);
    let slow = topology(ShapeKind::FullMesh, &[4], &[1000]);
    assert!(sound(&slow, 4, Some(80)).fallback);
    assert!(channels(&Shape::full_mesh(3).without(0, 1).build().unwrap(), 4, None).is_err());
}
