//! The options of plans for GPUs.

use std::num::NonZeroU32;
use std::time::Duration;

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::layout::Configured;
use roundelay_core::optimize::Level;
use roundelay_core::verify::{Callers, Proved};
use roundelay_export::cuda::{Form, Kernel, Protocol, Spec};

use super::compile::THREADS;
use super::error::Error;
use crate::options::{Check, Options};

/// Bytes of the widest load.
pub(super) const VECTOR: u32 = 16;

/// The memory of callers that ranks in processes of their own let each other use where it is, from the second launch of a
/// plan on; launches on other memory copy it into the plan's own and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Registration {
    /// No memory of callers.
    Never,
    /// Memory that its owner may free at any time, as each process that maps it holds it: virtual memory with
    /// descriptors, as a [`RankBuffer`](super::RankBuffer), NCCL's own `ncclMemAlloc` and the expandable segments of `PyTorch` have.
    #[default]
    Shared,
    /// Plain allocations, too, as those of `cudaMalloc` are. Their owner frees none that a plan was launched on before the
    /// plans of all ranks are gone: the driver leaves open what other processes would see then.
    All,
}

/// The variable that names the memory to register.
const REGISTRATION: &str = "ROUNDELAY_REGISTER";

impl Registration {
    /// Returns the choice that the environment variable `ROUNDELAY_REGISTER` names.
    fn of_process() -> Result<Self, crate::Error> {
        match std::env::var_os(REGISTRATION).unwrap_or_default().to_string_lossy().as_ref() {
            "never" => Ok(Self::Never),
            "" | "shared" => Ok(Self::Shared),
            "all" => Ok(Self::All),
            name => Err(crate::Error::BadOption {
                what: format!("the environment variable {REGISTRATION} is `{name}`"),
                fix: "give `never`, `shared` or `all`, or leave it unset",
            }),
        }
    }
}

/// The options of a plan for GPUs: form and protocol of the kernel, threads, deadline.
///
/// The default is the author's loops, the protocol that the program asks for, CTAs of [`THREADS`] threads, as many CTAs
/// as the devices hold and the data is worth, a deadline of a minute, and the check that the environment variable
/// `ROUNDELAY_CHECK` names.
#[derive(Clone, Copy, Debug)]
pub struct CudaOptions {
    pub(super) protocol: Option<Protocol>,
    pub(super) form: Form,
    pub(super) threads: u32,
    pub(super) parts: Option<NonZeroU32>,
    /// `None` leaves it to the environment variable.
    registration: Option<Registration>,
    /// Deadline, level, `reassociate` and check, as the engine of the host has them.
    pub(super) common: Options,
}

impl Default for CudaOptions {
    fn default() -> Self {
        Self {
            protocol: None,
            form: Form::Loops,
            threads: THREADS,
            parts: None,
            registration: None,
            common: Options::default(),
        }
    }
}

impl CudaOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses how data and signals travel; by default the program's own statements say so ([`Protocol::for_algorithm`]).
    #[must_use]
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = Some(protocol);
        self
    }

    /// Chooses how the kernel holds the algorithm: as the author's loops, or as a table of ops that a fixed loop
    /// walks.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Sets the number of threads of a CTA: a multiple of 32, from 64 to 1024. Other numbers are refused when the plan
    /// is made (E0423).
    #[must_use]
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the number of CTAs that share the work of each stream of a rank; 0 means that the plan chooses. A number
    /// that the devices do not hold at once is refused when the plan is made (E0418).
    #[must_use]
    pub fn parts(mut self, parts: u32) -> Self {
        self.parts = NonZeroU32::new(parts);
        self
    }

    /// Chooses the memory of callers that ranks in processes of their own use where it is, whatever the environment
    /// variable `ROUNDELAY_REGISTER` names (`never`, `shared`, `all`). All ranks choose alike (E0414).
    #[must_use]
    pub fn registration(mut self, registration: Registration) -> Self {
        self.registration = Some(registration);
        self
    }

    pub(super) fn registers(&self) -> Result<Registration, crate::Error> {
        self.registration.map_or_else(Registration::of_process, Ok)
    }

    /// Sets the longest time of a wait, after which the launch is given up with [`crate::Error::Timeout`] (E0405).
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.common = self.common.deadline(deadline);
        self
    }

    /// Takes the deadline, the level, `reassociate` and the check from the options of the host's engine.
    #[must_use]
    pub fn common(mut self, options: Options) -> Self {
        self.common = options;
        self
    }

    /// Sets the level of the optimizer, which only the table form has: how much of the schedule may be rewritten.
    /// Results have the same bits at every level.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.common = self.common.level(level);
        self
    }

    /// Lets reductions nest otherwise than the author wrote them, in the table form. Results of floats may then
    /// differ in their last bits.
    #[must_use]
    pub fn reassociate(mut self, reassociate: bool) -> Self {
        self.common = self.common.reassociate(reassociate);
        self
    }

    /// Has the plan checked when it is made, by one launch on known data, whatever the environment variable
    /// `ROUNDELAY_CHECK` names. Wrong data is an error (E0433), and there is no plan then.
    #[must_use]
    pub fn check_calls(mut self, check: Check) -> Self {
        self.common = self.common.check_calls(check);
        self
    }

    /// The kernel of an algorithm that was proved, in the form and with the protocol that these options name.
    /// `callers`: whether one launch brings all ranks in, or one for each device. This method needs no part of CUDA.
    ///
    /// # Errors
    /// E0423 where the algorithm does not fit the form or the protocol; E0425 for a fault of the optimizer; E0431 where
    /// the elements do not have the op.
    pub fn kernel(
        &self,
        algorithm: &Configured,
        proved: &Proved,
        (element, op): (DType, ReduceOp),
        callers: Callers,
    ) -> Result<Kernel, Error> {
        let protocol = self.protocol.unwrap_or_else(|| Protocol::for_algorithm(algorithm));
        let spec = Spec { element, op, protocol, vector: VECTOR, callers };
        match self.form {
            Form::Loops => Kernel::of_loops(algorithm, proved, spec).map_err(Error::NoKernel),
            Form::Table => {
                let made = proved.optimize(self.common.goal(callers));
                let made = made.map_err(crate::Error::Unproved)?;
                Kernel::of_table(&made, spec).map_err(|refused| Error::NoKernel(vec![*refused]))
            }
            Form::Switch => {
                Kernel::of_switch(proved, spec).map_err(|refused| Error::NoKernel(vec![*refused]))
            }
        }
    }

    /// Nanoseconds of the deadline.
    pub(super) fn poll_limit(&self) -> u64 {
        u64::try_from(self.common.deadline.as_nanos()).unwrap_or(u64::MAX)
    }
}
