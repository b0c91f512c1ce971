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

#[cfg(test)]
mod tests {
    use super::{Level, Levels, Lint};
    use crate::diagnostics::{Code, Diagnostic, Severity};
    use crate::source::Span;

    const VIEW: Lint = Lint::One(Code::UnusedView);

    /// Returns the levels of an unused view and of an unused step.
    fn left(levels: &[(Lint, Level)]) -> Vec<(Code, Severity)> {
        let mut all = Levels::default();
        for (lint, level) in levels {
            all.set(*lint, *level, None).expect("no level is set twice");
        }
        let warnings = [Code::UnusedView, Code::UnusedStep];
        let warnings = warnings.map(|code| Diagnostic::new(code, Span::default(), "unused"));
        all.apply(warnings.to_vec()).iter().map(|d| (d.code, d.severity)).collect()
    }

    #[test]
    fn a_code_goes_before_all_of_them() {
        use Code::{UnusedStep, UnusedView};
        use Severity::{Error, Warning};
        let (allow, deny) = (Level::Allow, Level::Deny);
        assert_eq!(left(&[]), [(UnusedView, Warning), (UnusedStep, Warning)]);
        assert_eq!(left(&[(Lint::All, deny)]), [(UnusedView, Error), (UnusedStep, Error)]);
        assert_eq!(left(&[(VIEW, allow), (Lint::All, deny)]), [(UnusedStep, Error)]);
        assert_eq!(left(&[(Lint::All, deny), (VIEW, allow)]), [(UnusedStep, Error)]);
        assert_eq!(left(&[(Lint::All, allow), (VIEW, deny)]), [(UnusedView, Error)]);
    }

    #[test]
    fn what_is_denied_nearer_stays_so() {
        let (mut near, mut far) = (Levels::default(), Levels::default());
        near.set(VIEW, Level::Deny, Some(Span::new(1, 2))).unwrap();
        far.set(Lint::All, Level::Allow, None).unwrap();
        let warning = Diagnostic::new(Code::UnusedView, Span::default(), "unused");
        let left = far.apply(near.apply(vec![warning]));
        assert_eq!(left.iter().map(|d| d.severity).collect::<Vec<_>>(), [Severity::Error]);
    }

    #[test]
    fn nothing_is_allowed_and_denied() {
        let mut levels = Levels::default();
        levels.set(VIEW, Level::Deny, None).unwrap();
        assert_eq!(levels.set(VIEW, Level::Deny, None), Ok(()));
        assert_eq!(levels.set(VIEW, Level::Allow, None), Err((Level::Deny, None)));
    }

    #[test]
    fn what_is_no_warning_is_not_read() {
        assert_eq!(Lint::parse("w0004"), Ok(VIEW));
        assert_eq!(Lint::parse("warnings"), Ok(Lint::All));
        for text in ["E0301", "W9999", "warning", "unused", ""] {
            let why = Lint::parse(text).unwrap_err();
            assert!(!why.title.is_empty() && !why.help.is_empty(), "{text}");
        }
        assert_eq!(Lint::parse("warning").unwrap_err().help, "did you mean `warnings`?");
    }
}
