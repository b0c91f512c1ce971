//! The attribute `#[verify(…)]`.

use crate::source::Span;

/// The proofs of `#[verify(…)]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verify {
    /// These rank counts, at expansion and in the generated test.
    Counts {
        /// The counts, each once, in order.
        counts: Vec<u32>,
        /// Whether each count was named: then a refusal of one is an error.
        named: bool,
        /// The place of the counts.
        span: Span,
    },
    /// No proof at expansion, and no generated test; plans are proved in any case.
    Off {
        /// The reason.
        reason: String,
    },
}
