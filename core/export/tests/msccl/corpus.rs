//! Published programs against their known verdicts, where a directory of them is at hand.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use roundelay_core::diagnostics::Code;
use roundelay_exchange::Safe;
use roundelay_exchange::msccl::{self, Connections};

/// The directory: programs, and `verdicts.tsv` with a line for each.
const VARIABLE: &str = "ROUNDELAY_MSCCL_PROGRAMS";

/// The verdict in the words of the table.
fn verdict(name: &str, bytes: &[u8]) -> String {
    let text = msccl::read(name, bytes, None);
    let Some(program) = text.program else {
        return format!("refused: {}", text.errors[0].title);
    };
    let verdict = program.verdict(&text.source, &Connections::default());
    let mut said = String::new();
    let kind = |code| match code {
        Code::Race => "RACES",
        Code::WrongResult | Code::UninitializedRead => "WRONG",
        Code::FifoTooShallow | Code::Deadlock | Code::UnmatchedWait | Code::LeftOverSignal => {
            "DEADLOCK"
        }
        Code::SharedSignal => "E:2 blocks of a gpu",
        _ => "other",
    };
    for error in verdict.errors() {
        let _ = write!(said, "{} [{}] {}; ", kind(error.code), error.code, error.title);
    }
    if said.is_empty() {
        let orders = verdict.orders.map_or(String::new(), |n| format!(", {n} orders"));
        let safe = match verdict.safe {
            Some(Safe { bytes: Some(bytes), chunks }) => {
                format!(", {bytes} bytes m {chunks}")
            }
            _ => String::new(),
        };
        let what = if program.header.collective.is_some() {
            "right"
        } else {
            "no contract, nothing found"
        };
        said = format!("{what}{orders}{safe}");
    }
    said
}

/// Whether a verdict of the proof matches the table.
fn agrees(ours: &str, known: &str) -> bool {
    let kinds = ["DEADLOCK", "RACES", "E:2 blocks", "WRONG", "no contract, nothing found", "right"];
    let kind = |text: &str| kinds.into_iter().find(|kind| text.contains(kind));
    kind(ours) == kind(known) && kind(ours).is_some()
}

#[test]
fn published_programs() {
    let Some(directory) = std::env::var_os(VARIABLE) else {
        eprintln!("skipped: {VARIABLE} names no directory of published programs");
        return;
    };
    let directory = Path::new(&directory);
    let table =
        std::fs::read_to_string(directory.join("verdicts.tsv")).expect("a table of verdicts");
    let (mut good, mut bad) = (0, 0);
    for line in table.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let (file, known) = (columns[0], columns[columns.len() - 1]);
        let bytes = std::fs::read(directory.join(file)).expect("a program of the table");
        let start = Instant::now();
        let ours = verdict(file, &bytes);
        let took = start.elapsed();
        let same = agrees(&ours, known);
        *(if same { &mut good } else { &mut bad }) += 1;
        let mark = if same { "agrees" } else { "DIFFERS" };
        let name = file.rsplit('/').next().unwrap_or(file);
        eprintln!(
            "{mark} {name} {:.3} s\n    ours:  {ours}\n    known: {known}",
            took.as_secs_f64()
        );
    }
    eprintln!("{good} agree, {bad} differ");
    assert_eq!(bad, 0, "verdicts differ");
}
