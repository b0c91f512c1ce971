//! Right programs in which a step is dropped, moved or changed: the proof must agree with the runtime in small.

use roundelay_core::diagnostics::Code;
use roundelay_export::exchange::msccl::Connections;

use super::generate;
use super::model::get;
use super::run::{Outcome, outcome};
use super::{read, verdict_of};

/// Mutants of a normal run; `ROUNDELAY_MSCCL_MUTANTS` asks for more.
const MUTANTS: usize = 100;

fn mutants() -> usize {
    let asked = std::env::var("ROUNDELAY_MSCCL_MUTANTS").ok();
    asked.map_or(MUTANTS, |text| text.parse().expect("a number of mutants"))
}

/// Returns the result of the proof, in the words of the model.
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
            // The program is right out of place: the note names the error in place.
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
    match dice.roll(10) {
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
        8 => {
            let blocks = (0..lines.len()).filter(|at| lines[*at].trim().starts_with("<tb"));
            let blocks: Vec<usize> = blocks.collect();
            let at = blocks[dice.roll(blocks.len())];
            let ranks: usize = get(&lines[0], "ngpus").parse().unwrap();
            let which = ["send", "recv"][dice.roll(2)];
            lines[at] = with(&lines[at], which, &(dice.roll(ranks + 1) as i64 - 1).to_string());
        }
        _ => {
            let copy = lines[other].clone();
            lines.insert(at, copy);
        }
    }
    lines.join("\n") + "\n"
}

/// Returns the program with the blocks of each rank numbered, and written, in another order.
fn permuted(text: &str, dice: &mut Dice) -> String {
    let mut whole = String::new();
    let mut blocks: Vec<String> = Vec::new();
    for line in text.lines() {
        let tag = line.trim();
        if tag.starts_with("<tb") {
            blocks.push(String::new());
        }
        if tag == "</gpu>" {
            let mut order: Vec<usize> = (0..blocks.len()).collect();
            (1..order.len()).for_each(|at| order.swap(at, dice.roll(at + 1)));
            for (id, old) in order.iter().enumerate() {
                for line in blocks[*old].lines() {
                    let line = if line.trim().starts_with("<tb") {
                        with(line, "id", &id.to_string())
                    } else if line.contains(" depid=") {
                        let number = |old: usize| order.iter().position(|other| *other == old);
                        let new = get(line, "depid").parse().ok().and_then(number);
                        new.map_or(line.to_owned(), |new| with(line, "depid", &new.to_string()))
                    } else {
                        line.to_owned()
                    };
                    whole += &(line + "\n");
                }
            }
            blocks.clear();
        }
        let part =
            if tag == "</gpu>" { &mut whole } else { blocks.last_mut().unwrap_or(&mut whole) };
        *part += line;
        part.push('\n');
    }
    whole
}

/// A block that has the peer of another block's connection and does nothing there, in front of that block or behind it.
#[test]
fn an_idle_block_beside_a_busy_one() {
    let idle = |name: &str, peer: &str| {
        let other = if name == "send" { "recv" } else { "send" };
        format!("<tb id=\"9\" {name}=\"{peer}\" {other}=\"-1\" chan=\"0\">\n    </tb>")
    };
    let right = generate::ring(3, 1, 1, "Simple");
    for (name, peer, verb) in [("send", "1", "send to"), ("recv", "2", "receive from")] {
        let tb = "    <tb id=\"0\"";
        let before = idle(name, peer).replace("\"9\"", "\"0\"");
        let before = right.replacen(tb, &format!("    {before}\n    <tb id=\"1\""), 1);
        let behind = idle(name, peer).replace("\"9\"", "\"1\"");
        let behind = right.replacen("    </tb>", &format!("    </tb>\n    {behind}"), 1);
        for (text, tb, busy) in [(before, 0, 1), (behind, 1, 0)] {
            assert_eq!(outcome(&text), Outcome::Refused);
            let (ours, titles) = proved(&text);
            let told = format!(
                "E0310 tb {tb} of gpu 0 names gpu {peer} and does not {verb} it on channel 0, as tb {busy} does"
            );
            assert_eq!((ours, titles), (Outcome::Refused, vec![told]), "{text}");
        }
        // For a connection that no block uses the runtime may save any value.
        let alone = idle(name, peer).replace("\"9\"", "\"1\"").replace("chan=\"0\"", "chan=\"1\"");
        let alone = right.replacen("    </tb>", &format!("    </tb>\n    {alone}"), 1);
        let alone = alone.replacen("nchannels=\"1\"", "nchannels=\"2\"", 1);
        assert_eq!((outcome(&alone), proved(&alone)), (Outcome::Right, (Outcome::Right, vec![])));
    }
}

/// The numbers of blocks do not affect their steps.
#[test]
fn the_order_of_blocks_is_no_matter() {
    let mut dice = Dice(11);
    let mut same = |name: &str, text: &str| {
        let other = permuted(text, &mut dice);
        let codes = |titles: Vec<String>| -> std::collections::BTreeSet<String> {
            titles.iter().map(|title| title[..5].to_owned()).collect()
        };
        let ((ours, titles), (theirs, others)) = (proved(text), proved(&other));
        assert_eq!((ours, codes(titles)), (theirs, codes(others)), "{name}\n{text}\n{other}");
        assert_eq!(outcome(text), outcome(&other), "{name}\n{text}\n{other}");
        assert_eq!(outcome(&other), theirs, "{name}\n{other}");
    };
    let programs = generate::all();
    for (name, text) in &programs {
        same(name, text);
    }
    let mut dice = Dice(13);
    for number in 0..mutants() {
        let (name, right) = &programs[dice.roll(programs.len())];
        let mut text = right.clone();
        for _ in 0..=dice.roll(2) {
            text = mutant(&text, &mut dice);
        }
        same(&format!("mutant {number} of {name}"), &text);
    }
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
    let all = mutants();
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
