//! A function that runs at the end of a process.

use std::ffi::c_int;
use std::sync::OnceLock;

/// The process that asked, and what it asked for.
static THEN: OnceLock<(u32, fn())> = OnceLock::new();

unsafe extern "C" {
    fn atexit(then: extern "C" fn()) -> c_int;
}

/// Has a function run when this process exits, and not when a child that it forks does. Only the first function counts.
pub fn at_exit(then: fn()) {
    if THEN.set((std::process::id(), then)).is_ok() {
        // SAFETY: the function stays, and unwinds nowhere.
        unsafe { atexit(end) };
    }
}

extern "C" fn end() {
    if let Some((process, then)) = THEN.get()
        && *process == std::process::id()
    {
        then();
    }
}
