//! Plans with bytes changed, cut out, doubled and swapped: no result is a panic, and each comes soon.

use roundelay_core::render::render;
use roundelay_export::exchange::mscclpp;

use super::{Dice, made, read, two_ranks};

/// Pieces that hurt where they land.
const PIECES: [&str; 14] = [
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\\u",
    "\\ud800",
    "null",
    "-1",
    "4294967295",
    "99999999999999999999",
    "1e9",
];

fn mutate(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let at = dice.roll(bytes.len());
    match dice.roll(10) {
        0 => bytes[at] = dice.roll(256) as u8,
        1 => {
            let end = bytes.len().min(at + dice.roll(60));
            bytes.drain(at..end);
        }
        2 => {
            let end = bytes.len().min(at + dice.roll(200));
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        3 => {
            bytes.splice(at..at, PIECES[dice.roll(PIECES.len())].bytes());
        }
        4 => {
            // Numbers that lie.
            if let Some(digit) = bytes[at..].iter().position(u8::is_ascii_digit) {
                let place = at + digit;
                bytes.splice(place..=place, PIECES[10 + dice.roll(3)].bytes());
            }
        }
        _ => {
            if let Some(digit) = bytes[at..].iter().position(u8::is_ascii_digit) {
                bytes[at + digit] = b'0' + dice.roll(10) as u8;
            }
        }
    }
}

#[test]
fn changed_plans() {
    let (mut dice, mut good, mut bad) = (Dice(5), 0, 0);
    for (_, plan) in made::all() {
        let original = plan.to_string().into_bytes();
        for _ in 0..100 {
            let mut changed = original.clone();
            for _ in 0..=dice.roll(2) {
                mutate(&mut changed, &mut dice);
            }
            let text = mscclpp::read("changed.json", &changed);
            for said in text.errors.iter().chain(&text.warnings) {
                let place = text.source.location(said.primary);
                assert!(!said.title.is_empty() && place.line >= 1 && place.column >= 1);
                render(said, &text.source, false);
            }
            match &text.program {
                Some(program) => {
                    good += 1;
                    let verdict = program.verdict(&text.source);
                    for said in verdict.checked.errors.iter().chain(&verdict.warnings) {
                        render(said, &text.source, false);
                    }
                }
                None => {
                    bad += 1;
                    assert!(!text.errors.is_empty());
                }
            }
        }
    }
    // Both happen often, or the changes are not worth their time.
    assert!(good > 100 && bad > 300, "{good} good, {bad} bad");
}

/// Every prefix is refused, at its end or before.
#[test]
fn cut_off() {
    let whole = two_ranks();
    for end in (0..whole.trim_end().len()).step_by(7) {
        let text = read(&whole[..end]);
        assert!(text.program.is_none() && !text.errors.is_empty(), "{end}");
    }
}

/// Texts that are made to take long, or much memory.
#[test]
fn hostile_plans() {
    let refused = |text: &str, why: &str| {
        let read = read(text);
        let title = read.errors.first().map(|error| error.title.clone());
        let title = title.or_else(|| {
            let verdict = read.program.as_ref()?.verdict(&read.source);
            Some(verdict.checked.errors.first()?.title.clone())
        });
        let title = title.unwrap_or_default();
        assert!(title.contains(why), "{why}: {title}");
    };
    refused(&"[".repeat(1 << 20), "nest deeper");
    refused(&"{\"a\":".repeat(1 << 18), "nest deeper");
    refused(&format!("[{}", "0,".repeat(1 << 20)), "ends in the middle");
    refused(&format!("{{\"name\": \"{}", "x".repeat(1 << 22)), "ends in the middle");
    refused(&format!("[{}]", vec!["1"; 1 << 10].join(",")), "the plan is an object");
    let two = two_ranks();
    let far = two.replacen("\"index\": 1", "\"index\": 2147483647", 1);
    refused(&far, "chunks 2147483647..2147483648 of `i`");
    let wide = two.replacen("\"scratch_chunks\": 1", "\"scratch_chunks\": 16777216", 1);
    refused(&wide, "more than a proof can hold");
    let chunks = two.replace("put_chunks\": 2", "put_chunks\": 16777216");
    refused(&chunks, "more than a proof can hold");
}
