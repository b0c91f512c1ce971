//! A schedule as a worked table: one line for each step, one word for each transfer.
//!
//! `a->b[x,y]` is data of rank a that goes to rank b: pieces x and y, if the buffer is cut into as many equal pieces as
//! there are ranks, or as the heading says. `a->b+[x]` is added to the data at rank b; no bracket means the whole
//! buffer, and `[1/3..1/2]` is a part of a buffer that does not divide into few equal pieces. In an `AllToAll`
//! `a->b[x,c:y]` carries piece y of rank c's input besides a's own piece x.

use std::fmt::Write as _;

use roundelay_core::diagnostics::Finding;
use roundelay_core::ids::RankId;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::Schedule;
use roundelay_core::verify::{Stretch, Transfer, transfers};

/// The most pieces of a buffer that are numbered.
const MOST_PIECES: u64 = 64;

/// With at most this number of pieces, runs of pieces are written out.
const FEW_PIECES: u64 = 4;

/// The transfers of each step, as words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    nranks: u32,
    /// The number of equal pieces; `None` if parts are written as fractions.
    pieces: Option<u64>,
    /// The words of each step.
    pub steps: Vec<Vec<String>>,
}

/// Returns the table of a schedule.
///
/// # Errors
/// The findings of a wrong schedule.
pub fn steps(schedule: &Schedule) -> Result<Steps, Vec<Finding>> {
    let transfers = transfers(schedule)?;
    let nranks = schedule.nranks;
    let ends = transfers.iter().flat_map(|t| &t.data).flat_map(|part| [part.lo, part.hi]);
    let pieces = pieces(ends, u64::from(nranks));
    let mut steps: Vec<Vec<String>> = Vec::new();
    for transfer in &transfers {
        let step = transfer.step as usize;
        steps.resize(steps.len().max(step + 1), Vec::new());
        steps[step].push(word(transfer, pieces));
    }
    Ok(Steps { nranks, pieces, steps })
}

impl Steps {
    /// Returns the line above the table: the number of ranks, the values of parameters, and the size of pieces.
    pub fn heading(&self, settings: &[(String, String)]) -> String {
        let Self { nranks, pieces, steps } = self;
        let mut text = format!("{nranks} rank{}", if *nranks == 1 { "" } else { "s" });
        for (name, value) in settings {
            let _ = write!(text, ", {name} = {value}");
        }
        match pieces {
            Some(pieces) if *pieces != u64::from(*nranks) => {
                let _ = write!(text, ", pieces of 1/{pieces}");
            }
            _ => {}
        }
        text + if steps.is_empty() { ": nothing travels" } else { ":" }
    }

    /// Returns a line for each step, or several lines if it is longer than `width` characters.
    pub fn lines(&self, width: usize) -> Vec<String> {
        let digits = self.steps.len().saturating_sub(1).to_string().len();
        let mut lines = Vec::new();
        for (step, words) in self.steps.iter().enumerate() {
            let mut line = format!("step {step:<digits$} ");
            let indent = line.len();
            for word in words {
                if line.len() > indent && line.len() + 1 + word.len() > width {
                    lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
                }
                line.push(' ');
                line.push_str(word);
            }
            lines.push(line);
        }
        lines
    }
}

/// Returns the least number of equal pieces for which all these ends are whole; without cuts, `nranks`.
fn pieces(ends: impl Iterator<Item = Rat>, nranks: u64) -> Option<u64> {
    let mut all = 1_u64;
    for end in ends {
        let times = Rat::new(end.den(), all)?.num();
        all = all.checked_mul(times).filter(|all| *all <= MOST_PIECES.max(nranks))?;
    }
    Some(if all == 1 { nranks } else { all })
}

fn word(transfer: &Transfer, pieces: Option<u64>) -> String {
    let Transfer { from, to, adds, data, .. } = transfer;
    let sign = if *adds { "+" } else { "" };
    let arrow = format!("{from}->{to}{sign}");
    if data.iter().any(|p| p.of.is_none() && (p.lo, p.hi) == (Rat::ZERO, Rat::ONE)) {
        return arrow;
    }
    // The sender's own pieces first.
    let mut data = data.clone();
    data.sort_by_key(|part| part.of.is_some_and(|of| of != *from));
    let parts: Vec<String> = data.iter().flat_map(|part| texts(*part, *from, pieces)).collect();
    format!("{arrow}[{}]", parts.join(","))
}

/// Returns a part as text for the brackets.
fn texts(part: Stretch, from: RankId, pieces: Option<u64>) -> Vec<String> {
    let Stretch { of, lo, hi } = part;
    let owner = match of {
        Some(rank) if rank != from => format!("{rank}:"),
        _ => String::new(),
    };
    let Some(pieces) = pieces else { return vec![format!("{owner}{lo}..{hi}")] };
    let [first, end] = [lo, hi].map(|end| end.num() * (pieces / end.den()));
    if pieces > FEW_PIECES && end - first > 2 {
        return vec![format!("{owner}{first}..{end}")];
    }
    (first..end).map(|piece| format!("{owner}{piece}")).collect()
}
