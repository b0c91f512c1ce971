//! Errors of one cause, told as one.

use super::Diagnostic;

/// The most other places of an error that are shown.
const SHOWN: usize = 4;

/// Returns the errors with all those of one cause as the first of them, which shows the places of the others.
pub fn join_causes(all: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut told: Vec<(Diagnostic, usize)> = Vec::new();
    for error in all {
        let alike = |(first, _): &&mut (Diagnostic, usize)| {
            first.cause.is_some() && first.cause == error.cause
        };
        let Some((first, more)) = told.iter_mut().find(alike) else {
            told.push((error, 0));
            continue;
        };
        if first.help == error.help {
            first.edits.extend(error.edits);
        }
        if *more == 0 && first.others.len() < SHOWN {
            first.others.push((error.primary, "and here".to_owned()));
        } else {
            *more += 1;
        }
    }
    let one = |(error, more): (Diagnostic, usize)| match more {
        0 => error,
        1 => error.note("and at 1 more place"),
        _ => error.note(format!("and at {more} more places")),
    };
    told.into_iter().map(one).collect()
}
