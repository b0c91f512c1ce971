//! Algorithms on topologies: the links that they use exist or are reported, and none beats a bound.

use std::sync::Arc;

use roundelay::library::{RingAllReduce, TwistedRingAllReduce};
use roundelay::{Algorithm, DType, ReduceOp, Ring, ToPlan as _, Topology};
use roundelay_core::check::Frontend;
use roundelay_core::diagnostics::Code;
use roundelay_core::layout::Configured;
use roundelay_core::prove_source;
use roundelay_core::schedule::load::Load;
use roundelay_core::syntax::Source;
use roundelay_core::verify::links;
use roundelay_tests::compile;
use roundelay_tests::{name, sources};
use roundelay_topology::bounds;

/// Relative, with bandwidths, with switches, in tiers, unequal.
const TOPOLOGIES: [&str; 9] = [
    "full_mesh(8)",
    "full_mesh(8) without (0, 1)",
    "full_mesh(9) without (2, 3) without (2, 4) without (0, 8)",
    "ring(6, 10GB/s)",
    "torus([3, 4])",
    "crossbar(8, 240GB/s, 1us)",
    "spine_leaf(2, 4, 2, 3)",
    "islands(2, 4, 200GB/s, 1us, 25GB/s, 5us)",
    "groups([5, 3], 25GB/s, 2us, 5GB/s)",
];

fn topology(text: &str) -> Arc<Topology> {
    Arc::new(text.parse().unwrap_or_else(|problem| panic!("{text}: {problem}")))
}

/// Every algorithm of the tree on every topology, for all rank counts that fit.
#[test]
fn no_algorithm_beats_its_bound() {
    let (mut compared, mut reached) = (0, 0);
    for (path, text) in ["stdlib", "examples"].into_iter().flat_map(sources) {
        let source = Source::from_text(name(&path), &text);
        for algorithm in compile(&source, Frontend::File).expect("a right source").algorithms {
            for place in TOPOLOGIES {
                let topology = topology(place);
                let mut algorithm = Configured::new(algorithm.clone(), &source);
                algorithm.place_on(topology.clone());
                for nranks in 1..=topology.nranks() {
                    let Ok(proved) = prove_source(&algorithm, nranks) else { continue };
                    let schedule = proved.schedule();
                    if !links(schedule, &topology).is_empty() {
                        continue;
                    }
                    let took = Load::new(schedule, &topology).seconds_per_byte;
                    let (collective, root) = (schedule.collective, schedule.root);
                    let bound = bounds::bound(&topology, nranks, collective, root).unwrap();
                    assert!(
                        took >= bound.per_byte.value() * (1.0 - 1e-9),
                        "{} at {nranks} ranks on {place}: {took} is below {} ({})",
                        algorithm.name(),
                        bound.per_byte,
                        bound.binding
                    );
                    compared += 1;
                    reached += usize::from(took <= bound.per_byte.value() * (1.0 + 1e-9));
                }
            }
        }
    }
    assert!(compared > 300, "only {compared} runs had all their links");
    assert!(reached > 40, "only {reached} runs reach their bound");
}

/// Seconds a byte, by the busiest link, against values worked by hand.
#[test]
fn loads_are_those_worked_by_hand() {
    let on = |algorithm: &dyn Algorithm, place: &str| {
        let topology = topology(place);
        let schedule = algorithm.schedule(topology.nranks()).expect("it can be laid out");
        Load::new(&schedule, &topology).seconds_per_byte
    };
    let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 1e-12;
    let (ring, twisted) = (RingAllReduce::new(), TwistedRingAllReduce::new());
    // 2 (n-1)/n of S over the one link on which a rank sends.
    assert!(near(on(&ring, "full_mesh(8)"), 1.75));
    assert!(near(on(&ring, "crossbar(8, 1GB/s)"), 1.75e-9));
    // Half of it goes each way.
    assert!(near(on(&twisted, "full_mesh(8)"), 0.875));
    // Both ways through one port.
    assert!(near(on(&twisted, "crossbar(8)"), 1.75));
    // In either direction one rank of a leaf sends to the next leaf, over two spines alike, each with
    // an uplink of 4 B / (2 * 4): half of 1.75 / 2 over B / 2.
    assert!(near(on(&twisted, "spine_leaf(2, 4, 2, 4)"), 1.75));
    // One rank sends its 1.75 to the other leaf, half over each spine, at B / 2.
    assert!(near(on(&ring, "spine_leaf(2, 4, 2, 4)"), 1.75));
    assert!(near(on(&ring, "spine_leaf(2, 4, 2, 8)"), 3.5));
}

/// A ring misses a link exactly where two of its neighbors are the ends of a cut cable.
#[test]
fn missing_links_are_those_of_cut_neighbors() {
    let mut random = fastrand::Rng::with_seed(9);
    let mut met = 0;
    for _ in 0..60 {
        let n = random.i64(3..10);
        let mut order: Vec<i64> = (0..n).collect();
        random.shuffle(&mut order);
        let cut = (random.i64(0..n), random.i64(0..n));
        let Ok(mesh) = format!("full_mesh({n}) without ({}, {})", cut.0, cut.1).parse() else {
            continue;
        };
        let topology: Topology = mesh;
        let neighbors = order.iter().zip(order.iter().cycle().skip(1));
        let touched = neighbors.into_iter().any(|(a, b)| (*a, *b) == cut || (*b, *a) == cut);
        let ring = RingAllReduce::new().ring(Ring::order(order.clone()));
        let schedule = ring.schedule(n as u32).unwrap();
        let found = links(&schedule, &topology);
        assert_eq!(!found.is_empty(), touched, "{order:?} without {cut:?}");
        // One slip, which the signals and the moves of both loops show: six statements.
        assert!(found.is_empty() || found.len() == 1 && found[0].others.len() == 5, "{found:#?}");
        assert!(found.iter().all(|f| f.code == Code::MissingLink));
        met += usize::from(touched);
    }
    assert!(met > 5, "the dice cut a link of the ring {met} times");
}

#[test]
fn a_ring_around_a_dead_link_runs() {
    let mesh = topology("full_mesh(8) without (0, 1)");
    let algorithm = TwistedRingAllReduce::new().ring(Ring::around(mesh.clone()));
    assert!(links(&algorithm.schedule(8).unwrap(), &mesh).is_empty());
    assert!(!links(&TwistedRingAllReduce::new().schedule(8).unwrap(), &mesh).is_empty());
    let plan = algorithm.plan(8, 1003, DType::I32, ReduceOp::Sum).unwrap();
    let inputs: Vec<Vec<i32>> = (0..8).map(|r| (0..1003).map(|i| i * 7 + r).collect()).collect();
    let mut outputs = vec![vec![0_i32; 1003]; 8];
    let (inputs, mut outputs): (Vec<&[i32]>, Vec<&mut [i32]>) = (
        inputs.iter().map(Vec::as_slice).collect(),
        outputs.iter_mut().map(Vec::as_mut_slice).collect(),
    );
    plan.run(&inputs, &mut outputs).unwrap();
    for output in outputs {
        assert!(output.iter().enumerate().all(|(i, x)| *x == i as i32 * 56 + 28));
    }
    // On a line of three there is no ring, and the plan says so.
    let line = topology("full_mesh(3) without (0, 1)");
    let error = RingAllReduce::new().ring(Ring::around(line)).plan(3, 8, DType::I32, ReduceOp::Sum);
    assert!(error.unwrap_err().to_string().contains("no ring"), "the reason is given");
}
