//! The parts of a found executor: ranges of sizes, and shortest trees that load links alike.

use roundelay_core::topology::Topology;
use roundelay_machines::links;
use roundelay_synthesis::executor::{Range, Roots, choose, shortest_trees};

#[test]
fn each_range_has_the_fastest_and_no_more_classes_than_help() {
    let (latency, both, bandwidth) =
        (vec![1.0, 9.0, 90.0], vec![4.0, 4.0, 40.0], vec![8.0, 8.0, 8.0]);
    let range = |candidate, end| Range { candidate, end };
    let all = [latency.clone(), both.clone(), bandwidth];
    assert_eq!(choose(&all, &[1.0; 3]), [range(0, 1), range(1, 2), range(2, 3)]);
    let two = [both.clone(), both, latency];
    assert_eq!(choose(&two, &[1.0; 3]), [range(2, 1), range(0, 3)]);
    // A size that weighs more decides for its class.
    let four = [vec![1.0, 2.0, 1.0, 2.0], vec![2.0, 1.0, 2.0, 1.0]];
    assert_eq!(choose(&four, &[9.0, 9.0, 1.0, 9.0]), [range(0, 1), range(1, 4)]);
}

/// Returns the share of the data that the fullest link has, the number of trees and their greatest depth.
fn found(text: &str, roots: Roots) -> (f64, usize, u32) {
    let topology: Topology = text.parse().unwrap();
    let trees = shortest_trees(&topology, roots);
    let mut load = vec![0; 64];
    for (tree, weight) in &trees {
        for (rank, parent) in (0..).zip(&tree.parent) {
            for parent in parent.iter().map(|parent| parent.index()) {
                load[rank * 8 + parent] += weight;
                load[parent * 8 + rank] += weight;
            }
        }
    }
    let all: u64 = trees.iter().map(|tree| tree.1).sum();
    let depth = trees.iter().map(|tree| tree.0.depth()).max().unwrap_or(0);
    (load.into_iter().max().unwrap() as f64 / all as f64, trees.len(), depth)
}

#[test]
fn links_are_as_full_as_the_bound_allows() {
    assert_eq!(found("full_mesh(8)", Roots::All), (0.25, 8, 1));
    let cut = "full_mesh(8) without (0, 1)";
    assert_eq!(found(cut, Roots::All), (7.0 / 27.0, 18, 2));
    assert_eq!(found(cut, Roots::Central), (1.0 / 3.0, 6, 1));
    for second in ["(1, 2)", "(2, 3)"] {
        let (share, _, depth) = found(&format!("{cut} without {second}"), Roots::All);
        assert!((0.2692..0.2720).contains(&share) && depth == 2, "{second}: {share}");
    }
    assert_eq!(found("ring(4)", Roots::Central).2, 2);
    let one_way = links::read("one way", "ranks 3\n0 -> 1 1\n1 -> 2 1\n2 -> 0 1").unwrap();
    assert_eq!(shortest_trees(&one_way.into(), Roots::All), []);
}
