//! Right programs in which a step is dropped, moved or changed: the proof must agree with the runtime in small.

use fastrand::Rng;
use roundelay_core::diagnostics::Code;
use roundelay_exchange::msccl::Connections;

use super::generate;
use super::model::get;
use super::run::outcome;
use super::{read, verdict_of};
use crate::models::Outcome;
use crate::mutants::Mutants;

fn mutants(seed: u64) -> Mutants {
    Mutants { usual: 100, variable: "ROUNDELAY_MSCCL_MUTANTS", seed }
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

/// A line with another value of an attribute.
fn with(line: &str, name: &str, value: &str) -> String {
    let key = format!(" {name}=\"");
    let from = line.find(&key).unwrap() + key.len();
    let to = from + line[from..].find('"').unwrap();
    format!("{}{value}{}", &line[..from], &line[to..])
}

fn mutate(text: &mut String, random: &mut Rng) {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let steps: Vec<usize> =
        (0..lines.len()).filter(|at| lines[*at].trim().starts_with("<step")).collect();
    let at = steps[random.usize(..steps.len())];
    let other = steps[random.usize(..steps.len())];
    match random.usize(..10) {
        0 => {
            lines.remove(at);
        }
        1 if lines[at + 1].trim().starts_with("<step") => lines.swap(at, at + 1),
        1 | 2 => {
            let kinds = ["s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop"];
            lines[at] = with(&lines[at], "type", kinds[random.usize(..kinds.len())]);
        }
        3 => lines[at] = with(&lines[at], "srcoff", &random.usize(..6).to_string()),
        4 => lines[at] = with(&lines[at], "dstoff", &random.usize(..6).to_string()),
        5 => {
            let buffer = ["i", "o", "s"][random.usize(..3)];
            let which = ["srcbuf", "dstbuf"][random.usize(..2)];
            lines[at] = with(&lines[at], which, buffer);
        }
        6 => {
            let waits = lines
                .iter()
                .position(|line| line.contains("depid=") && !line.contains("depid=\"-1\""));
            let at = waits.filter(|_| random.usize(..2) == 0).unwrap_or(at);
            let (block, step) = (random.usize(..4) as i64 - 1, random.usize(..5));
            lines[at] = with(&lines[at], "depid", &block.to_string());
            lines[at] = with(&lines[at], "deps", &step.to_string());
        }
        7 => {
            let posts = ["0", "1"][random.usize(..2)];
            lines[at] = with(&lines[at], "hasdep", posts);
        }
        8 => {
            let blocks = (0..lines.len()).filter(|at| lines[*at].trim().starts_with("<tb"));
            let blocks: Vec<usize> = blocks.collect();
            let at = blocks[random.usize(..blocks.len())];
            let ranks: usize = get(&lines[0], "ngpus").parse().unwrap();
            let which = ["send", "recv"][random.usize(..2)];
            lines[at] = with(&lines[at], which, &(random.usize(..=ranks) as i64 - 1).to_string());
        }
        _ => {
            let copy = lines[other].clone();
            lines.insert(at, copy);
        }
    }
    *text = lines.join("\n") + "\n";
}

/// Returns the program with the blocks of each rank numbered, and written, in another order.
fn permuted(text: &str, random: &mut Rng) -> String {
    let mut whole = String::new();
    let mut blocks: Vec<String> = Vec::new();
    for line in text.lines() {
        let tag = line.trim();
        if tag.starts_with("<tb") {
            blocks.push(String::new());
        }
        if tag == "</gpu>" {
            let mut order: Vec<usize> = (0..blocks.len()).collect();
            random.shuffle(&mut order);
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
    let mut random = Rng::with_seed(11);
    let mut same = |name: &str, text: &str| {
        let other = permuted(text, &mut random);
        let codes = |titles: Vec<String>| -> std::collections::BTreeSet<String> {
            titles.iter().map(|title| title[..5].to_owned()).collect()
        };
        let ((ours, titles), (theirs, others)) = (proved(text), proved(&other));
        assert_eq!((ours, codes(titles)), (theirs, codes(others)), "{name}\n{text}\n{other}");
        assert_eq!(outcome(text), outcome(&other), "{name}\n{text}\n{other}");
        assert_eq!(outcome(&other), theirs, "{name}\n{other}");
        theirs
    };
    let programs = generate::all();
    for (name, text) in &programs {
        same(name, text);
    }
    mutants(13).judge(&programs, mutate, |name, text| same(name, text));
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
    mutants(7).judge(&generate::all(), mutate, |name, text| {
        let (ours, titles) = proved(text);
        assert_eq!(ours, outcome(text), "{name}: {titles:#?}\n{text}");
        ours
    });
}
