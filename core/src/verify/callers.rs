//! The callers that bring the ranks into a run: a proof holds for one kind of callers.

/// The callers of the ranks of a run: one call for all ranks, or a call for each rank.
///
/// The kind decides the order at the ends of a run: with one caller for all ranks, every rank has entered before the
/// first op and none leaves before the last op; ranks that call by themselves are ordered by signals alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callers {
    /// One call runs all ranks.
    One,
    /// Each rank is a call of its own, as in MPI.
    Each,
    /// Each rank is a call of its own, and the runtime makes sure that no rank touches another rank's buffers or takes
    /// its signals before that rank has entered the call.
    Announced,
}
