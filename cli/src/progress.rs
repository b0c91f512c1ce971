//! The progress of a long check: a line on standard error while it goes on, and only where that is a terminal.

use std::cell::RefCell;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use roundelay_core::stages;

use crate::streams;

/// Between two pictures of the line.
const TICK: Duration = Duration::from_millis(100);

thread_local! {
    /// The subject of the work under way on this thread, such as an algorithm and its ranks.
    static SUBJECT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Sets the subject of the work under way, which is shown before its stage.
pub(crate) fn about(subject: String) {
    SUBJECT.set(subject);
}

/// Returns the result of `work`; while it goes on, its subject and its stage are shown, and how far the stage is.
pub(crate) fn shown<T>(work: impl FnOnce() -> T) -> T {
    let terminal = ProgressDrawTarget::stderr();
    if terminal.is_hidden() || streams::is_kept() {
        return work();
    }
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}").expect("a template");
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_style(style);
    let line = bar.clone();
    let draw = move || {
        line.set_draw_target(terminal);
        line.enable_steady_tick(TICK);
    };
    let line = bar.clone();
    let tell = move |stage: &'static str, hundredths: u32| {
        let subject = SUBJECT.with_borrow(Clone::clone);
        let colon = if subject.is_empty() { "" } else { ": " };
        line.set_message(match hundredths {
            0 => format!("{subject}{colon}{stage}"),
            some => format!("{subject}{colon}{stage} {some} %"),
        });
    };
    let done = streams::if_long(draw, || stages::watch(tell, work));
    bar.finish_and_clear();
    SUBJECT.take();
    done
}

/// The progress of a number of steps: drawn on standard error, and only where that is a terminal.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new(steps: usize) -> Self {
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
