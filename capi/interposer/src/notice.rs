//! Texts on standard error, and a line that a user sees once.

use std::fmt;
use std::io::{Write as _, stderr};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::parent_id;
use std::sync::OnceLock;

/// Writes a text on standard error; a text that cannot be written is left out.
pub fn tell(text: fmt::Arguments<'_>) {
    _ = stderr().write_fmt(text);
}

/// The socket that this process holds once it has printed a line; `None` where another process holds it.
#[derive(Debug, Default)]
pub struct SaidOnce(OnceLock<Option<UnixListener>>);

impl SaidOnce {
    /// A line that was not printed yet.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Prints a line on standard error, unless this process or another of its launcher on this host has printed one.
    pub fn say(&self, what: &str) {
        _ = self.0.get_or_init(|| {
            let name = format!("roundelay said {} {}", parent_id(), env!("CARGO_PKG_VERSION"));
            let address = SocketAddr::from_abstract_name(name).ok();
            // A name of the system that only one process has at a time; it has it until it ends.
            let first = address.map(|address| UnixListener::bind_addr(&address));
            if !first.as_ref().is_some_and(Result::is_err) {
                tell(format_args!("roundelay: {what}\n"));
            }
            first.and_then(Result::ok)
        });
    }
}
