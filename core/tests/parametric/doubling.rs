//! Programs whose loops run over the bits of nranks, and their mutants: the proof for given counts must confirm each
//! claim, at powers of two where the claim is for these alone.

use expect_test::expect;
use roundelay_core::check::hir::Algorithm;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::syntax::Source;
use roundelay_core::uneven;
use roundelay_core::verify::parametric::Every;

use crate::parametric::claims::outside;
use crate::parametric::mutants::{mutants, stride};
use crate::parametric::{algorithms, finitely_right, first, prove};

/// Up to this count a claim is tried.
const TRIED: u32 = 33;

/// Each rank hands on what it has: recursive doubling that writes to the partner.
const PUSHED: &str = "pub algorithm Pushed() -> AllGather {
    require is_power_of_two(nranks), \"by xor\";
    view block = output.split(nranks);
    copy(local.input, local.block[rank]);
    for k in 0..log2(nranks) {
        let distance = 1 << k;
        let partner = peer(rank ^ distance);
        let mine = rank - rank % distance;
        partner.TxAck();
        partner.RxAck();
        copy(local.block[mine..mine + distance], partner.block[mine..mine + distance]);
        partner.TxDataSignal();
        partner.RxDataSignal();
    }
}
";

/// Sums of what is ahead, for powers of two.
const AHEAD: &str = "pub algorithm Ahead() -> AllReduce {
    require is_power_of_two(nranks), \"sums are doubled\";
    scratch inbox: like output;
    copy(local.input, local.output);
    for k in 0..ceil_log2(nranks) {
        let from = peer((rank + pow2(k)) % nranks);
        let to = peer((rank - pow2(k)) % nranks);
        to.TxAck();
        from.RxAck();
        copy(from.output, local.inbox);
        from.TxDataSignal();
        to.RxDataSignal();
        reduce(local.inbox, local.output);
    }
}
";

/// Sums of what is behind, for powers of two, written to the peer's scratch.
const BEHIND: &str = "pub algorithm Behind() -> AllReduce {
    require is_power_of_two(nranks), \"sums are doubled\";
    scratch inbox: like output;
    copy(local.input, local.output);
    for k in 0..log2(nranks) {
        let to = peer((rank + (1 << k)) % nranks);
        let from = peer((rank - (1 << k)) % nranks);
        from.TxAck();
        to.RxAck();
        copy(local.output, to.inbox);
        to.TxDataSignal();
        from.RxDataSignal();
        reduce(local.inbox, local.output);
    }
}
";

/// Blocks that never pass the last one, as nranks is a power of two, by way of scratch.
const BY_SCRATCH: &str = "pub algorithm ByScratch() -> AllGather {
    require is_power_of_two(nranks), \"by xor\";
    scratch all: like output;
    view block = all.split(nranks);
    copy(local.input, local.block[rank]);
    for k in 0..log2(nranks) {
        let partner = peer(rank ^ (1 << k));
        let far = 1 << k;
        let theirs = (rank - rank % far) ^ far;
        let first = partner.rank / far * far;
        partner.TxAck();
        partner.RxAck();
        copy(partner.block[theirs..first + far], local.block[first..theirs + far]);
        partner.TxDataSignal();
        partner.RxDataSignal();
    }
    copy(local.all, local.output);
}
";

/// All sources with the condition of their claims: whether nranks must be a power of two.
fn members() -> Vec<(&'static str, bool)> {
    let library = include_str!("../../../stdlib/library/doubling.coll");
    let second = library.find("/// AllGather").expect("two algorithms");
    vec![
        (&library[..second], true),
        (&library[second..], true),
        (first(include_str!("../../../stdlib/library/bruck.coll")), false),
        (PUSHED, true),
        (AHEAD, true),
        (BEHIND, true),
        (BY_SCRATCH, true),
    ]
}

/// Whether the proof for given counts accepts all counts up to `most` of a claim; or the first that it refuses.
fn confirmed(
    every: Every,
    algorithm: &Algorithm,
    source: &Source,
    most: u32,
) -> Result<(), (u32, String)> {
    let counts = (every.from..=most).filter(|n| !every.powers_of_two || n.is_power_of_two());
    counts.into_iter().try_for_each(|n| finitely_right(algorithm, source, n..=n))
}

#[test]
fn members_are_proved_and_hold_at_every_count_tried() {
    for (text, powers_of_two) in members() {
        let (algorithm, source) = algorithms(text).expect("it compiles").remove(0);
        let every = prove(&algorithm, &source).unwrap_or_else(|outside| {
            let line = source.location(outside.at).line;
            panic!("{} at line {line}: {}", algorithm.name, outside.what)
        });
        assert_eq!((every.from, every.powers_of_two), (2, powers_of_two), "{}", algorithm.name);
        assert_eq!(confirmed(every, &algorithm, &source, 64), Ok(()), "{}", algorithm.name);
    }
}

/// Words that are easily taken for each other in these programs.
const CONFUSED: &[(&str, &str)] = &[
    ("log2(nranks)", "log2(nranks) - 1"),
    ("log2(nranks)", "log2(nranks) + 1"),
    ("log2(nranks)", "log2(nranks - 1)"),
    ("ceil_log2", "log2"),
    ("0..log2", "1..log2"),
    ("0..ceil_log2", "1..ceil_log2"),
    ("is_power_of_two(nranks)", "nranks > 1"),
    ("is_power_of_two(nranks)", "nranks % 2 == 0"),
    ("1 << k", "2 << k"),
    ("1 << k", "k + 1"),
    ("pow2(k)", "pow2(k + 1)"),
    ("rank ^", "rank +"),
    ("rank ^", "rank -"),
    ("rank %", "rank /"),
    ("distance", "2 * distance"),
    ("distance", "many"),
    ("many", "distance"),
    ("min(", "max("),
    (" > ", " >= "),
    (" > ", " < "),
    ("- nranks", "- nranks + 1"),
    ("from.rank", "rank"),
    ("from.rank", "to.rank"),
    ("from.rank", "0"),
    ("from", "to"),
    ("to", "from"),
    ("end]", "nranks]"),
    ("wrapped]", "1]"),
    ("theirs", "rank"),
    ("theirs", "partner.rank"),
    ("mine", "rank"),
    ("partner", "local"),
    ("local", "partner"),
    ("local", "from"),
    ("local", "to"),
    ("inbox", "output"),
    ("output", "inbox"),
    ("inbox", "input"),
    ("block[rank]", "block[0]"),
    ("algorithm", "#[out_of_place] algorithm"),
];

/// All mutants of a source without comments, one change each.
fn changed(text: &str) -> Vec<String> {
    let bare: Vec<_> =
        text.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end()).collect();
    let bare = bare.join("\n");
    let mut all = mutants(&bare);
    for (word, other) in CONFUSED {
        for (at, _) in bare.match_indices(word) {
            all.push(format!("{}{other}{}", &bare[..at], &bare[at + word.len()..]));
        }
    }
    all
}

/// The numbers of mutants that were tried and claimed, and of those that a power of two does not refute.
#[derive(Debug, Default)]
struct Score {
    tried: usize,
    right: usize,
    claimed: usize,
}

impl Score {
    /// Tries a mutant of a program whose claim is for powers of two alone, or for every nranks.
    fn take(&mut self, mutant: &str, powers_of_two: bool) {
        for (algorithm, source) in algorithms(mutant).unwrap_or_default() {
            self.tried += 1;
            let claim = prove(&algorithm, &source);
            if let Ok(every) = claim {
                self.claimed += 1;
                let checked = confirmed(every, &algorithm, &source, TRIED);
                assert_eq!(checked, Ok(()), "claimed, and wrong\n{mutant}");
            }
            if let Ok(Every { from, blocks: true, powers_of_two }) = claim {
                let configured = Configured::new(algorithm.clone(), &source);
                for nranks in (from..=8).filter(|n| !powers_of_two || n.is_power_of_two()) {
                    let schedule = configured.schedule(nranks).expect("it is claimed");
                    let served = uneven::blocks(&schedule).is_ok();
                    assert!(served, "claimed for every vector, not at {nranks}\n{mutant}");
                }
            }
            let as_claimed = Every { from: 2, blocks: false, powers_of_two };
            self.right += usize::from(confirmed(as_claimed, &algorithm, &source, 16).is_ok());
        }
    }
}

#[test]
fn no_mutant_is_claimed_that_a_count_refutes() {
    let mut score = Score::default();
    for (text, powers_of_two) in members() {
        for mutant in changed(text) {
            score.take(&mutant, powers_of_two);
        }
    }
    println!("{score:?}");
    assert!(score.claimed > 40, "{score:?}");
}

/// Two and three changes at once, taken at even distances from all.
#[test]
fn no_mutant_of_mutants_is_claimed_that_a_count_refutes() {
    let each = 14_000 / stride();
    let mut score = Score::default();
    for (text, powers_of_two) in members() {
        let once = changed(text);
        for i in 0..each {
            let twice = changed(&once[i * once.len() / each]);
            let mutant = &twice[i * 7919 % twice.len()];
            score.take(mutant, powers_of_two);
            if i % 4 == 0 {
                let thrice = changed(mutant);
                score.take(&thrice[i * 104_729 % thrice.len()], powers_of_two);
            }
        }
    }
    println!("{score:?}");
    assert!(score.claimed > 300 / stride(), "{score:?}");
}

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
            18: `copy(local.output, local.output);`: two operands of this move may be the same memory
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
