//! Who brings the ranks of a run in, which is part of what a proof holds for.

/// Who brings the ranks into a run: one call for all of them, or a call for each.
///
/// It decides what a run's ends order: with one caller for all of them, every rank has entered before the first
/// op and none leaves before the last; ranks that call by themselves are ordered by signals alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callers {
    /// One call runs all ranks.
    One,
    /// Each rank is a call of its own, as in MPI.
    Each,
    /// Each rank is a call of its own, and the runtime sees to it that no rank touches another's buffers or takes its
    /// signals before that one has entered the same call.
    Announced,
}
