//! Scopes, the names that the language keeps for itself, and the nearest name to a misspelt one.

use super::hir::VarId;

/// The visible declarations, innermost block last.
#[derive(Default)]
pub(super) struct Scope {
    names: Vec<(String, VarId)>,
    blocks: Vec<usize>,
}

impl Scope {
    pub(super) fn open(&mut self) {
        self.blocks.push(self.names.len());
    }

    pub(super) fn close(&mut self) {
        let start = self.blocks.pop().expect("as many blocks are closed as opened");
        self.names.truncate(start);
    }

    pub(super) fn declare(&mut self, name: &str, id: VarId) {
        self.names.push((name.to_owned(), id));
    }

    pub(super) fn find(&self, name: &str) -> Option<VarId> {
        self.names.iter().rev().find(|(known, _)| known == name).map(|(_, id)| *id)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|(name, _)| name.as_str())
    }
}

/// Values that every program has.
pub(super) const PREDEFINED: [&str; 5] = ["rank", "nranks", "local", "input", "output"];

/// Why a name cannot be declared, if so.
pub(super) fn reserved(name: &str) -> Option<&'static str> {
    match name {
        "rank" => Some("this rank's number"),
        "nranks" => Some("the number of ranks"),
        "local" => Some("this rank as a peer"),
        "input" | "output" => Some("a buffer of every rank"),
        "self" | "Self" | "super" | "crate" | "_" => Some("not a name that Rust lets us keep"),
        _ => None,
    }
}

/// The candidate that `name` most likely stands for: at most a third of its letters differ.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, delete or replace, and neighbours to swap; case does not count.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let letters = |s: &str| s.to_lowercase().chars().collect::<Vec<char>>();
    let (a, b) = (letters(a), letters(b));
    // rows[i][j]: from the first i letters of a to the first j of b.
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}
