//! The levels of warnings.

use roundelay_core::diagnostics::{Code, Diagnostic, Severity};
use roundelay_core::lints::{Level, Levels, Lint};
use roundelay_core::source::Span;

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
