//! The declaration of an algorithm: its parts beside the work of its ranks.

use crate::source::{Home, Span};

/// The declaration of an algorithm.
///
/// All declarations are equal, because algorithms are equal where the work of their ranks is.
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
}

impl PartialEq for Declaration {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

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

/// An escape: Rust that only the compiled crate can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escape {
    /// The place of the escape.
    pub span: Span,
    /// Its text, without the braces.
    pub text: String,
    /// The names in its text that have a value in the language, in the order of the operands.
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
