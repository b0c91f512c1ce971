//! All links inside islands and across them at once, on islands of all sizes.

use std::sync::Arc;

use roundelay::library::{HierarchicalAllReduce, HierarchicalMeshAllReduce};
use roundelay::{Algorithm, DType, Groups, Topology};
use roundelay_core::diagnostics::Code;
use roundelay_simulate::{Machine, SignalCost, simulate};

use super::around::{assert_right_on, share, topology};

fn on(text: &str) -> (Arc<Topology>, HierarchicalMeshAllReduce) {
    let place = topology(text);
    (place.clone(), HierarchicalMeshAllReduce::new().topology(place))
}

/// One island, islands of one, rails alone between them, sizes that divide each other and that do not.
#[test]
fn every_topology_on_data() {
    let mut turn = 0;
    for text in [
        "full_mesh(1)",
        "full_mesh(5)",
        "groups([1, 1, 1, 1])",
        "islands(2, 3)",
        "islands(3, 2)",
        "groups([8, 4])",
        "groups([3, 5, 1])",
        "groups([8, 8]) without (0, 1)",
    ] {
        let (place, algorithm) = on(text);
        for slices in [1, 2, 5] {
            assert_right_on(&place, &algorithm.clone().slices(slices), &mut turn);
        }
    }
}

#[test]
fn islands_and_rails_are_busy_alike() {
    for (text, least) in [
        ("full_mesh(8)", 0.999_999),
        ("groups([1, 1, 1, 1])", 0.999_999),
        ("groups([8, 8], 25GB/s, 2us, 25GB/s, 2us)", 0.93),
        ("islands(2, 8, 200GB/s, 1us, 25GB/s, 2us)", 0.95),
        ("islands(4, 8, 200GB/s, 1us, 25GB/s, 2us)", 0.98),
        // The traffic of a dead cable goes through the network, beside the network's own.
        ("groups([8, 8], 25GB/s, 2us, 25GB/s, 2us) without (0, 1)", 0.63),
        ("groups([8, 4], 25GB/s, 2us, 25GB/s, 2us)", 0.54),
    ] {
        let (place, algorithm) = on(text);
        let got = share(&algorithm, &place);
        assert!(got > least, "{got} on {text}");
    }
}

/// Simulated, with signals as messages: one level after another takes a fifth longer, and more for large buffers.
#[test]
fn levels_at_once_are_faster_than_one_after_the_other() {
    let (place, both) = on("islands(2, 8, 200GB/s, 1us, 25GB/s, 2us)");
    let machine = Machine { signals: SignalCost::Messages, ..Machine::new(place.clone()) };
    let seconds = |algorithm: &dyn Algorithm, count| {
        let schedule = algorithm.schedule(16).expect("it can be laid out");
        simulate(&schedule, &machine, count, DType::F32, false).expect("it ends").seconds
    };
    let levels = HierarchicalAllReduce::new().groups(Groups::islands(place.clone()));
    for (count, slices) in [(1 << 14, 1), (1 << 18, 1), (1 << 26, 5)] {
        let ratio = seconds(&levels, count) / seconds(&both.clone().slices(slices), count);
        assert!(ratio > 1.2, "{ratio} for {count} elements");
    }
}

#[test]
fn too_few_parts_are_refused() {
    let (_, algorithm) = on("groups([2, 5])");
    let findings = algorithm.parts(4).schedule(7).expect_err("five ranks share four parts");
    assert!(findings.iter().all(|f| f.code == Code::RankCountRefused), "{findings:?}");
    assert!(format!("{findings:?}").contains("the size of the largest island"), "{findings:?}");
}
