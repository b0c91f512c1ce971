//! Parts that have no face of their own. Their sources are modules of these tests too, so that nothing is public for tests
//! alone.

use std::collections::BTreeSet;

use roundelay_core::source::Location;

use cpp_names::{TAKEN, identifier, mentions};
use lanes::{lanes_in_order, lanes_within};
use names::{FIELDS, calls, free, function, harmless};
use repeats::{RepeatNode, found};
use scale::{Scale, stretch_text, time_text};
use shares::{LEVELS, level, shares};
use statements::{SHOWN, place, written};

#[path = "../src/loops/cpp_names.rs"]
mod cpp_names;
#[path = "../src/loops/lanes.rs"]
mod lanes;
#[path = "../src/mpi/names.rs"]
mod names;
#[allow(dead_code)]
#[path = "../src/loops/repeats.rs"]
mod repeats;
#[allow(dead_code)]
#[path = "../../pictures/src/spacetime/scale.rs"]
mod scale;
#[path = "../../pictures/src/spacetime/shares.rs"]
mod shares;
#[allow(dead_code)]
#[path = "../../pictures/src/spacetime/statements.rs"]
mod statements;

#[test]
fn taken_names_are_found_and_stay_apart() {
    assert!(TAKEN.is_sorted());
    assert_eq!(identifier("double"), "double_");
    assert_eq!(identifier("double_"), "double__");
    assert_eq!(identifier("table_3"), "table_3_");
    assert_eq!(identifier("block"), "block");
}

#[test]
fn a_word_is_no_part_of_another() {
    assert!(mentions("a = rank + 1;", "rank") && !mentions("a = r->rank;", "rank"));
    assert!(!mentions("// rank", "rank"));
}

fn nodes(text: &str) -> Vec<RepeatNode<char, usize>> {
    let node = |(at, key)| RepeatNode::Once { key, columns: vec![vec![vec![at]]] };
    text.chars().enumerate().map(node).collect()
}

fn show(nodes: &[RepeatNode<char, usize>]) -> String {
    let one = |node: &RepeatNode<char, usize>| match node {
        RepeatNode::Once { key, columns } => {
            let values: Vec<_> = columns[0].iter().map(|by| by[0].to_string()).collect();
            format!("{key}{}", values.join("."))
        }
        RepeatNode::Loop { times, body } => format!("{times}({})", show(body)),
    };
    nodes.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_repeats_is_a_loop_in_its_order() {
    let found = |text: &str| show(&found(nodes(text)));
    assert_eq!(found("xababaxy"), "x0 2(a1.3 b2.4) a5 x6 y7");
    assert_eq!(found("aaabaaab"), "2(3(a0.1.2.4.5.6) b3.7)");
    assert_eq!(found("aab"), "a0 a1 b2");
    assert_eq!(found(""), "");
}

#[test]
fn functions_have_names_of_c() {
    assert_eq!(function("RingAllReduce"), "ring_all_reduce");
    assert_eq!(function("Mesh2D"), "mesh2_d");
    assert_eq!(function("Double"), "double_");
    assert_eq!(function("Copy"), "copy_");
    assert_eq!(function("my_ring"), "my_ring");
}

#[test]
fn scratch_has_names_of_c() {
    assert_eq!(free("int", |_| false), "int_");
    assert_eq!(free("a b", |_| false), "a_b");
    assert_eq!(free("rank", |name| FIELDS.split(' ').any(|known| known == name)), "rank_");
}

#[test]
fn a_call_is_of_the_whole_name() {
    assert!(calls("x = slot(r)", "slot") && !calls("in_slot(r)", "slot"));
}

#[test]
fn comments_do_not_end_in_their_text() {
    assert_eq!(harmless("a */ b /* c ??/"), "a * / b / * c ? ?/");
}

/// A lane is found by the lane around it and its value, whatever values there are.
#[test]
fn lanes_are_found_by_their_values() {
    let known: BTreeSet<Vec<i64>> =
        [&[-2][..], &[1], &[-2, 7], &[1, 0], &[1, 2]].map(<[i64]>::to_vec).into();
    let lanes = lanes_in_order(&known);
    let within = lanes_within(&lanes);
    for lane in &known {
        let number = lane.iter().fold(0, |outer, value| within[outer as usize] + value);
        assert_eq!(lanes[number as usize], *lane, "{lanes:?}, {within:?}");
    }
}

#[test]
fn a_stretch_is_shared_out_by_time() {
    let of = |start, end| shares((0.0, 10.0), 5, start, end).collect::<Vec<_>>();
    assert_eq!(of(1.0, 5.0), [(0, 0.25), (1, 0.5), (2, 0.25)]);
    assert_eq!(of(3.0, 3.0), [(1, 1.0)]);
    assert_eq!(of(9.0, 10.0), [(4, 1.0)]);
    // Time outside of the window is in no column.
    assert_eq!(of(-4.0, 4.0), [(0, 0.25), (1, 0.25), (2, 0.0)]);
}

#[test]
fn levels_are_fifths_of_the_most() {
    let of = [0.02, 0.2, 0.21, 0.5, 0.81, 1.0].map(level);
    assert_eq!(of, [1, 1, 2, 3, 5, LEVELS]);
}

#[test]
fn times_have_four_digits_and_their_unit() {
    for (seconds, text) in [
        (0.0, "0 ns"),
        (4.2e-10, "0.42 ns"),
        (2e-6, "2 us"),
        (12.3456e-6, "12.35 us"),
        (4.725_629e-3, "4.726 ms"),
        (99.999_99e-3, "100 ms"),
        (12_345.6, "12346 s"),
    ] {
        assert_eq!(time_text(seconds), text);
    }
    assert_eq!(stretch_text(0.5e-6, 1e-3), "0.0005 to 1 ms");
}

#[test]
fn ticks_are_round_and_apart() {
    let labels = |seconds, wide| -> Vec<String> {
        Scale::new((0.0, seconds), wide).ticks().into_iter().map(|t| t.1).collect()
    };
    assert_eq!(labels(101.4e-6, 440.0), ["0", "20 us", "40 us", "60 us", "80 us", "100 us"]);
    assert_eq!(labels(3e-3, 300.0), ["0", "1 ms", "2 ms", "3 ms"]);
    assert_eq!(labels(0.0, 100.0), ["0", "1 s"]);
    let part = Scale::new((45e-6, 101e-6), 300.0).ticks();
    assert_eq!(part.iter().map(|t| &*t.1).collect::<Vec<_>>(), ["60 us", "80 us", "100 us"]);
}

#[test]
fn a_statement_is_one_line_without_comments() {
    let lines = ["  é; reduce(a, // from", "         b); copy(x, y);"];
    let at = |line, column, end_line, end_column| Location { line, column, end_line, end_column };
    assert_eq!(written(&lines, &at(1, 6, 2, 13)), "reduce(a, b);");
    assert_eq!(written(&lines, &at(1, 3, 1, 5)), "é;");
    assert_eq!(written(&lines, &at(3, 1, 3, 5)), "");
    assert_eq!(written(&lines, &Location::default()), "");
    let long = "x".repeat(2 * SHOWN);
    assert_eq!(written(&[&long], &at(1, 1, 1, 200)).chars().count(), SHOWN + 1);
    assert_eq!(place("a.coll", 3), "a.coll:3");
    assert_eq!(place("", 3), "line 3");
    assert_eq!(place("a.coll", 0), "");
}
