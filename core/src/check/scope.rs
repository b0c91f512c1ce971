//! Scopes, and the names that the language reserves.

use super::hir::VarId;
pub(super) use crate::diagnostics::near::nearest;

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

/// The values that every program has.
pub(super) const PREDEFINED: [&str; 5] = ["rank", "nranks", "local", "input", "output"];

/// The number of elements of a call, which only a `require` may name. A program may declare another thing with this
/// name.
pub(super) const COUNT: &str = "count";

/// All ranks, whose region a switch folds or writes. A program may declare another thing with this name.
pub(super) const ALL: &str = "all";

/// Returns the reason why a name cannot be declared, if there is one.
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
