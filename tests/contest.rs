//! Executors in the contest's form: exported C++ under a stub runtime leaves the host's bits; the mistakes of a
//! published entry show in the entry and not in exported executors.

#[path = "contest/executable.rs"]
pub(crate) mod executable;
#[path = "contest/export.rs"]
mod export;
#[path = "contest/exports.rs"]
mod exports;
#[path = "contest/mistakes.rs"]
mod mistakes;
#[path = "contest/operator_mistakes.rs"]
mod operator_mistakes;
#[path = "contest/operators.rs"]
mod operators;
