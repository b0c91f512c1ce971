//! The moves after which averages divide.

use crate::ids::OpId;

/// The moves that make sums complete as they round them, in one mode of a replay.
#[derive(Default)]
pub(crate) struct Completions {
    /// The moves that make all of their destination complete.
    finish: Vec<OpId>,
    /// Whether a move makes a part of its destination complete.
    partial: bool,
}

impl Completions {
    /// Records a move that makes `complete` of its `all` results complete.
    pub(crate) fn record(&mut self, at: OpId, complete: usize, all: usize) {
        if complete > 0 && complete == all {
            self.finish.push(at);
        } else if complete > 0 {
            self.partial = true;
        }
    }

    /// Returns the moves that complete their destinations, in ascending order; `None` where a move completes a part of its
    /// destination, or where the moves depend on the mode.
    pub(crate) fn uniform(mut modes: impl Iterator<Item = Self>) -> Option<Vec<OpId>> {
        let Self { mut finish, partial } = modes.next()?;
        if partial || modes.any(|mode| mode.partial || mode.finish != finish) {
            return None;
        }
        finish.sort_unstable();
        Some(finish)
    }
}
