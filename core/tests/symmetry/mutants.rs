//! Mutants of sources: both proofs must agree on each, and the proof of one rank must refuse those whose ranks no longer
//! do the same.

use roundelay_core::layout::Algorithm as _;

use super::{agrees, read};
use crate::proof::suite::sources;

/// Words that are replaced, one place after the other.
const WORDS: &[(&str, &str)] = &[
    ("TxAck", "TxDataSignal"),
    ("RxAck", "RxDataSignal"),
    ("TxDataSignal", "TxAck"),
    ("RxDataSignal", "RxAck"),
    ("left", "right"),
    ("right", "left"),
    ("above", "below"),
    ("below", "above"),
    ("from.", "to."),
    ("to.", "from."),
    ("+ 1", "+ 2"),
    ("- 1", "- 2"),
    ("(rank + ", "(rank - "),
    ("(rank - ", "(rank + "),
    ("[rank]", "[0]"),
    ("[rank]", "[nranks - 1]"),
    ("[b]", "[(b + 1) % nranks]"),
    ("[b]", "[0]"),
    ("% nranks", "% (nranks - 1)"),
    ("[from.rank]", "[rank]"),
    ("rank ^ ", "rank + "),
    ("1 << k", "1"),
    ("2 * d", "d"),
    ("copy(", "reduce("),
    ("reduce(", "copy("),
    (".input", ".output"),
    (".output", ".input"),
    ("round % 2", "0"),
    ("nranks - 1 {", "nranks - 2 {"),
    ("0..nranks", "1..nranks"),
    ("parallel", "for"),
    ("like block", "like input"),
    ("partner.", "local."),
];

/// Returns the mutants of a text.
fn mutants(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (word, other) in WORDS {
        for (at, _) in text.match_indices(word) {
            all.push(format!("{}{other}{}", &text[..at], &text[at + word.len()..]));
        }
    }
    // A statement is left out, or only some ranks run it.
    for line in text.lines().filter(|line| line.trim_end().ends_with(';') || line.contains("; //"))
    {
        let statement = line.split("//").next().unwrap_or_default().trim();
        let plain = ["let", "view", "scratch", "require", "fifo"];
        if plain.iter().any(|word| statement.starts_with(word)) {
            continue;
        }
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        let (before, after) = (&text[..start], &text[start + line.len()..]);
        all.push(format!("{before}{after}"));
        all.push(format!("{before}{line}\n{statement}{after}"));
        for condition in ["rank != 1", "rank > 0", "rank == nranks - 1", "nranks > 3"] {
            all.push(format!("{before}if {condition} {{ {statement} }}{after}"));
        }
    }
    all
}

/// Judges every `every`-th mutant; returns the numbers of those of which one rank stood for all, and of all others.
fn judge(every: usize, counts: &[u32]) -> (usize, usize) {
    let (mut stood, mut others) = (0, 0);
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        for (number, mutant) in mutants(&text).into_iter().enumerate() {
            if number % every != name.len() % every {
                continue;
            }
            for algorithm in read(&name, &mutant) {
                if algorithm.collective().is_rooted() {
                    continue;
                }
                for nranks in counts {
                    match agrees(&algorithm, *nranks) {
                        Ok(true) => stood += 1,
                        Ok(false) => others += 1,
                        Err(why) => wrong.push(format!("{name}, mutant {number}: {why}")),
                    }
                }
            }
        }
    }
    let some: Vec<_> = wrong.iter().take(8).cloned().collect();
    assert!(wrong.is_empty(), "{} of {stood}\n\n{}", wrong.len(), some.join("\n\n"));
    (stood, others)
}

#[test]
fn both_proofs_agree_on_mutants() {
    let (stood, others) = judge(40, &[2, 3, 5, 8]);
    assert!(stood > 300 && others > 300, "{stood} and {others}");
}

/// All mutants, for the long job.
#[test]
#[ignore = "minutes: part of the long job of mutants"]
fn both_proofs_agree_on_all_mutants() {
    let (stood, others) = judge(1, &[2, 3, 4, 5, 6, 8, 9]);
    println!("one rank stood for all in {stood} cases, and in {others} not");
}
