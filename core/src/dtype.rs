//! Element types and reduce ops: the two parameters of a plan that no schedule depends on.

#[doc(hidden)]
pub use roundelay_dtype::named_enum;
pub use roundelay_dtype::{DType, NoSuchOp, ReduceOp};

use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;

impl Diagnostic {
    /// Returns the error of a missing kernel for the reduce op and element type at `place`.
    pub fn no_such_op(none: NoSuchOp, place: Span) -> Self {
        Self::new(Code::NoSuchOp, place, none.to_string()).help(NoSuchOp::help())
    }
}
