//! What a command reads and writes: the streams of this process, or texts of whoever called it as a library.

use std::cell::RefCell;
use std::fmt::Display;
use std::io::{Read as _, Result, Write as _};

use anstream::adapter::strip_str;
use serde::Serialize;

thread_local! {
    /// Of the command that this thread runs: its streams are used by the thread that it runs on.
    static STREAMS: RefCell<Streams> = RefCell::default();
}

#[derive(Default)]
struct Streams {
    /// What standard input held, if it was read: it can be read once.
    typed: Option<String>,
    /// Whether standard output belongs to a file that was asked for as `-`.
    given_away: bool,
    /// What was written, where no stream of this process is.
    kept: Option<Kept>,
}

/// What a command wrote that ran as a function.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) out: String,
    pub(crate) err: String,
}

fn with<R>(then: impl FnOnce(&mut Streams) -> R) -> R {
    STREAMS.with_borrow_mut(then)
}

/// Runs `command` with this text on its standard input, and keeps what it writes.
pub(crate) fn keeping<R>(input: String, command: impl FnOnce() -> R) -> (R, Kept) {
    let kept = Some(Kept::default());
    let outer = with(|streams| {
        std::mem::replace(streams, Streams { typed: Some(input), given_away: false, kept })
    });
    /// What was there before comes back, also after a panic.
    struct Back(Option<Streams>);
    impl Drop for Back {
        fn drop(&mut self) {
            if let Some(outer) = self.0.take() {
                with(|streams| *streams = outer);
            }
        }
    }
    let back = Back(Some(outer));
    let outcome = command();
    let kept = with(|streams| streams.kept.take()).unwrap_or_default();
    drop(back);
    (outcome, kept)
}

/// Whether the command runs as a function of another program.
pub(crate) fn is_kept() -> bool {
    with(|streams| streams.kept.is_some())
}

/// What standard input holds.
pub(crate) fn input() -> Result<Vec<u8>> {
    if let Some(text) = typed() {
        return Ok(text.into_bytes());
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    if let Ok(text) = std::str::from_utf8(&bytes) {
        retype(Some(text.to_owned()));
    }
    Ok(bytes)
}

/// What standard input held, if it was read.
pub(crate) fn typed() -> Option<String> {
    with(|streams| streams.typed.clone())
}

/// Takes what another process read from its standard input for what is on this one's.
pub(crate) fn retype(typed: Option<String>) {
    if typed.is_some() {
        with(|streams| streams.typed = typed);
    }
}

/// From now on the report goes to standard error.
pub(crate) fn give_way() {
    with(|streams| streams.given_away = true);
}

/// Prints a value as one JSON document, to standard output.
pub(crate) fn print_json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value).expect("plain data serializes");
    print(&text);
}

/// Prints a line of the report; a closed pipe ends the program quietly.
pub(crate) fn print(text: &str) {
    if with(|streams| streams.given_away) {
        say(text);
    } else {
        put(&format!("{text}\n"));
    }
}

/// Prints to standard output, with colors where that takes them; a closed pipe ends the program quietly.
pub(crate) fn put(text: &str) {
    let printed = with(|streams| match &mut streams.kept {
        Some(kept) => {
            kept.out.extend(strip_str(text));
            Ok(())
        }
        None => anstream::stdout().lock().write_all(text.as_bytes()),
    });
    if printed.is_err() {
        std::process::exit(0);
    }
}

/// Prints what was asked for as `-`, to standard output as it is.
pub(crate) fn print_alone(text: &str) {
    let printed = with(|streams| match &mut streams.kept {
        Some(kept) => {
            kept.out.push_str(text);
            Ok(())
        }
        None => std::io::stdout().lock().write_all(text.as_bytes()),
    });
    if printed.is_err() {
        std::process::exit(0);
    }
}

/// Says a line on standard error. A closed pipe is no reason to fail twice.
pub(crate) fn say(text: impl Display) {
    with(|streams| match &mut streams.kept {
        Some(kept) => {
            kept.err.extend(strip_str(&text.to_string()));
            kept.err.push('\n');
        }
        None => _ = writeln!(anstream::stderr().lock(), "{text}"),
    });
}
