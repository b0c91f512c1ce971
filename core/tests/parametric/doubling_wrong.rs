//! Programs with loops over the bits of nranks that are wrong, or that one rule of the proof alone refuses.

use expect_test::expect;

use crate::parametric::claims::outside;
use crate::parametric::doubling::{AHEAD, BEHIND, BY_SCRATCH, PUSHED, members};
use crate::parametric::{algorithms, finitely_right};

/// The construct at which the proof of a wrong program ends. The proof for a given count refuses each of them, too.
#[test]
fn what_is_wrong_is_not_claimed() {
    let all = members();
    let (sums, gathered, bruck) = (all[0].0, all[1].0, all[2].0);
    let by_runs = &bruck.replace(
        "view block",
        "require is_power_of_two(nranks), \"for groups of blocks\";\n    view block",
    );
    for (text, right, wrong, want) in [
        (
            sums,
            "partner.RxDataSignal();",
            "",
            expect![[r#"
            24: `partner.TxDataSignal();`: no wait in the same round takes this signal at the peer
        "#]],
        ),
        (
            sums,
            "partner.TxAck(); // my output may be read\n        partner.RxAck();",
            "",
            expect![[r#"
                22: `copy(partner.output, local.inbox);`: its owner may not have entered yet when this touches it
            "#]],
        ),
        (
            sums,
            "copy(partner.output, local.inbox)",
            "copy(partner.input, local.inbox)",
            expect![[r#"
                23: `copy(partner.input, local.inbox);`: this reads or adds what is not known to be there in every round
            "#]],
        ),
        (
            sums,
            "partner.TxDataSignal();\n        partner.RxDataSignal();\n        reduce(local.inbox, local.output);",
            "reduce(local.inbox, local.output);\n        partner.TxDataSignal();\n        partner.RxDataSignal();",
            expect![[r#"
                23: `copy(partner.output, local.inbox);`: nothing orders this with an access of another rank to the same memory
            "#]],
        ),
        (
            sums,
            "0..log2(nranks)",
            "1..log2(nranks)",
            expect![[r#"
            19: `log2(nranks)`: these are not the rounds 0..log2(nranks)
        "#]],
        ),
        (
            sums,
            "require is_power_of_two(nranks)",
            "require nranks > 1",
            expect![[r#"
            19: `log2(nranks)`: this is no linear term in nranks
        "#]],
        ),
        (
            gathered,
            "rank ^ distance",
            "(rank + distance) % nranks",
            expect![[r#"
            21: `partner.rank % distance`: this is no known term in the bits of nranks
        "#]],
        ),
        (
            gathered,
            "partner.rank - partner.rank % distance",
            "rank - rank % distance",
            expect![[r#"
                24: `copy(partner.block[theirs..theirs + distance], local.block[theirs..theirs + distance]);`: nothing orders this with an access of another rank to the same memory
            "#]],
        ),
        (
            gathered,
            "partner.RxAck();",
            "",
            expect![[r#"
            22: `partner.TxAck();`: no wait in the same round takes this signal at the peer
        "#]],
        ),
        (
            gathered,
            "peer(rank ^ (1 << k)).RxDataSignal();",
            "",
            expect![[r#"
            25: `partner.TxDataSignal();`: no wait in the same round takes this signal at the peer
        "#]],
        ),
        (
            bruck,
            "min(distance, nranks - distance)",
            "distance",
            expect![[r#"
            23: `min(from.rank + many, nranks)`: this is no known term in the bits of nranks
        "#]],
        ),
        (
            bruck,
            "copy(from.block[0..wrapped], local.block[0..wrapped]);",
            "",
            expect![[r#"
            27: `if from.rank + many > nranks {`: in some rounds and on some ranks only, and not the rest of the run of blocks that the statement before copies
        "#]],
        ),
        (
            bruck,
            "copy(from.block[0..wrapped], local.block[0..wrapped]);",
            "copy(from.block[wrapped - 1..wrapped], local.block[wrapped - 1..wrapped]);",
            expect![[r#"
                29: `from.block[wrapped - 1..wrapped]`: neither an aligned group of 2^k blocks nor a run
            "#]],
        ),
        (
            gathered,
            "copy(partner.block[theirs..theirs + distance], local.block[theirs..theirs + distance]);",
            "let end = min(partner.rank + distance, nranks);
        copy(partner.block[partner.rank..end], local.block[partner.rank..end]);
        if partner.rank + distance > nranks {
            let wrapped = partner.rank + distance - nranks;
            copy(partner.block[0..wrapped], local.block[0..wrapped]);
        }",
            expect![[r#"
                25: `copy(partner.block[partner.rank..end], local.block[partner.rank..end]);`: peers `rank ^ 2^k` with groups of blocks, and peers `rank ± 2^k` with runs of blocks, in one program
            "#]],
        ),
        (
            by_runs,
            "copy(from.block[from.rank..end], local.block[from.rank..end]);",
            "let mine = rank - rank % distance;
        copy(from.block[mine..mine + distance], local.block[mine..mine + distance]);
        copy(from.block[from.rank..end], local.block[from.rank..end]);",
            expect![[r#"
                28: `copy(from.block[mine..mine + distance], local.block[mine..mine + distance]);`: peers `rank ^ 2^k` with groups of blocks, and peers `rank ± 2^k` with runs of blocks, in one program
            "#]],
        ),
        (
            bruck,
            "0..ceil_log2(nranks)",
            "0..log2(nranks)",
            expect![[r#"
            18: `log2(nranks)`: this is no linear term in nranks
        "#]],
        ),
        (
            bruck,
            "to.TxAck();",
            "from.TxAck();",
            expect![[r#"
            24: `from.TxAck();`: the wait in its place at the peer is for another rank or in another loop
        "#]],
        ),
        (
            AHEAD,
            "require is_power_of_two(nranks), \"sums are doubled\";",
            "",
            expect![[r#"
            13: `reduce(local.inbox, local.output);`: this reads or adds what is not known to be there in every round
        "#]],
        ),
        (
            BEHIND,
            "from.TxAck();\n        to.RxAck();",
            "",
            expect![[r#"
            9: `copy(local.output, to.inbox);`: its owner may not have entered yet when this touches it
        "#]],
        ),
        (
            BY_SCRATCH,
            "copy(local.all, local.output);",
            "",
            expect![[r#"
            1: `ByScratch`: not every block ends as the AllGather wants it
        "#]],
        ),
    ] {
        assert!(text.contains(right), "{right}");
        let text = text.replace(right, wrong);
        let (algorithm, source) = algorithms(&text).expect("it compiles").remove(0);
        outside(&text, &want);
        assert!(finitely_right(&algorithm, &source, 2..=17).is_err(), "{text}");
    }
}

/// Returns a text with all changes made, each of which must be there.
fn with(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (right, wrong)| {
        assert!(text.contains(right), "{right}\n{text}");
        text.replace(right, wrong)
    })
}

/// Programs that are right but for one rule of the proof: without this rule, each of them would be claimed.
#[test]
fn what_breaks_one_rule_alone_is_not_claimed() {
    let all = members();
    let (sums, gathered, bruck) = (all[0].0, all[1].0, all[2].0);
    // A reader may read before the blocks of earlier rounds are there.
    let early = with(
        gathered,
        &[
            ("        partner.TxAck(); // the blocks that I have may be read\n", ""),
            (
                "    for k in 0..log2(nranks) {\n        let distance",
                "    for k in 0..log2(nranks) { peer(rank ^ (1 << k)).TxAck(); }
    for k in 0..log2(nranks) {\n        let distance",
            ),
        ],
    );
    let pull =
        "copy(partner.block[theirs..theirs + distance], local.block[theirs..theirs + distance]);";
    let both_write = with(
        gathered,
        &[(
            pull,
            "let mine = rank - rank % distance;
        copy(partner.block[theirs..theirs + distance], local.block[theirs..theirs + distance]);
        copy(local.block[mine..mine + distance], partner.block[mine..mine + distance]);",
        )],
    );
    let own_again = with(
        gathered,
        &[("partner.RxAck();", "partner.RxAck();\n        copy(local.input, local.block[rank]);")],
    );
    let one_block =
        with(gathered, &[(pull, "copy(partner.block[partner.rank], local.block[partner.rank]);")]);
    let other_way = with(
        bruck,
        &[("to.TxAck();", "from.TxAck();"), ("        from.RxAck();", "        to.RxAck();")],
    );
    let behind = with(
        bruck,
        &[
            ("(rank + distance)", "(rank ~ distance)"),
            ("(rank - distance)", "(rank + distance)"),
            ("(rank ~ distance)", "(rank - distance)"),
            ("(rank - (1 << k))", "(rank + (1 << k))"),
        ],
    );
    let itself = with(
        sums,
        &[(
            "    copy(local.input, local.output);\n",
            "    copy(local.input, local.output);\n    copy(local.output, local.output);\n",
        )],
    );
    let from = sums.find("    for k in").expect("a loop");
    let rounds = &sums[from..sums.rfind("}\n").expect("an end")];
    let again =
        with(sums, &[(rounds, &format!("{rounds}    copy(local.input, local.output);\n{rounds}"))]);
    let other_block = with(
        PUSHED,
        &[
            ("pub algorithm", "#[out_of_place]\npub algorithm"),
            (
                "        partner.RxDataSignal();\n",
                "        partner.RxDataSignal();
        copy(partner.input, local.block[rank]);
        partner.TxDataSignal();
        partner.RxDataSignal();
",
            ),
        ],
    );
    let both_ways = with(
        AHEAD,
        &[
            (
                "scratch inbox: like output;",
                "scratch a: like output; scratch b: like output; scratch other: like output;",
            ),
            (
                "copy(local.input, local.output);",
                "copy(local.input, local.output); copy(local.input, local.other);",
            ),
            (
                "to.TxAck();\n        from.RxAck();",
                "to.TxAck(); from.TxAck();\n        from.RxAck(); to.RxAck();",
            ),
            (
                "copy(from.output, local.inbox);",
                "copy(from.output, local.a); copy(to.other, local.b);",
            ),
            (
                "from.TxDataSignal();\n        to.RxDataSignal();",
                "from.TxDataSignal(); to.TxDataSignal();\n        to.RxDataSignal(); from.RxDataSignal();",
            ),
            (
                "reduce(local.inbox, local.output);",
                "reduce(local.a, local.other); reduce(local.b, local.output);",
            ),
        ],
    );
    for (text, want) in [
        (
            early,
            expect![[r#"
            24: `copy(partner.block[theirs..theirs + distance], local.block[theirs..theirs + distance]);`: nothing orders this with an access of another rank to the same memory
        "#]],
        ),
        (
            both_write,
            expect![[r#"
            25: `copy(partner.block[theirs..theirs + distance], local.block[theirs..theirs + distance]);`: nothing orders this with an access of another rank to the same memory
        "#]],
        ),
        (
            own_again,
            expect![[r#"
            24: `copy(local.input, local.block[rank]);`: nothing orders this with an access of another rank to the same memory
        "#]],
        ),
        (
            one_block,
            expect![[r#"
            24: `copy(partner.block[partner.rank], local.block[partner.rank]);`: the rounds of this loop do not double what a rank has
        "#]],
        ),
        (
            other_way,
            expect![[r#"
            26: `copy(from.block[from.rank..end], local.block[from.rank..end]);`: its owner may not have entered yet when this touches it
        "#]],
        ),
        (
            behind,
            expect![[r#"
            26: `copy(from.block[from.rank..end], local.block[from.rank..end]);`: nothing orders this with an access of another rank to the same memory
        "#]],
        ),
        (
            itself,
            expect![[r#"
            18: `copy(local.output, local.output);`: a copy onto itself
        "#]],
        ),
        (
            again,
            expect![[r#"
            36: `reduce(local.inbox, local.output);`: this reads or adds what is not known to be there in every round
        "#]],
        ),
        (
            other_block,
            expect![[r#"
            15: `copy(partner.input, local.block[rank]);`: this reads or adds what is not known to be there in every round
        "#]],
        ),
        (
            both_ways,
            expect![[r#"
            10: `copy(to.other, local.b);`: this reads or adds what is not known to be there in every round
        "#]],
        ),
    ] {
        outside(&text, &want);
        let (algorithm, source) = algorithms(&text).expect("it compiles").remove(0);
        let refused =
            [2, 4, 8].iter().any(|n| finitely_right(&algorithm, &source, *n..=*n).is_err());
        assert!(refused, "{text}");
    }
}
