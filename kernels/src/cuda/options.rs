//! How a plan for GPUs is made and run.

use std::num::NonZeroU32;
use std::time::Duration;

use roundelay_core::emit::cuda::{Form, Protocol};
use roundelay_core::optimize::Level;

use super::compile::THREADS;

/// How to make and run a plan.
#[derive(Clone, Copy, Debug)]
pub struct CudaOptions {
    pub(super) protocol: Option<Protocol>,
    pub(super) form: Form,
    pub(super) threads: u32,
    pub(super) parts: Option<NonZeroU32>,
    pub(super) deadline: Duration,
    pub(super) level: Level,
    pub(super) reassociate: bool,
}

impl Default for CudaOptions {
    fn default() -> Self {
        Self {
            protocol: None,
            form: Form::Loops,
            threads: THREADS,
            parts: None,
            deadline: Duration::from_secs(60),
            level: Level::default(),
            reassociate: false,
        }
    }
}

impl CudaOptions {
    /// The author's loops, the protocol that the program asks for, CTAs of [`THREADS`] threads, as many of them as the
    /// devices hold and the data is worth, and a deadline of a minute.
    pub fn new() -> Self {
        Self::default()
    }

    /// How data and signals travel.
    #[must_use]
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = Some(protocol);
        self
    }

    /// How the kernel holds the algorithm.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Threads of a CTA: a multiple of 32, 1024 at most.
    #[must_use]
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    /// CTAs that share a stream; 0 means to choose.
    #[must_use]
    pub fn parts(mut self, parts: u32) -> Self {
        self.parts = NonZeroU32::new(parts);
        self
    }

    /// For how long a wait may last before the run is given up with [`crate::Error::Timeout`].
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// For the table form: how much of the schedule may be written otherwise. Results have the same bits.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// For the table form: lets reductions nest otherwise than the author says.
    #[must_use]
    pub fn reassociate(mut self, reassociate: bool) -> Self {
        self.reassociate = reassociate;
        self
    }

    /// Nanoseconds of the deadline.
    pub(super) fn poll_limit(&self) -> u64 {
        u64::try_from(self.deadline.as_nanos()).unwrap_or(u64::MAX)
    }
}
