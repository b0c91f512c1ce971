//! The choices that NCCL makes of its own table and of the plugin's: the table of the book, and a public table.

use std::fmt::Write as _;
use std::path::Path;

use expect_test::expect_file;

use super::formula::{RING, costs};
use crate::constants::Latencies;
use crate::interface::{ALGORITHMS, CostTable, NVLS_TREE, PROTOCOLS, SIMPLE, TREE};
use crate::levels::Levels;
use crate::nccl_log::NcclLog;
use crate::setting::Mode;
use crate::tuner::{Communicator, Tuner};

const ALL_REDUCE: i32 = 4;

fn tuner(nodes: u32) -> Tuner {
    // Those of NCCL 2.28 and newer, which it tells.
    let latencies = Latencies { nvls_tree: 20.9, ..Latencies::published() };
    let of = Communicator { id: None, ranks: 8 * nodes as usize, nodes: nodes as usize };
    Tuner::new(of, Mode::On, &latencies, NcclLog::new(None)).expect("a tuner")
}

/// Returns the choices by NCCL's table of costs and by the plugin's. Algorithms that are `without` are not offered.
fn choices(nodes: u32, bytes: u64, without: &[usize]) -> [(usize, usize, f32); 2] {
    let mut table = costs(nodes, bytes);
    for algorithm in without {
        table[*algorithm] = [-1.0; PROTOCOLS.len()];
    }
    let own = CostTable(&mut table).best().expect("something is offered");
    tuner(nodes).decide(ALL_REDUCE, bytes as usize, CostTable(&mut table));
    [own, CostTable(&mut table).best().expect("it is still offered")]
}

#[test]
fn the_table_of_the_book() {
    let mut text = String::from(
        "| nodes | levels that NCCL counts | levels | size | NCCL alone | with the plugin |\n\
         |---|---|---|---|---|---|\n",
    );
    let named = |(algorithm, protocol, cost): (usize, usize, f32)| {
        format!("{}, {}: {cost:.0} us", ALGORITHMS[algorithm], PROTOCOLS[protocol])
    };
    for nodes in [2, 3, 4, 5, 8] {
        let levels = [Levels::by_formula(nodes), Levels::over(nodes).expect("levels")];
        let [counted, levels] = levels.map(|levels| levels.all_gather);
        for (size, bytes) in
            [("64 KiB", 1 << 16), ("512 KiB", 1 << 19), ("32 MiB", 1 << 25), ("1 GiB", 1 << 30)]
        {
            let [alone, plugin] = choices(nodes, bytes, &[]).map(named);
            writeln!(text, "| {nodes} | {counted} | {levels} | {size} | {alone} | {plugin} |")
                .expect("text");
        }
    }
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../book/src/listings/tuner/choices.table");
    expect_file![file].assert_eq(&text);
}

/// AWS measured which choices are the best on its machines with 8 H100, for 4, 8 and 16 nodes of 1 MiB to 32 GiB
/// (aws-ofi-nccl, `tests/unit/static/current_tuner_decisions.csv`). These are powers of two, on which the plugin leaves
/// NCCL's costs alone. Of trees and rings, its choices are the measured ones up to 32 MiB and from 4 GiB on; between
/// them the formula, which has no correction of trees by sizes here, keeps to trees for longer.
#[test]
fn the_choices_are_those_of_a_public_table() {
    const LL128: usize = 1;
    let (mut alike, mut all) = (0, 0);
    // The powers of two up to which a tree by LL128 and a ring by LL128 are the best; above them a ring by Simple is.
    for (nodes, tree, ring) in [(4, 25, 30), (8, 26, 31), (16, 28, 31)] {
        // For one of the sizes it is NVLSTree.
        for power in (20..=35).filter(|power| (nodes, *power) != (16, 32)) {
            let [alone, plugin] = choices(nodes, 1 << power, &[NVLS_TREE]);
            assert_eq!(alone, plugin, "{nodes} nodes, 2^{power} bytes");
            let measured = match power {
                _ if power <= tree => (TREE, LL128),
                _ if power <= ring => (RING, LL128),
                _ => (RING, SIMPLE),
            };
            let same = (plugin.0, plugin.1) == measured;
            assert!(
                same || (26..32).contains(&power),
                "{nodes} nodes, 2^{power} bytes: {plugin:?}"
            );
            alike += u32::from(same);
            all += 1;
        }
    }
    assert_eq!((alike, all), (35, 47));
}

/// Latencies that NCCL printed in logs that are public: the formula of these tests has them.
#[test]
fn the_formula_has_the_latencies_of_a_public_log() {
    // 16 GPUs on 2 nodes: the log has 25.2, 48.5 and 92.4 us for trees, and 131.6 us for a ring by Simple.
    let small = costs(2, 0);
    let told = [small[TREE][0], small[TREE][1], small[TREE][2], small[RING][SIMPLE]];
    for (cost, log) in told.into_iter().zip([25.2, 48.5, 92.4, 131.6]) {
        assert!((cost - log).abs() < 0.06, "{told:?}");
    }
    // 8 GPUs in a node, worked by hand.
    let small = costs(1, 0);
    let told = [small[TREE], small[RING]].concat();
    for (cost, worked) in told.iter().zip([15.2, 31.5, 64.4, 15.0, 40.6, 56.0]) {
        assert!((cost - worked).abs() < 0.06, "{told:?}");
    }
}
