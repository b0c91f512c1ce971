//! The levels of warnings: attributes of an algorithm and flags make a warning an error, or drop it.

use crate::diagnostics::near::nearest;
use crate::diagnostics::{Code, Diagnostic, Severity};
use crate::source::Span;

const FORM: &str = "write the code of a warning, such as `W0002`, or `warnings` for all of them";

/// The name of a warning, or of all warnings, in `allow` and `deny`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lint {
    /// The warning of this code.
    One(Code),
    /// `warnings`: every warning that is not named by its code.
    All,
}

impl Lint {
    /// Reads `W0002` or `warnings`.
    ///
    /// # Errors
    /// The reason why the text is neither, and a suggestion.
    pub fn parse(text: &str) -> Result<Self, Unknown> {
        if text == "warnings" {
            return Ok(Self::All);
        }
        match Code::parse(text) {
            Some(code) if code.severity() == Severity::Warning => Ok(Self::One(code)),
            Some(code) => Err(Unknown {
                title: format!("{code} is an error, and is neither allowed nor denied"),
                help: FORM.to_owned(),
            }),
            None => Err(Unknown {
                title: format!("no warning is called `{text}`"),
                help: match nearest(text, ["warnings"]) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => FORM.to_owned(),
                },
            }),
        }
    }

    /// Returns the word for it in the source.
    pub const fn name(self) -> &'static str {
        match self {
            Self::One(code) => code.as_str(),
            Self::All => "warnings",
        }
    }
}

/// The reason why a text names no warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The problem with the text.
    pub title: String,
    /// The correction.
    pub help: String,
}

/// The level that a warning is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The warning is dropped.
    Allow,
    /// The warning is an error.
    Deny,
}

impl Level {
    /// Returns the word for the level.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// The levels of warnings. A code has precedence over `warnings`, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// Each warning once, with its level and the place in the source that sets it, if one does.
    set: Vec<(Lint, Level, Option<Span>)>,
}

impl Levels {
    /// Sets the level of a warning.
    ///
    /// # Errors
    /// The level that the warning was set to before, and the place, if that is another level.
    pub fn set(
        &mut self,
        lint: Lint,
        level: Level,
        at: Option<Span>,
    ) -> Result<(), (Level, Option<Span>)> {
        match self.set.iter().find(|(known, ..)| *known == lint) {
            Some((_, known, before)) if *known != level => Err((*known, *before)),
            Some(_) => Ok(()),
            None => {
                self.set.push((lint, level, at));
                Ok(())
            }
        }
    }

    /// Applies the levels to `warnings`. Warnings that are errors already stay errors: the nearer setting has
    /// precedence.
    pub fn apply(&self, warnings: Vec<Diagnostic>) -> Vec<Diagnostic> {
        warnings.into_iter().filter_map(|warning| self.one(warning)).collect()
    }

    fn one(&self, mut warning: Diagnostic) -> Option<Diagnostic> {
        let named = |lint| self.set.iter().find(|(known, ..)| *known == lint);
        let found = named(Lint::One(warning.code)).or_else(|| named(Lint::All));
        match found {
            Some((lint, level, at)) if warning.severity == Severity::Warning => match level {
                Level::Allow => None,
                Level::Deny => {
                    warning.severity = Severity::Error;
                    Some(match at {
                        Some(span) => warning.other(*span, "denied here"),
                        None => warning.note(format!("denied by `--deny {}`", lint.name())),
                    })
                }
            },
            _ => Some(warning),
        }
    }
}
