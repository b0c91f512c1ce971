//! Lines in NCCL's log.

use std::ffi::{CString, c_int, c_ulong};

use crate::interface::Logger;

const WARN: c_int = 2;
const INFO: c_int = 3;
/// The subsystem of NCCL's log that is about the choice of algorithms.
const TUNING: c_ulong = 0x40;

/// The log of a communicator; without NCCL's function it says nothing.
#[derive(Clone, Copy)]
pub(crate) struct NcclLog(Option<Logger>);

impl NcclLog {
    pub(crate) const fn new(log: Option<Logger>) -> Self {
        Self(log)
    }

    /// Says something that who reads about the choice of algorithms wants to know.
    pub(crate) fn say(self, text: &str) {
        self.line(INFO, text);
    }

    /// Says why the plugin leaves a communicator to NCCL.
    pub(crate) fn leave(self, why: &str) {
        self.say(&alone(why));
    }

    /// Says by which mistake the plugin does nothing.
    pub(crate) fn warn(self, why: &str) {
        self.line(WARN, &alone(why));
    }

    fn line(self, level: c_int, text: &str) {
        let Some(log) = self.0 else { return };
        // A text of C ends at its first zero.
        let Ok(text) = CString::new(format!("Roundelay: {}", text.replace('\0', " "))) else {
            return;
        };
        // SAFETY: NCCL's function, with texts that outlive the call and a format of one text.
        unsafe { log(level, TUNING, c"roundelay".as_ptr(), 0, c"%s".as_ptr(), text.as_ptr()) };
    }
}

fn alone(why: &str) -> String {
    format!("{why}. NCCL decides alone.")
}
