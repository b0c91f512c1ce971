//! Right programs, and what is left of them when a step is dropped, moved or changed: the proof must say what the
//! runtime in small does.

use roundelay_core::diagnostics::Code;
use roundelay_core::exchange::msccl::Connections;

use super::generate;
use super::run::{Outcome, outcome};
use super::{read, verdict_of};

/// Mutants of a normal run; `ROUNDELAY_MSCCL_MUTANTS` asks for more.
const MUTANTS: usize = 100;

/// What the proof says, in the words of the model.
fn proved(text: &str) -> (Outcome, Vec<String>) {
    let text = read(text);
    let titles = |errors: &[roundelay_core::diagnostics::Diagnostic]| -> Vec<String> {
        errors.iter().map(|error| format!("{} {}", error.code, error.title)).collect()
    };
    if !text.errors.is_empty() {
        return (Outcome::Refused, titles(&text.errors));
    }
    let (_, verdict) = verdict_of(&text, &Connections::default());
    let of_mode =
        verdict.modes.iter().flat_map(|checked| &checked.errors).map(|error| match error.code {
            Code::Deadlock | Code::FifoTooShallow | Code::UnmatchedWait | Code::LeftOverSignal => {
                Outcome::Hangs
            }
            Code::Race => Outcome::Race,
            // Right out of place: the note says what is wrong in place.
            Code::InPlaceOnly if error.notes.iter().any(|note| note.contains("[E0305]")) => {
                Outcome::Race
            }
            Code::InPlaceOnly | Code::WrongResult | Code::UninitializedRead => Outcome::Wrong,
            _ => Outcome::Refused,
        });
    let of_size = verdict.errors.iter().map(|_| Outcome::HangsWhenLarge);
    let worst = of_mode.chain(of_size).max().unwrap_or(Outcome::Right);
    let all: Vec<_> = verdict.errors().cloned().collect();
    (worst, titles(&all))
}

/// Numbers of a fixed sequence, so that a failure repeats.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }
}

/// A line with another value of an attribute.
fn with(line: &str, name: &str, value: &str) -> String {
    let key = format!(" {name}=\"");
    let from = line.find(&key).unwrap() + key.len();
    let to = from + line[from..].find('"').unwrap();
    format!("{}{value}{}", &line[..from], &line[to..])
}

fn mutant(text: &str, dice: &mut Dice) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let steps: Vec<usize> =
        (0..lines.len()).filter(|at| lines[*at].trim().starts_with("<step")).collect();
    let at = steps[dice.roll(steps.len())];
    let other = steps[dice.roll(steps.len())];
    match dice.roll(9) {
        0 => {
            lines.remove(at);
        }
        1 if lines[at + 1].trim().starts_with("<step") => lines.swap(at, at + 1),
        1 | 2 => {
            let kinds = ["s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop"];
            lines[at] = with(&lines[at], "type", kinds[dice.roll(kinds.len())]);
        }
        3 => lines[at] = with(&lines[at], "srcoff", &dice.roll(6).to_string()),
        4 => lines[at] = with(&lines[at], "dstoff", &dice.roll(6).to_string()),
        5 => {
            let buffer = ["i", "o", "s"][dice.roll(3)];
            let which = ["srcbuf", "dstbuf"][dice.roll(2)];
            lines[at] = with(&lines[at], which, buffer);
        }
        6 => {
            let waits = lines
                .iter()
                .position(|line| line.contains("depid=") && !line.contains("depid=\"-1\""));
            let at = waits.filter(|_| dice.roll(2) == 0).unwrap_or(at);
            let (block, step) = (dice.roll(4) as i64 - 1, dice.roll(5));
            lines[at] = with(&lines[at], "depid", &block.to_string());
            lines[at] = with(&lines[at], "deps", &step.to_string());
        }
        7 => {
            let posts = ["0", "1"][dice.roll(2)];
            lines[at] = with(&lines[at], "hasdep", posts);
        }
        _ => {
            let copy = lines[other].clone();
            lines.insert(at, copy);
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn right_programs() {
    for (name, text) in generate::all() {
        let expected = outcome(&text);
        let (ours, titles) = proved(&text);
        assert_eq!(ours, expected, "{name}: {titles:#?}\n{text}");
        // With two messages of each rank on their way, a ring of connections that hold two is full.
        let full = name == "ring 3 1 2 Simple";
        let known = if full { Outcome::HangsWhenLarge } else { Outcome::Right };
        assert_eq!(ours, known, "{name}");
    }
}

#[test]
fn mutants_are_judged_as_they_run() {
    let asked = std::env::var("ROUNDELAY_MSCCL_MUTANTS").ok();
    let all = asked.map_or(MUTANTS, |text| text.parse().expect("a number of mutants"));
    let programs = generate::all();
    let mut dice = Dice(7);
    let mut seen = std::collections::BTreeMap::new();
    for number in 0..all {
        let (name, right) = &programs[dice.roll(programs.len())];
        let mut text = right.clone();
        for _ in 0..=dice.roll(2) {
            text = mutant(&text, &mut dice);
        }
        let expected = outcome(&text);
        let (ours, titles) = proved(&text);
        assert_eq!(ours, expected, "mutant {number} of {name}: {titles:#?}\n{text}");
        *seen.entry(expected).or_insert(0) += 1;
    }
    eprintln!("{all} mutants: {seen:?}");
    for outcome in [Outcome::Right, Outcome::Wrong, Outcome::Race, Outcome::Hangs, Outcome::Refused]
    {
        assert!(seen.contains_key(&outcome), "no mutant is {outcome:?}: {seen:?}");
    }
}
