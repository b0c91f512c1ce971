//! The declaration of an algorithm: its parts beside the work of its ranks.

use std::sync::Arc;

use crate::check::Verify;
use crate::check::hir;
use crate::source::{Home, Span};

/// The declaration of an algorithm. The text form of a program has none.
///
/// All declarations are equal, because programs are equal where the work of their ranks is.
#[derive(Clone, Debug, Default, Eq)]
pub struct Declaration {
    /// The lines of its doc comment.
    pub docs: Vec<String>,
    /// Whether `pub` stands before it.
    pub public: bool,
    /// The source in which its caller found it.
    pub home: Home,
    /// The proofs that its author asks for.
    pub verify: Option<Verify>,
    /// The number of ranks of the machine that `#[topology]` describes, where it describes one machine.
    pub machine: Option<u32>,
    /// Its own `rust { }` escapes, by their numbers.
    pub escapes: Vec<Escape>,
    /// Its source in canonical form.
    pub source: String,
    /// The checked tree, for the CUDA text.
    pub(crate) checked: Option<Arc<hir::Algorithm>>,
}

impl PartialEq for Declaration {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// An escape: Rust that only the compiled crate can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escape {
    /// Its number, as in the operator of the program.
    pub number: u32,
    /// The place of the escape.
    pub span: Span,
    /// Its text, without the braces.
    pub text: String,
    /// The names in its text that have a value of the program, in the order of the operator's operands.
    pub scope: Vec<EscapeName>,
}

/// A name in the text of an escape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EscapeName {
    /// The name.
    pub name: String,
    /// The place where the author declares it as a variable, if it is one.
    pub declared: Option<Span>,
    /// The method of [`Scope`](crate::values::escape::Scope) that returns its value.
    pub method: &'static str,
}
