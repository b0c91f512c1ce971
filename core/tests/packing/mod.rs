//! Packed trees, checked by counting what every link carries.

mod all_reduce;
pub(crate) mod graphs;
pub(crate) mod machines;
mod random;
mod rows;
mod uneven;

use roundelay_topology::Fabric;
use std::collections::BTreeMap;

use roundelay_core::collective::Collective;
use roundelay_core::ids::RankId;
use roundelay_synthesis::packing::{Packing, WeightedTree, pack, pack_at_once};
use roundelay_topology::NodeId;
use roundelay_topology::bounds::Fraction;

/// The data on each link.
type Loads = BTreeMap<(NodeId, NodeId), u128>;

/// Packs trees, and checks them.
fn packed(topology: &Fabric, collective: Collective, root: RankId, trees: Option<u32>) -> Packing {
    let name = topology.name();
    let n = topology.nranks();
    let packing = pack(topology, n, collective, root, trees)
        .unwrap_or_else(|problem| panic!("{collective} on {name}: {problem}"));
    check(topology, collective, root, &packing);
    if collective == Collective::AllReduce {
        let at_once = pack_at_once(topology, n, trees).expect("trees for both ways at once");
        check(topology, collective, root, &at_once);
        assert!(at_once.per_byte <= packing.per_byte, "{name}: {at_once:?}");
    }
    if let Some(trees) = trees {
        assert_eq!(packing.per_root, u64::from(trees));
    }
    packing
}

/// Checks a packing from its definition: trees that span, the weight of each root, ways over links that are there
/// and pass through no rank, and a time that is that of the slowest link.
fn check(topology: &Fabric, collective: Collective, root: RankId, packing: &Packing) {
    use Collective::{AllReduce, Broadcast, Reduce, ReduceScatter};
    let n = topology.nranks();
    let up = matches!(collective, Reduce | ReduceScatter);
    let rooted = matches!(collective, Broadcast | Reduce);
    let mut weights = vec![0; n as usize];
    // The two phases of an AllReduce; of the others, or if both are at once, there is one.
    let mut loads = [Loads::new(), Loads::new()];
    for tree in &packing.trees {
        assert!(tree.weight > 0);
        weights[tree.tree.root.index()] += tree.weight;
    }
    // Trees, the direction of data, whether their ways are in the other direction, and the phase.
    let mut passes = vec![(&packing.trees, up, false, 0)];
    if collective == AllReduce {
        let same = packing.up.is_empty();
        let trees = if same { &packing.trees } else { &packing.up };
        passes.push((trees, true, same, usize::from(!packing.at_once)));
        let of = |tree: &WeightedTree| (tree.tree.root, tree.weight);
        assert!(trees.iter().map(of).eq(packing.trees.iter().map(of)));
    }
    for (trees, up, turned, phase) in passes {
        for WeightedTree { tree, weight, routes } in trees {
            assert!(tree.depths().is_some(), "{tree:?}");
            for rank in topology.ranks() {
                let routes = &routes[rank.index()];
                let Some(parent) = tree.parent[rank.index()] else {
                    assert!(rank == tree.root && routes.is_empty());
                    continue;
                };
                assert_eq!(routes.iter().map(|route| route.weight).sum::<u64>(), *weight);
                let (from, to) = if up == turned { (parent, rank) } else { (rank, parent) };
                for route in routes {
                    assert!(route.through.iter().all(|node| !topology.is_rank(*node)));
                    let ends = [from.into()].into_iter().chain(route.through.iter().copied());
                    let mut way: Vec<NodeId> = ends.chain([to.into()]).collect();
                    if turned {
                        way.reverse();
                    }
                    for pair in way.windows(2) {
                        let load = loads[phase].entry((pair[0], pair[1])).or_default();
                        *load += u128::from(route.weight);
                    }
                }
            }
        }
    }
    if collective == AllReduce {
        weights = vec![weights.iter().sum(); n as usize];
    }
    for rank in topology.ranks() {
        let expected = if rooted && rank != root { 0 } else { packing.per_root };
        assert_eq!(weights[rank.index()], expected, "the trees of {rank}");
    }
    let blocks = if rooted || collective == AllReduce { 1 } else { u128::from(n) };
    let slowest = |load: Loads| {
        let times = load.into_iter().map(|((from, to), load)| {
            let links = topology.out(from).iter().filter(|link| link.to == to);
            // Capacities of the tests have few denominators.
            let twelfths: u128 =
                links.map(|l| u128::from(l.capacity.num() * (12 / l.capacity.den()))).sum();
            assert!(twelfths > 0, "no link {from:?} -> {to:?}");
            Fraction::new(load * 12, u128::from(packing.per_root) * blocks * twelfths)
        });
        times.max().unwrap_or(Fraction::ZERO)
    };
    let slowest = loads.map(slowest).into_iter().fold(Fraction::ZERO, Fraction::plus);
    assert_eq!(packing.per_byte, slowest, "{collective} on {topology:?}");
    assert!(packing.per_byte >= packing.bound);
}

/// The gathered bytes by time, in the unit of the capacities.
fn algbw(packing: &Packing) -> f64 {
    1.0 / packing.per_byte.value()
}
