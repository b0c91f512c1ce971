//! Meshes with dead links: every algorithm that goes around them, proved for runtimes with one flag a link, and run
//! on data.

use std::sync::Arc;

use roundelay::library::{
    MeshAround, MeshAroundAllGather, MeshAroundReduceScatter, OneShotAround, TwistedRingAllReduce,
    TwoShotAround,
};
use roundelay::{Algorithm, DType, ReduceOp, Ring, Topology};
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_core::schedule::load::Load;
use roundelay_core::verify::{Signals, links, verify_with};
use roundelay_topology::bounds;

use super::super::runs::{Kind, Proofs, assert_right, data, run};
use super::matrix::counts;

const SHARED: Signals = Signals { one_shot: true, link_shared: true };

/// Whole, one link dead, two of four ranks and two of one, as many as there may be, with switches, in tiers.
const TOPOLOGIES: [&str; 15] = [
    "full_mesh(1)",
    "full_mesh(2)",
    "full_mesh(3) without (0, 2)",
    "full_mesh(5)",
    "ring(4)",
    "ring(5)",
    "full_mesh(8) without (0, 1)",
    "full_mesh(8) without (0, 1) without (2, 3)",
    "full_mesh(8) without (0, 1) without (0, 2)",
    "full_mesh(8) without (0, 1) without (0, 2) without (0, 3) without (0, 4) without (0, 5) without (0, 6)",
    "groups([8, 8]) without (0, 1)",
    "groups([1, 1, 1, 1])",
    "groups([8, 4]) without (8, 9)",
    "islands(2, 3)",
    "full_mesh(17) without (3, 16) without (5, 6)",
];

pub(super) fn topology(text: &str) -> Arc<Topology> {
    Arc::new(text.parse().unwrap_or_else(|problem| panic!("{text}: {problem}")))
}

/// All that run there: hubs need not be.
fn all(place: &Arc<Topology>, slices: i64) -> Vec<Box<dyn Algorithm>> {
    let hubs = !place.hubs(place.nranks()).is_empty();
    let two = hubs.then(|| two_shot(place)).into_iter();
    two.chain(bridged(place, slices)).collect()
}

fn two_shot(place: &Arc<Topology>) -> Box<dyn Algorithm> {
    Box::new(TwoShotAround::new().topology(place.clone()))
}

/// Returns the algorithms that go through relays.
fn bridged(place: &Arc<Topology>, slices: i64) -> [Box<dyn Algorithm>; 4] {
    [
        Box::new(OneShotAround::new().topology(place.clone())),
        Box::new(MeshAround::new().topology(place.clone()).slices(slices)),
        Box::new(MeshAroundReduceScatter::new().topology(place.clone()).slices(slices)),
        Box::new(MeshAroundAllGather::new().topology(place.clone())),
    ]
}

/// Proved for links with one flag each, and run for all counts on kinds that turn.
pub(super) fn assert_right_on(place: &Topology, algorithm: &dyn Algorithm, turn: &mut usize) {
    let (name, text, nranks) = (algorithm.name(), place.name(), place.nranks());
    let mut proofs = Proofs::new(algorithm);
    let schedule = proofs.proved(nranks).schedule();
    assert_eq!(links(schedule, place), [], "{name} on {text}");
    if let Err(findings) = verify_with(schedule, SHARED) {
        panic!("{name} on {text} with {SHARED} signals: {findings:#?}");
    }
    for count in counts(nranks) {
        let kinds = Kind::all();
        let kind = kinds[*turn % kinds.len()];
        assert_right(&proofs.plan(nranks, count, kind), kind, *turn as u64);
        *turn += 7;
    }
}

#[test]
fn every_topology_on_data() {
    let mut turn = 0;
    for place in TOPOLOGIES.map(topology) {
        for slices in [1, 3] {
            for algorithm in all(&place, slices) {
                assert_right_on(&place, &*algorithm, &mut turn);
            }
        }
    }
}

/// Relays only forward: the sum of every element is folded in rank order, so topologies, counts and slices leave the bits
/// alone.
#[test]
fn the_bits_do_not_depend_on_the_topology() {
    let kind = Kind { dtype: DType::F32, op: ReduceOp::Sum, in_place: false };
    let meshes = ["full_mesh(8)", "full_mesh(8) without (0, 1)", "groups([4, 4]) without (2, 3)"];
    let bits = |algorithm: &dyn Algorithm| {
        let plan = Proofs::new(algorithm).plan(8, 1003, kind);
        run(&plan, false, &data(&plan, 11).1)
    };
    let [first, ..] = meshes.map(topology);
    let scattered = bits(&MeshAroundReduceScatter::new().topology(first.clone()));
    let reduced = bits(&OneShotAround::new().topology(first));
    let hubs = |hubs: &[i64]| bits(&TwoShotAround::new().hubs(hubs.to_vec()));
    for place in meshes.map(topology) {
        for slices in [1, 2, 5] {
            let again = MeshAroundReduceScatter::new().topology(place.clone()).slices(slices);
            assert!(bits(&again) == scattered, "{} slices on {}", slices, place.name());
        }
        assert!(bits(&OneShotAround::new().topology(place.clone())) == reduced, "{}", place.name());
        assert!(bits(&*two_shot(&place)) == reduced, "{}", place.name());
    }
    assert!(hubs(&[5]) == reduced && hubs(&[7, 0, 3]) == reduced, "nor on who the hubs are");
    // The test would tell: another order gives other bits.
    let ring = bits(&TwistedRingAllReduce::new());
    assert!(ring != reduced, "rounding shows");
}

#[test]
fn hubs_that_make_no_sense_are_refused() {
    for (hubs, why) in [
        (vec![], "no rank is linked"),
        (vec![4, 8], "hubs are ranks"),
        (vec![-1], "hubs are ranks"),
        (vec![3, 1, 3], "name it once"),
    ] {
        let findings = TwoShotAround::new().hubs(hubs).schedule(8).expect_err("it makes no sense");
        assert!(findings.iter().all(|f| f.code == Code::RankCountRefused), "{findings:?}");
        assert!(format!("{findings:?}").contains(why), "{findings:?}");
    }
}

/// Of the bound for AllReduce, by the load of the busiest link.
pub(super) fn share(algorithm: &dyn Algorithm, place: &Topology) -> f64 {
    let n = place.nranks();
    let schedule = algorithm.schedule(n).expect("it can be laid out");
    let bound = bounds::bound(place, n, schedule.collective, RankId(0)).expect("a bound");
    bound.per_byte.value() / Load::new(&schedule, place).seconds_per_byte
}

#[test]
fn shares_make_links_busy_alike() {
    let around = |place: &Arc<Topology>| MeshAround::new().topology(place.clone());
    let full = topology("full_mesh(8)");
    assert!(share(&around(&full), &full) > 0.999_999);
    // No rank lost two links: the bound itself.
    for text in [
        "full_mesh(8) without (0, 1)",
        "full_mesh(8) without (0, 1) without (2, 3)",
        "full_mesh(17) without (3, 16) without (5, 6)",
    ] {
        let place = topology(text);
        assert!(share(&around(&place), &place) > 0.999_999, "{text}");
    }
    // With equal shares 0 -> 2 carries 2 / 8, and of the share of 1 the part that relay 2 takes, a sixth of 1 / 8.
    let cut = topology("full_mesh(8) without (0, 1)");
    let equal = around(&cut).shares(vec![1; 8]);
    let expected = (7.0 / 27.0) / (13.0 / 48.0);
    assert!((share(&equal, &cut) / expected - 1.0).abs() < 1e-9);
    let ring = TwistedRingAllReduce::new().ring(Ring::around(cut.clone()));
    assert!(share(&ring, &cut) < 0.297);
    let twice = topology("full_mesh(8) without (0, 1) without (0, 2)");
    assert!(share(&around(&twice), &twice) > 0.97);
}

#[test]
fn what_no_relay_bridges_is_refused() {
    for place in ["ring(6)", "torus([3, 4])"].map(topology) {
        let refused = bridged(&place, 2).into_iter().map(|one| (one, "no neighbor in common"));
        let refused = refused.chain([(two_shot(&place), "no rank is linked to all others")]);
        for (algorithm, why) in refused {
            let name = algorithm.name();
            let findings = algorithm.schedule(place.nranks()).expect_err("some are too far apart");
            assert!(findings.iter().all(|f| f.code == Code::RankCountRefused), "{name}");
            let said = format!("{findings:?}");
            assert!(said.contains(why), "{name} says {said}");
        }
    }
}
