//! The one walk of both classes: each refuses the forms that the other one alone has, and what is taken by both is
//! right in both.

use expect_test::expect;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::program::text::{parse, print};
use roundelay_core::verify::{parametric, verify};

use crate::parametric::claims::outside;
use crate::parametric::doubling::{AHEAD, PUSHED, confirmed, members as with_bits};
use crate::parametric::members::MESH_ALL_GATHER;
use crate::parametric::{algorithms, first, prove};

const RING: &str = include_str!("../../../stdlib/library/ring.coll");

/// Returns a text with one change, which must be possible.
fn with(text: &str, right: &str, other: &str) -> String {
    assert!(text.contains(right), "{right}\n{text}");
    text.replacen(right, other, 1)
}

#[test]
fn forms_of_the_linear_class_are_refused_in_loops_over_bits() {
    let all = with_bits();
    let (sums, gathered, bruck) = (all[0].0, all[1].0, all[2].0);
    let copy = "copy(local.input, local.output);";
    for (text, want) in [
        (
            with(sums, copy, "view half = output.split(2); copy(local.input, local.output);"),
            expect![[r#"
                17: `output.split(2)`: parts of a sum, in a program that asks for the bits of nranks
            "#]],
        ),
        (
            with(sums, copy, "parallel c in 0..1 { copy(local.input, local.output); }"),
            expect![[r#"
                17: `parallel c in 0..1 { copy(local.input, local.output); }`: this is not covered in programs with loops over the bits of nranks
            "#]],
        ),
        (
            with(
                sums,
                "reduce(local.inbox, local.output);",
                "for j in 1..nranks { reduce(local.inbox, local.output); }",
            ),
            expect![[r#"
                26: `for j in 1..nranks { reduce(local.inbox, local.output); }`: a loop within a loop over the bits of nranks
            "#]],
        ),
        (
            with(
                gathered,
                "    for k in 0..log2(nranks) {",
                "    for j in 1..nranks { copy(local.input, local.block[rank]); }\n    for k in 0..log2(nranks) {",
            ),
            expect![[r#"
                18: `nranks`: these are not the rounds 0..log2(nranks)
            "#]],
        ),
        (
            with(gathered, "local.block[theirs..theirs + distance]", "local.block[partner.rank]"),
            expect![[r#"
                24: `copy(partner.block[theirs..theirs + distance], local.block[partner.rank]);`: two operands differ in length for some count or nranks
            "#]],
        ),
        (
            with(gathered, "peer(rank ^ distance)", "peer((rank + k) % nranks)"),
            expect![[r#"
            20: `(rank + k) % nranks`: this is no known term in the bits of nranks
        "#]],
        ),
        (
            with(bruck, "peer((rank + distance) % nranks)", "peer((rank + 1) % nranks)"),
            expect![[r#"
                20: `(rank + 1) % nranks`: this is no known term in the bits of nranks
            "#]],
        ),
        (
            with(
                bruck,
                "copy(local.input, local.block[rank]);",
                "copy(local.input, local.block[(rank + 1) % nranks]);",
            ),
            expect![[r#"
                18: `ceil_log2(nranks)`: this is no linear term in nranks
            "#]],
        ),
        (
            with(
                PUSHED,
                "copy(local.input, local.block[rank]);",
                "scratch slots: 2 like input; copy(local.input, local.block[rank]);",
            ),
            expect![[r#"
                4: `scratch slots: 2 like input;`: scratch other than one slot that is alike on all ranks
            "#]],
        ),
    ] {
        outside(&text, &want);
    }
}

#[test]
fn forms_of_loops_over_bits_are_refused_in_the_linear_class() {
    let ring = first(RING);
    let mesh = &with(MESH_ALL_GATHER, "copy(local.input, local.block[rank]);", "@");
    for (text, want) in [
        (
            with(
                ring,
                "copy(left.block[b], local.block[b]);",
                "copy(left.block[b..b + 1], local.block[b..b + 1]);",
            ),
            expect![[r#"
                35: `left.block[b..b + 1]`: this is not the same for every rank and nranks
            "#]],
        ),
        (
            with(mesh, "@", "copy(local.input, local.block[rank..rank + 1]);"),
            expect![[r#"
            4: `local.block[rank..rank + 1]`: this is not the same for every rank and nranks
        "#]],
        ),
        (
            with(mesh, "@", "copy(local.input, local.block[rank ^ 1]);"),
            expect![[r#"
            4: `rank ^ 1`: `^` of the rank is no shift of it
        "#]],
        ),
        (
            with(
                mesh,
                "@",
                "copy(local.input, local.block[rank]);
                for k in 0..ceil_log2(nranks) {
                    peer((rank + pow2(k)) % nranks).TxAck();
                    peer((rank - pow2(k)) % nranks).RxAck();
                }",
            ),
            expect![[r#"
                9: `nranks`: these are not the rounds 0..log2(nranks)
            "#]],
        ),
        (
            with(
                mesh,
                "@",
                "require is_power_of_two(nranks), \"some\"; copy(local.input, local.block[rank]);",
            ),
            expect![[r#"
                5: `nranks`: these are not the rounds 0..log2(nranks)
            "#]],
        ),
    ] {
        outside(&text, &want);
    }
}

/// Forms that need nothing of a class: the proof for given counts confirms the claims.
#[test]
fn what_the_walk_takes_is_claimed_in_both_classes() {
    let all = with_bits();
    let (sums, bruck) = (all[0].0, all[2].0);
    for (text, right, other) in [
        (
            sums,
            "copy(local.input, local.output);",
            "for i in [2, 0, 1] { if i == 1 { copy(local.input, local.output); } }",
        ),
        (
            sums,
            "scratch inbox: like output;",
            "scratch inbox: like output; require count % 4 == 0, \"whole vectors\";",
        ),
        (
            AHEAD,
            "copy(local.input, local.output);",
            "for i in 3..4 { require i == 3, \"once\"; copy(local.input, local.output); }",
        ),
        (
            bruck,
            "copy(local.input, local.block[rank]);",
            "step own(at: int) { copy(local.input, local.block[at]); } own(rank);",
        ),
        // In place, the first destination is the source.
        (
            sums,
            "copy(local.input, local.output);",
            "scratch kept: like output; copy(local.input, [local.output, local.kept]);",
        ),
    ] {
        let text = with(text, right, other);
        let (algorithm, source) = algorithms(&text).unwrap_or_else(|| panic!("{text}")).remove(0);
        let every =
            prove(&algorithm, &source).unwrap_or_else(|outside| panic!("{}\n{text}", outside.what));
        assert_eq!(confirmed(every, &algorithm, &source, 33), Ok(()), "{text}");
    }
}

/// The copy of the rest of a run stands directly behind the copy up to the last block, in the same round.
#[test]
fn only_the_whole_rest_of_a_run_makes_it_whole() {
    let bruck = with_bits()[2].0;
    let rest = "copy(from.block[0..wrapped], local.block[0..wrapped]);";
    let front = "copy(from.block[from.rank..end], local.block[from.rank..end]);";
    let parted = "    }
    for k in 0..ceil_log2(nranks) {
        let distance = 1 << k;
        let from = peer((rank + distance) % nranks);
        let many = min(distance, nranks - distance);
        if from.rank + many > nranks {";
    let twice = format!("{rest} {rest}");
    let never = format!("if 0 > 1 {{ {rest} }}");
    let between = format!("{front} copy(local.input, local.block[rank]);");
    let folded = with(bruck, front, &front.replace("copy", "reduce"));
    let folds = rest.replace("copy", "reduce");
    for (bruck, right, wrong) in [
        (bruck, "        if from.rank + many > nranks {", parted),
        (bruck, rest, &twice),
        (bruck, rest, &never),
        (bruck, rest, &folds),
        (&folded, rest, &folds),
        (bruck, front, ""),
        (bruck, front, &between),
        (bruck, front, "copy(to.block[from.rank..end], local.block[from.rank..end]);"),
    ] {
        let text = with(bruck, right, wrong);
        let (algorithm, source) = algorithms(&text).expect("it compiles").remove(0);
        let what = prove(&algorithm, &source).expect_err(&text).what;
        assert!(
            what.ends_with("not the rest of the run of blocks that the statement before copies")
        );
    }
}

/// In the text form of a program a name may get another value, so a round may see what the round before has left.
#[test]
fn what_a_round_takes_over_from_the_round_before_is_not_claimed() {
    let ring = "pub algorithm Ring() -> AllGather {
    view block = output.split(nranks);
    let left = peer((rank - 1) % nranks);
    let right = peer((rank + 1) % nranks);
    let shift = rank;
    copy(local.input, local.block[rank]);
    for k in 0..nranks - 1 {
        let b = (shift - k - 1) % nranks;
        right.TxAck();
        left.RxAck();
        copy(left.block[b], local.block[b]);
        left.TxDataSignal();
        right.RxDataSignal();
    }
}
";
    let pushed = with(PUSHED, "    for k", "    let shift = rank;\n    for k");
    let pushed = with(&pushed, "rank - rank % distance", "shift - shift % distance");
    let set = "let %shift = ((%shift + 1) % nranks) // 1..2 1..2 1..2 1..2 1..2";
    let kept = "let %shift = rank // 1..2";
    let zero = "let %shift = 0 // 1..2";
    for (text, line, is_right) in
        [(ring, kept, true), (ring, set, false), (&pushed, kept, true), (&pushed, zero, false)]
    {
        let (algorithm, source) = algorithms(text).expect("it compiles").remove(0);
        let printed = print(Configured::new(algorithm, &source).program());
        let end = printed.rfind("  }\n").expect("a loop");
        let end = printed[..end].rfind('\n').expect("a line") + 1;
        let at = &printed[end..end + printed[end..].find(':').expect("a statement")];
        let changed = format!("{}{at}:    {line}\n{}", &printed[..end], &printed[end..]);
        let program = parse(&changed).unwrap_or_else(|error| panic!("{error}\n{changed}"));
        let proof = parametric::prove(&program).map_err(|outside| outside.what);
        let count = [4, 8].map(|n| {
            let schedule = program.algorithm().schedule(n);
            schedule.and_then(|schedule| verify(&schedule)).is_ok()
        });
        assert_eq!((proof.is_ok(), count), (is_right, [is_right; 2]), "{proof:?}\n{changed}");
        if line == set {
            assert_eq!(proof, Err("a round takes values over from the round before".to_owned()));
        }
    }
}
