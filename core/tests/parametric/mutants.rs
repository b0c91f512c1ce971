//! Mutants of sources: a claim for every nranks must never be refuted at a given count.

use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::uneven;
use roundelay_core::verify::parametric::Every;

use crate::parametric::{algorithms, finitely_right, prove};

/// Up to this count a claim is tried; a debug build is ten times as slow.
const TRIED: u32 = if cfg!(debug_assertions) { 12 } else { 24 };

/// Returns the stride: `cargo xtask mutants` takes all mutants, the tests every seventh.
pub(super) fn stride() -> usize {
    if std::env::var_os("ROUNDELAY_WHOLE").is_some() { 1 } else { 7 }
}

/// Words that are easily taken for each other.
const CONFUSED: &[(&str, &str)] = &[
    ("left", "right"),
    ("right", "left"),
    ("to.", "from."),
    ("from.", "to."),
    ("copy(", "reduce("),
    ("reduce(", "copy("),
    ("TxAck", "TxDataSignal"),
    ("TxDataSignal", "TxAck"),
    ("RxAck", "RxDataSignal"),
    ("RxDataSignal", "RxAck"),
    (" + ", " - "),
    (" - ", " + "),
    ("input", "output"),
    ("output", "input"),
    ("local.", "left."),
    ("local.", "from."),
    ("left.", "local."),
    ("nranks;", "nranks - 1;"),
    ("nranks {", "nranks - 1 {"),
    ("nranks {", "nranks + 1 {"),
    ("0..nranks", "1..nranks"),
    ("round", "2 * round"),
    ("round)", "nranks - round)"),
    ("% nranks", ""),
    ("#[out_of_place]", ""),
    ("[a]", "[b]"),
    ("[rank]", "[from.rank]"),
];

/// All mutants of `text`, one change each.
pub(super) fn mutants(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let statements: Vec<usize> = (0..lines.len())
        .filter(|i| lines[*i].split("//").next().unwrap().trim_end().ends_with(';'))
        .collect();
    let mut all = Vec::new();
    let mut keep = |lines: Vec<&str>| all.push(lines.join("\n"));
    for (k, &i) in statements.iter().enumerate() {
        let mut without = lines.clone();
        without.remove(i);
        keep(without.clone());
        let mut twice = lines.clone();
        twice.insert(i, lines[i]);
        keep(twice);
        for &j in &statements[k + 1..] {
            let mut swapped = lines.clone();
            swapped.swap(i, j);
            keep(swapped);
            let mut fewer = without.clone();
            fewer.remove(j - 1);
            keep(fewer);
        }
    }
    for (word, other) in CONFUSED {
        for (at, _) in text.match_indices(word) {
            all.push(format!("{}{other}{}", &text[..at], &text[at + word.len()..]));
        }
    }
    for (at, digit) in text.match_indices(|c: char| c.is_ascii_digit()) {
        let value: i64 = digit.parse().unwrap();
        for other in [value - 1, value + 1, value + 2] {
            all.push(format!("{}{other}{}", &text[..at], &text[at + 1..]));
        }
    }
    all
}

#[test]
fn no_mutant_is_claimed_that_a_count_refutes() {
    let (mut tried, mut claimed, mut right) = (0, 0, 0_u32);
    for text in crate::parametric::members() {
        for mutant in mutants(&text).into_iter().step_by(stride()) {
            let Some(found) = algorithms(&mutant) else { continue };
            for (algorithm, source) in found {
                tried += 1;
                let claim = prove(&algorithm, &source);
                let fine = |range| finitely_right(&algorithm, &source, range).is_ok();
                if let Ok(every) = claim {
                    claimed += 1;
                    let checked = finitely_right(&algorithm, &source, every.from..=TRIED);
                    assert_eq!(
                        checked,
                        Ok(()),
                        "claimed from {} on, and wrong\n{mutant}",
                        every.from
                    );
                }
                if let Ok(Every { from, blocks: true, .. }) = claim {
                    let configured = Configured::new(algorithm.clone(), &source);
                    for nranks in from..=6 {
                        let schedule = configured.schedule(nranks).expect("it is claimed");
                        let served = uneven::blocks(&schedule).is_ok();
                        assert!(served, "claimed for every vector, not at {nranks}\n{mutant}");
                    }
                }
                let is_right = claim.is_ok() || fine(2..=7);
                right += u32::from(is_right);
            }
        }
    }
    println!(
        "{tried} mutants, {right} right for 2..=7, of these {claimed} claimed for every nranks"
    );
    assert!(claimed > 100 / stride(), "{claimed} of {right} right mutants are proved");
}
