//! The progress of long work: a line on standard error while it goes on, and only where that is a terminal.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use roundelay_core::stages;

use crate::report::took;
use crate::streams;

/// Between two pictures of the line.
const TICK: Duration = Duration::from_millis(100);

/// The line, while work goes on, and the subject of the work, such as an algorithm and its ranks.
static LINE: Mutex<Option<(ProgressBar, String)>> = Mutex::new(None);

/// Sets the subject of the work under way, which is shown before its stage.
pub(crate) fn about(subject: String) {
    with(|bar, known| {
        bar.set_message(subject.clone());
        *known = subject;
    });
}

fn with(then: impl FnOnce(&ProgressBar, &mut String)) {
    let mut line = LINE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((bar, subject)) = &mut *line {
        then(bar, subject);
    }
}

/// Runs `print` without the line in its way.
fn apart(print: &mut dyn FnMut()) {
    let line = LINE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match line {
        Some((bar, _)) => bar.suspend(print),
        None => print(),
    }
}

/// Returns the result of `work`; while it goes on, its subject and its stage are shown, how far the stage is, and for how
/// long the work goes on. Work within such work has the same line.
pub(crate) fn shown<T>(work: impl FnOnce() -> T) -> T {
    let terminal = ProgressDrawTarget::stderr();
    let quiet = is_unwanted() || terminal.is_hidden();
    let mut line = LINE.lock().unwrap_or_else(PoisonError::into_inner);
    if quiet || line.is_some() {
        drop(line);
        return work();
    }
    let elapsed = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        // A text takes all that is written.
        _ = write!(text, "{}", took(state.elapsed().as_secs_f64()));
    };
    streams::print_within(apart);
    let style = ProgressStyle::with_template("{spinner} {msg} ({for})").expect("a template");
    let style = style.with_key("for", elapsed);
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_style(style);
    *line = Some((bar.clone(), String::new()));
    drop(line);
    let drawn = bar.clone();
    let draw = move || {
        drawn.set_draw_target(terminal);
        drawn.enable_steady_tick(TICK);
    };
    let tell = |stage: &'static str, parts: usize, of: usize| {
        with(|bar, subject| bar.set_message(far(subject, stage, (parts, of))));
    };
    let done = streams::if_long(draw, || stages::watch(tell, work));
    *LINE.lock().unwrap_or_else(PoisonError::into_inner) = None;
    bar.finish_and_clear();
    done
}

/// Whether the caller wants no progress.
fn is_unwanted() -> bool {
    streams::is_quiet() || streams::is_kept()
}

/// Returns the subject, its stage, and how far that is, such as `Ring, 8 ranks: replay, 6.1 of 10.5 M ops`.
fn far(subject: &str, stage: &str, (parts, of): (usize, usize)) -> String {
    let mut text = subject.to_owned();
    text.push_str(if subject.is_empty() { "" } else { ": " });
    text.push_str(stage);
    let millions = |ops: usize| ops as f64 / 1e6;
    // A text takes all that is written.
    _ = match parts {
        0 => Ok(()),
        _ => write!(text, ", {:.1} of {:.1} M ops", millions(parts), millions(of)),
    };
    text
}

/// The progress of a number of steps: drawn on standard error, and only where that is a terminal.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new(steps: usize) -> Self {
        if is_unwanted() {
            return Self(ProgressBar::hidden());
        }
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg}");
        Self(ProgressBar::new(steps as u64).with_style(style.expect("a template")))
    }

    /// Notes that a step is done.
    pub(crate) fn step(&self) {
        self.0.inc(1);
    }

    /// Shows the subject of the step under way.
    pub(crate) fn message(&self, text: String) {
        self.0.set_message(text);
    }

    /// Runs `print` without the bar in its way.
    pub(crate) fn apart(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}
