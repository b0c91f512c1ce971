//! Selection files: which algorithm is used for which collective, rank count and sizes. A line is
//! `AllReduce nranks 8 bytes 0..=65536: MeshAllReduce`; `#` begins a comment, and the last range of sizes may be open.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

use roundelay::select::library;
use roundelay::{Algorithm as _, Collective};
use roundelay_core::diagnostics::Code;
use roundelay_core::diagnostics::near::nearest;
use serde::Serialize;

use super::ranges::Range;
use crate::report::{Failure, Format};
use crate::streams::{self, print, print_json};

/// The file that makes the choices of these ranges.
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

/// One line of a file.
struct Entry {
    line: usize,
    collective: Collective,
    nranks: u32,
    bytes: RangeInclusive<u64>,
    algorithm: String,
}

#[derive(Serialize)]
struct Wrong {
    line: usize,
    what: String,
}

#[derive(Serialize)]
struct Json {
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
    let (mut entries, mut wrong) = (Vec::new(), Vec::new());
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.split_once('#').map_or(content, |(content, _)| content).trim();
        if content.is_empty() {
            continue;
        }
        match entry(line, content) {
            Ok(entry) => entries.push(entry),
            Err(what) => wrong.push(Wrong { line, what }),
        }
    }
    if entries.is_empty() && wrong.is_empty() {
        return Err(Failure::usage(Code::BadFlag, format!("`{path}` chooses nothing")));
    }
    wrong.extend(overlaps(&entries));
    wrong.extend(gaps(&entries));
    wrong.sort_by_key(|wrong| wrong.line);
    let ok = wrong.is_empty();
    match format {
        Format::Json => print_json(&Json { ok, entries: entries.len(), wrong }),
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

/// The choice of a line, or why it is none.
fn entry(line: usize, content: &str) -> Result<Entry, String> {
    let form = "a line is such as `AllReduce nranks 8 bytes 0..=65536: MeshAllReduce`";
    let (calls, name) = content.split_once(':').ok_or(form)?;
    let words: Vec<&str> = calls.split_whitespace().collect();
    let [collective, "nranks", nranks, "bytes", bytes] = words[..] else {
        return Err(form.to_owned());
    };
    let collective = super::collective(collective)?;
    let nranks = nranks
        .parse()
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| format!("`{nranks}` is no rank count"))?;
    let bytes =
        range(bytes).ok_or_else(|| format!("`{bytes}` is no range of sizes such as 0..=65536"))?;
    let name = name.trim();
    let Some(algorithm) = library().iter().find(|known| known.name() == name) else {
        let meant = nearest(name, library().iter().map(roundelay::Algorithm::name));
        let meant = meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
        return Err(format!("the library has no algorithm `{name}`{meant}"));
    };
    if algorithm.collective() != collective {
        return Err(format!("{name} is for {}, not {collective}", algorithm.collective()));
    }
    if let Err(findings) = algorithm.schedule(nranks) {
        let why = findings.first().map_or_else(String::new, |finding| finding.title.clone());
        return Err(format!("{name} does not run there: {why}"));
    }
    Ok(Entry { line, collective, nranks, bytes, algorithm: name.to_owned() })
}

/// `0..=65536`, `0..65536` or `65536..`, and not empty.
fn range(text: &str) -> Option<RangeInclusive<u64>> {
    let (from, to) = text.split_once("..")?;
    let from = from.parse().ok()?;
    let to = match to.strip_prefix('=') {
        Some(to) => to.parse().ok()?,
        None if to.is_empty() => u64::MAX,
        None => to.parse::<u64>().ok()?.checked_sub(1)?,
    };
    (from <= to).then_some(from..=to)
}

/// Entries of the same collective and rank count, by their first size.
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

/// The first of two lines decides, so what both choose for never reaches the second.
fn overlaps(entries: &[Entry]) -> Vec<Wrong> {
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
            let (line, other) = (entry.line, &before.algorithm);
            let what = format!(
                "this choice {what}: line {} chooses {other} for {} to {} bytes",
                before.line,
                before.bytes.start(),
                before.bytes.end()
            );
            wrong.push(Wrong { line, what });
        }
    }
    wrong
}

/// Sizes for which no line chooses, between 0 and the largest of all.
fn gaps(entries: &[Entry]) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    for group in alike(entries) {
        let mut next = Some(0);
        for entry in group {
            if let Some(expected) = next
                && *entry.bytes.start() > expected
            {
                let what = format!("no choice for {expected}..{} bytes", entry.bytes.start());
                wrong.push(Wrong { line: entry.line, what });
            }
            next =
                next.map_or(None, |next| entry.bytes.end().checked_add(1).map(|end| end.max(next)));
        }
    }
    wrong
}
