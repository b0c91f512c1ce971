//! Selection files, written and checked.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use roundelay::selection::{Entry, Selection};
use roundelay::{Algorithm as _, Collective};
use roundelay_core::diagnostics::Code;
use serde::Serialize;

use super::ranges::Range;
use crate::report::{Failure, Format};
use crate::streams::{self, print, print_json};

/// Returns the file that makes the choices of these ranges.
pub(super) fn written(collective: Collective, nranks: u32, ranges: &[Range]) -> String {
    let mut text = String::from(
        "# collective, rank count, sizes in bytes as nccl-tests counts them, algorithm\n",
    );
    let mut from = 0;
    for Range { to, open, algorithm, .. } in ranges {
        let bytes = if *open { format!("{from}..") } else { format!("{from}..={to}") };
        let _ = writeln!(text, "{collective} nranks {nranks} bytes {bytes}: {algorithm}");
        from = to + 1;
    }
    text
}

#[derive(Serialize)]
struct Wrong {
    line: usize,
    what: String,
}

#[derive(Serialize)]
struct SelectionCheckJson {
    ok: bool,
    entries: usize,
    wrong: Vec<Wrong>,
}

/// Checks a selection file: whether each line makes sense, and whether sizes are left out or chosen for twice.
pub(super) fn check(path: &str, format: Format) -> Result<bool, Failure> {
    let unreadable = |why: String| {
        let title =
            format!("`{path}` is no collective, and cannot be read as a selection file: {why}");
        Failure::usage(Code::UnreadableSource, title)
    };
    let bytes = if path == "-" { streams::input() } else { streams::source(path) };
    let bytes = bytes.map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
    let (entries, mut wrong) = match Selection::parse(&text) {
        Ok(selection) => (selection.entries, Vec::new()),
        Err(wrong) => {
            (Vec::new(), wrong.into_iter().map(|wrong| (wrong.line, wrong.what)).collect())
        }
    };
    if entries.is_empty() && wrong.is_empty() {
        return Err(Failure::usage(Code::BadFlag, format!("`{path}` chooses nothing")));
    }
    wrong.extend(refusals(&entries));
    wrong.extend(overlaps(&entries));
    wrong.extend(gaps(&entries));
    wrong.sort_by_key(|(line, _)| *line);
    let wrong: Vec<_> = wrong.into_iter().map(|(line, what)| Wrong { line, what }).collect();
    let ok = wrong.is_empty();
    match format {
        Format::Json => print_json(&SelectionCheckJson { ok, entries: entries.len(), wrong }),
        Format::Human if ok => print(&format!(
            "{path}: {}, no gap and no overlap",
            crate::topo::count(entries.len(), "choice")
        )),
        Format::Human => {
            for Wrong { line, what } in &wrong {
                print(&format!("{path}:{line}: {what}"));
            }
        }
    }
    Ok(ok)
}

/// The number of a line, and the error in it.
type At = (usize, String);

/// Returns the algorithms that do not run on their number of ranks.
fn refusals(entries: &[Entry]) -> Vec<At> {
    let refusal = |entry: &Entry| {
        let findings = entry.algorithm.schedule(entry.nranks).err()?;
        let why = findings.first().map_or_else(String::new, |finding| finding.title.clone());
        Some((entry.line, format!("{} does not run there: {why}", entry.algorithm.name())))
    };
    entries.iter().filter_map(refusal).collect()
}

/// Returns the entries of each collective and rank count, by their first size.
fn alike(entries: &[Entry]) -> impl Iterator<Item = Vec<&Entry>> {
    let mut groups: BTreeMap<(&str, u32), Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        groups.entry((entry.collective.name(), entry.nranks)).or_default().push(entry);
    }
    groups.into_values().map(|mut group| {
        group.sort_by_key(|entry| (*entry.bytes.start(), entry.line));
        group
    })
}

/// Returns the lines that overlap an earlier one: the first of two lines decides, so sizes in both never reach the
/// second.
fn overlaps(entries: &[Entry]) -> Vec<At> {
    let mut wrong = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let before = entries[..at].iter().find(|before| {
            (before.collective, before.nranks) == (entry.collective, entry.nranks)
                && before.bytes.start() <= entry.bytes.end()
                && entry.bytes.start() <= before.bytes.end()
        });
        if let Some(before) = before {
            let whole = before.bytes.start() <= entry.bytes.start()
                && entry.bytes.end() <= before.bytes.end();
            let what = if whole { "is never reached" } else { "overlaps" };
            let (line, other) = (entry.line, before.algorithm.name());
            let what = format!(
                "this choice {what}: line {} chooses {other} for {} to {} bytes",
                before.line,
                before.bytes.start(),
                before.bytes.end()
            );
            wrong.push((line, what));
        }
    }
    wrong
}

/// Returns the sizes for which no line chooses, between 0 and the largest of all.
fn gaps(entries: &[Entry]) -> Vec<At> {
    let mut wrong = Vec::new();
    for group in alike(entries) {
        let mut next = Some(0);
        for entry in group {
            if let Some(expected) = next
                && *entry.bytes.start() > expected
            {
                let what = format!("no choice for {expected}..{} bytes", entry.bytes.start());
                wrong.push((entry.line, what));
            }
            next = next.and_then(|next| entry.bytes.end().checked_add(1).map(|end| end.max(next)));
        }
    }
    wrong
}
