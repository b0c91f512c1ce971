//! The streams of a command: the standard streams of this process, or texts of the caller that runs it as a library.

use std::cell::RefCell;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anstream::adapter::strip_str;
use roundelay::tools::problem_text;
use roundelay_core::diagnostics::Code;
use roundelay_core::syntax::read_limit;
use roundelay_topology::Problem;
use serde::Serialize;

/// Work that ends before this is not spoken of.
const LONG: Duration = Duration::from_secs(1);

thread_local! {
    /// The streams of the command that runs on this thread; only this thread uses them.
    static STREAMS: RefCell<Streams> = RefCell::default();
}

/// How much a command says beside its results, warnings and errors.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Loudness {
    /// Nothing.
    Quiet,
    /// Notes, progress and summaries.
    #[default]
    Usual,
    /// The time of results, too, and constants that they depend on.
    Verbose,
}

#[derive(Default)]
struct Streams {
    loudness: Loudness,
    /// The text of standard input, if it was read: it can be read once.
    typed: Option<String>,
    /// Whether standard output belongs to a file that was asked for as `-`.
    given_away: bool,
    /// The output, where the command does not write to streams of this process.
    kept: Option<Kept>,
}

/// The output of a command that ran as a function.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) out: String,
    pub(crate) err: String,
}

fn with<R>(then: impl FnOnce(&mut Streams) -> R) -> R {
    STREAMS.with_borrow_mut(then)
}

/// Runs `command` with this text on its standard input, and keeps its output.
pub(crate) fn keeping<R>(input: String, command: impl FnOnce() -> R) -> (R, Kept) {
    let kept = Some(Kept::default());
    let outer = with(|streams| {
        std::mem::replace(streams, Streams { typed: Some(input), kept, ..Streams::default() })
    });
    /// Restores the earlier streams, also after a panic.
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

/// Says as much as this from now on.
pub(crate) fn speak(loudness: Loudness) {
    with(|streams| streams.loudness = loudness);
}

pub(crate) fn is_quiet() -> bool {
    with(|streams| streams.loudness == Loudness::Quiet)
}

pub(crate) fn is_verbose() -> bool {
    with(|streams| streams.loudness == Loudness::Verbose)
}

/// Returns the bytes of standard input, up to the limit of a source.
pub(crate) fn input() -> Result<Vec<u8>, String> {
    if let Some(text) = typed() {
        return Ok(text.into_bytes());
    }
    let bytes = patiently("standard input", || read_limit::source(|| Ok(io::stdin().lock())))?;
    if let Ok(text) = std::str::from_utf8(&bytes) {
        retype(Some(text.to_owned()));
    }
    Ok(bytes)
}

/// Returns the bytes of a source of that name, up to the limit of a source.
pub(crate) fn source(path: &str) -> Result<Vec<u8>, String> {
    patiently(&format!("`{path}`"), || read_limit::source(|| File::open(path)))
}

/// Returns the bytes of a file that is no source; `None` if they are more than `largest`.
pub(crate) fn bytes(path: &str, largest: u64) -> io::Result<Option<Vec<u8>>> {
    patiently(&format!("`{path}`"), || read_limit::bytes(File::open(path)?, largest))
}

/// Reads, and says after a second that it waits: opening or reading a pipe can take as long as its writer likes.
fn patiently<T>(name: &str, read: impl FnOnce() -> T) -> T {
    if is_kept() || is_quiet() {
        return read();
    }
    let name = name.to_owned();
    if_long(move || say(format!("waiting for the end of {name}")), read)
}

/// Returns the result of `work`; if that takes longer than a second, `then` is called meanwhile, on a thread of its
/// own.
pub(crate) fn if_long<T>(then: impl FnOnce() + Send + 'static, work: impl FnOnce() -> T) -> T {
    let (ended, end) = channel::<()>();
    // Where the system has no other threads, the work goes on in silence.
    let patience = thread::Builder::new().spawn(move || {
        if end.recv_timeout(LONG) == Err(RecvTimeoutError::Timeout) {
            then();
        }
    });
    let done = work();
    drop(ended);
    // The work does not need the thread's result.
    _ = patience.map(thread::JoinHandle::join);
    done
}

/// Returns the text of standard input, if it was read.
pub(crate) fn typed() -> Option<String> {
    with(|streams| streams.typed.clone())
}

/// Sets the text of standard input to the text that another process read.
pub(crate) fn retype(typed: Option<String>) {
    if typed.is_some() {
        with(|streams| streams.typed = typed);
    }
}

/// Sends the report to standard error from now on.
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

/// Prints a line of the report that no result depends on, such as a summary; a quiet command does not.
pub(crate) fn remark(text: &str) {
    if !is_quiet() {
        print(text);
    }
}

/// Prints to standard output, with colors where that takes them.
pub(crate) fn put(text: &str) {
    let printed = with(|streams| match &mut streams.kept {
        Some(kept) => {
            kept.out.extend(strip_str(text));
            Ok(())
        }
        None => apart(|| write(anstream::stdout().lock(), text)),
    });
    printed.unwrap_or_else(|error| ended(&error));
}

/// Prints the text of the file `-` to standard output, unchanged.
pub(crate) fn print_alone(text: &str) {
    let printed = with(|streams| match &mut streams.kept {
        Some(kept) => {
            kept.out.push_str(text);
            Ok(())
        }
        None => apart(|| write(io::stdout().lock(), text)),
    });
    printed.unwrap_or_else(|error| ended(&error));
}

/// The function within which output is printed, such as one that takes a line of progress out of its way.
type Around = fn(&mut dyn FnMut());

static AROUND: OnceLock<Around> = OnceLock::new();

/// Prints all output within a call of `around` from now on.
pub(crate) fn print_within(around: Around) {
    // It is always the same function.
    _ = AROUND.set(around);
}

fn apart<T>(print: impl FnOnce() -> T) -> T {
    let Some(around) = AROUND.get() else { return print() };
    let (mut print, mut printed) = (Some(print), None);
    around(&mut || printed = print.take().map(|print| print()));
    printed.expect("the function calls it")
}

/// Writes without a buffer, so that a failed write is reported here.
fn write(mut out: impl io::Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Ends the program when standard output takes no more: a closed pipe ends the program quietly, a full disk does not.
fn ended(error: &io::Error) -> ! {
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    let title = format!("standard output cannot be written: {error}");
    say(problem_text(&Problem::new(Code::Unwritable, title), true));
    std::process::exit(2);
}

/// Says a note on standard error; a quiet command does not.
pub(crate) fn note(text: impl Display) {
    if !is_quiet() {
        say(text);
    }
}

/// Says a line on standard error. A closed pipe is no reason to fail twice.
pub(crate) fn say(text: impl Display) {
    with(|streams| match &mut streams.kept {
        Some(kept) => {
            kept.err.extend(strip_str(&text.to_string()));
            kept.err.push('\n');
        }
        None => apart(|| _ = writeln!(anstream::stderr().lock(), "{text}")),
    });
}
