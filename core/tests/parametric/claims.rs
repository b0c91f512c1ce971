//! The claims, and the construct that leaves the class where there is no claim.

use expect_test::{Expect, expect};
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::uneven;

use crate::parametric::{algorithms, finitely_right, members, prove};

#[test]
fn members_are_proved_and_hold_at_every_count_tried() {
    for text in members() {
        for (algorithm, source) in algorithms(&text).expect("it compiles") {
            let claim = prove(&algorithm, &source).map_err(|outside| {
                let place = source.location(outside.at);
                format!("{} at line {}: {}", algorithm.name, place.line, outside.what)
            });
            // At two ranks, left and right are one; signals to both are not told apart.
            let from: u32 = if algorithm.name == "TwoWayAllGather" { 3 } else { 2 };
            assert_eq!(claim.map(|every| every.from), Ok(from));
            assert_eq!(
                finitely_right(&algorithm, &source, from..=64),
                Ok(()),
                "{}",
                algorithm.name
            );
        }
    }
}

/// A claim for every vector of counts holds at each rank count, and moves that are right for equal counts alone have no
/// such claim.
#[test]
fn claims_for_every_vector_hold_at_every_count_tried() {
    let (mut claimed, mut equal) = (0, 0);
    for text in members() {
        for (algorithm, source) in algorithms(&text).expect("it compiles") {
            let every = prove(&algorithm, &source).expect("a member");
            let configured = Configured::new(algorithm.clone(), &source);
            let serves = |nranks: u32| {
                let schedule = configured.schedule(nranks).expect("a schedule");
                uneven::blocks(&schedule).is_ok()
            };
            let all = (every.from..=9).all(serves);
            assert!(all || !every.blocks, "{} is claimed for every vector", algorithm.name);
            claimed += u32::from(every.blocks);
            equal += u32::from(!all);
        }
    }
    // The input goes to the place of another block first.
    let detour = crate::parametric::members::MESH_ALL_GATHER.replace(
        "copy(local.input, local.block[rank]);",
        "copy(local.input, local.block[(rank + 1) % nranks]);
        copy(local.block[(rank + 1) % nranks], local.block[rank]);",
    );
    let (algorithm, source) =
        algorithms(&format!("#[out_of_place]{detour}")).expect("it compiles").remove(0);
    let every = prove(&algorithm, &source).expect("it is right for equal counts");
    assert!(!every.blocks);
    assert!(claimed >= 5, "{claimed} are claimed, {equal} serve equal counts alone");
}

/// Checks the finding for the first algorithm of `text`, with the construct as it stands there.
pub(super) fn outside(text: &str, want: &Expect) {
    let (algorithm, source) = algorithms(text).expect("it compiles").remove(0);
    let outside = prove(&algorithm, &source).expect_err("it is no member");
    let place = source.location(outside.at);
    let line = text.lines().nth(place.line as usize - 1).unwrap_or_default();
    let to = if place.end_line == place.line { place.end_column as usize - 1 } else { line.len() };
    let construct: String = line.chars().take(to).skip(place.column as usize - 1).collect();
    want.assert_eq(&format!("{}: `{construct}`: {}\n", place.line, outside.what));
}

#[test]
fn the_construct_that_leaves_the_class_is_named() {
    outside(
        crate::parametric::first(include_str!("../../../stdlib/library/halving_doubling.coll")),
        &expect![[r#"
            17: `near_first`: its value decides what ranks do
        "#]],
    );
    outside(
        include_str!("../../../examples/broadcast_tree.coll"),
        &expect![[r#"
        2: `BinomialBroadcast`: the root does not do what the others do
    "#]],
    );
    outside(
        include_str!("../../../examples/broken_mesh.coll"),
        &expect![[r#"
        7: `topology`: its value decides what ranks do
    "#]],
    );
    outside(
        include_str!("../../../examples/all_to_all.coll"),
        &expect![[r#"
        9: `parallel d in 1..nranks {`: the number of these streams grows with nranks
    "#]],
    );
}

/// Returns an AllReduce that is a ring except for `body`.
fn ring(head: &str, body: &str) -> String {
    format!(
        "pub algorithm A({head}) -> AllReduce {{
    let left = peer((rank - 1) % nranks);
    let right = peer((rank + 1) % nranks);
    view block = output.split(nranks);
    {body}
}}
"
    )
}

#[test]
fn expressions_outside_are_named() {
    for (body, want) in [
        (
            "peer(rank ^ 1).TxAck();",
            expect![[r#"
            5: `rank ^ 1`: `^` of the rank is no shift of it
        "#]],
        ),
        (
            "peer(rank + 1).TxAck();",
            expect![[r#"
                5: `rank + 1`: at some rank this is no rank; take it `% nranks`
            "#]],
        ),
        (
            "peer(0).TxAck();",
            expect![[r#"
            5: `0`: this is no shift of the rank
        "#]],
        ),
        (
            "if rank == 0 { copy(local.input, local.output); }",
            expect![[r#"
            5: `rank == 0`: the ranks do not all do the same
        "#]],
        ),
        (
            "copy(local.block[0], local.block[rank]);",
            expect![[r#"
            5: `local.block[0]`: this block does not move along with the rank
        "#]],
        ),
        (
            "copy(local.block[rank], local.block[(rank + 1) % nranks]);",
            expect![[r#"
            5: `copy(local.block[rank], local.block[(rank + 1) % nranks]);`: two operands differ in length for some count or nranks
        "#]],
        ),
        (
            "require count % (5 - nranks) == 0, \"none for 5 ranks\";",
            expect![[r#"
            5: `5 - nranks`: this is no divisor for some nranks
        "#]],
        ),
        (
            "for k in 0..nranks - 1 { if k == 1 { left.TxAck(); } }",
            expect![[r#"
            5: `k == 1`: this holds in some rounds or for some nranks only
        "#]],
        ),
        (
            "for k in 0..log2(nranks) { left.TxAck(); }",
            expect![[r#"
            5: `log2(nranks)`: this is no linear term in nranks
        "#]],
        ),
        (
            "for k in 1..nranks { for j in 1..nranks { left.TxAck(); } }",
            expect![[r#"
            5: `for j in 1..nranks { left.TxAck(); }`: a loop over nranks within another
        "#]],
        ),
    ] {
        outside(&ring("", body), &want);
    }
    outside(
        &ring("ring: Ring", "ring.left.TxAck(); right.RxAck();"),
        &expect![[r#"
        5: `ring`: ranks and positions in a ring agree only if the ring is the natural order
    "#]],
    );
    outside(
        &ring("root: Rank = 0", "left.TxAck();"),
        &expect![[r#"
        1: `root`: its value decides what ranks do
    "#]],
    );
}

#[test]
fn what_is_wrong_is_not_claimed() {
    // Without comments, and pairs of signals on one line.
    let good = crate::parametric::first(include_str!("../../../stdlib/library/ring.coll"));
    let bare = good.lines().map(|line| line.split(" //").next().unwrap_or_default());
    let good = bare.collect::<Vec<_>>().join("\n");
    let good = good.replace("TxAck();\n       ", "TxAck();");
    let good = good.replace("TxDataSignal();\n        right", "TxDataSignal(); right");
    for (right, wrong, want) in [
        (
            "left.TxDataSignal();",
            "",
            expect![[r#"
                27: `right.RxDataSignal();`: no peer sends this signal in the same round
            "#]],
        ),
        (
            "reduce(left",
            "copy(left",
            expect![[r#"
                15: `RingAllReduce`: not every block ends as the AllReduce wants it
            "#]],
        ),
        (
            "round - 1)",
            "round)",
            expect![[r#"
                15: `RingAllReduce`: not every block ends as the AllReduce wants it
            "#]],
        ),
        (
            "0..nranks - 1 {\n        let b = (me - round) ",
            "1..nranks - 1 {\n        let b = (me - round) ",
            expect![[r#"
                15: `RingAllReduce`: not every block ends as the AllReduce wants it
            "#]],
        ),
        (
            "right.TxAck(); left.RxAck();",
            "",
            expect![[r#"
                26: `reduce(left.block[b], local.block[b]);`: its owner may not have entered yet when this touches it
            "#]],
        ),
        (
            "left.TxDataSignal(); right.RxDataSignal();",
            "",
            expect![[r#"
                32: `copy(left.block[b], local.block[b]);`: its owner may have left already when this touches it
            "#]],
        ),
        (
            "right.TxAck(); left.RxAck();",
            "left.RxAck(); right.TxAck();",
            expect![[r#"
                25: `left.RxAck();`: this waits for a signal that peers send later in the text
            "#]],
        ),
    ] {
        assert!(good.contains(right), "{right}");
        let text = good.replace(right, wrong);
        outside(&text, &want);
        let (algorithm, source) = algorithms(&text).expect("it compiles").remove(0);
        assert!(finitely_right(&algorithm, &source, 2..=9).is_err(), "{text}");
    }
}

#[test]
fn steps_that_call_each_other_end() {
    let steps = (1..40).map(|i| format!("step s{i}() {{ s{0}(); s{0}(); }}\n", i - 1));
    let steps = steps.collect::<String>();
    let text = format!("algorithm A() -> AllReduce {{\nstep s0() {{ }}\n{steps}s39();\n}}\n");
    outside(
        &text,
        &expect![[r#"
        3: `s0();`: too many statements to reason about
    "#]],
    );
}
