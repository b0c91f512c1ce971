//! The stack of the command: a thread of its own where the main thread has little of it (`ulimit -s`).

use std::thread::Builder;

use roundelay_core::diagnostics::Code;
use rustix::process::{Resource, getrlimit};

use crate::report::Failure;

/// The stack that is enough for every text: the compiler bounds how deep a text nests.
const ENOUGH: usize = 8 << 20;
/// A main thread with less than this does not run the command.
const LITTLE: u64 = 2 << 20;

/// Returns the exit code of `work`, which has a stack that is large enough.
pub(crate) fn with_enough(work: fn() -> u8) -> u8 {
    if getrlimit(Resource::Stack).current.is_none_or(|bytes| bytes >= LITTLE) {
        return work();
    }
    match Builder::new().name("main".to_owned()).stack_size(ENOUGH).spawn(work) {
        // A panic has printed its message, and ends the process as one of the main thread does.
        Ok(thread) => thread.join().unwrap_or(101),
        Err(error) => {
            let title = format!("the system refuses a stack of {ENOUGH} bytes: {error}");
            let help = "raise the limit of stacks (`ulimit -s`) or of memory (`ulimit -v`)";
            Failure::usage(Code::SystemRefused, title).with_help(help).print()
        }
    }
}
