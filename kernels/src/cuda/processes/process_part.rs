//! The part of a rank with a process and a GPU of its own: a kernel, a call on memory of the host, or both.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::CudaStream;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::layout::Configured;
use roundelay_core::verify::{Callers, Proved};
use roundelay_export::cuda::{Kernel, Protocol, Spec};

use super::super::device_rank::DeviceRank;
use super::super::error::Error;
use super::super::options::{CudaOptions, VECTOR};
use super::super::rank_plan::{PartOfRank, RankPlan};
use super::host_part::{HostCall, HostPart};
use super::levels_part::LevelsPart;
use super::part::KernelPart;
use super::rank::CudaRank;
use crate::lowering::first_call::{WORD, WORDS};
use crate::lowering::plan_call::PlannedCall;
use crate::options::Check;

/// One rank's part of a proved algorithm, in a process of its own.
pub type ProcessPlan = RankPlan<ProcessPart>;

/// The kind of work that a launch of a [`ProcessPlan`] issues.
pub enum ProcessPart {
    /// A kernel, where all ranks are on one host.
    Kernel(Box<KernelPart>),
    /// A call on memory of the host, where ranks are on several.
    Host(HostPart),
    /// Kernels on each host, and a call on memory of the host between them.
    Levels(Box<LevelsPart>),
}

/// A rank among those of its host, with their Reduce to the first rank and their Broadcast from it.
#[doc(hidden)]
pub type InsideHost<'a> = (&'a CudaRank, [(&'a Configured, &'a Proved); 2]);

impl ProcessPlan {
    /// The part of this process's rank in an algorithm that was proved for the number of ranks, for `count` elements a
    /// unit. The kernel is made in the form and with the protocol that `options` name, and compiled now. All ranks call
    /// it with equal arguments, and return together.
    ///
    /// # Errors
    /// E0401 where the proof is for another number of ranks; E0407 for memory with more bytes than addresses; E0413 with
    /// the error of another rank; E0414 where the ranks make different plans; E0415 without NVRTC; E0417 where NVRTC
    /// refuses the kernel; E0418 where the device does not hold all CTAs of the rank at once; E0419 where the device's
    /// memory does not suffice; E0423 where the algorithm does not fit the form, or a link between the ranks does not keep
    /// the lines of LL128 together; E0425 for a fault of the optimizer; E0428
    /// where the process of a rank ended; E0431 where the elements do not have the op; E0433 where `options` ask for a
    /// check, and any rank has wrong data.
    pub fn new(
        rank: &CudaRank,
        algorithm: &Configured,
        proved: &Proved,
        count: u64,
        (dtype, op): (DType, ReduceOp),
        options: CudaOptions,
    ) -> Result<Self, Error> {
        let kernel = options.kernel(algorithm, proved, (dtype, op), Callers::Each);
        let (part, call) = KernelPart::of_kernel(rank, kernel, count, options)?;
        let plan = Self::of(ProcessPart::Kernel(Box::new(part)), call)?;
        if options.common.checks()? == Check::First {
            plan.check_first(|exchange_of_words| {
                let kernel = words_kernel(exchange_of_words);
                let options = CudaOptions::default();
                let (part, call) = KernelPart::of_kernel(rank, kernel, WORDS, options)?;
                Self::of(ProcessPart::Kernel(Box::new(part)), call)
            })?;
        }
        Ok(plan)
    }

    /// The part of this process's rank in a call of ranks on several hosts, of which `proved` has the lengths: a launch has
    /// `call` made on memory of this host.
    ///
    /// # Errors
    /// E0421 where the driver gives no pinned memory.
    #[doc(hidden)]
    pub fn through_host(
        rank: &CudaRank,
        (proved, count): (&Proved, u64),
        (dtype, op): (DType, ReduceOp),
        options: CudaOptions,
        call: Box<dyn HostCall>,
    ) -> Result<Self, Error> {
        let planned = PlannedCall::new(proved, count, dtype, op);
        let part = HostPart::new(rank, planned.bytes(rank.rank()), options, call)?;
        Self::of(ProcessPart::Host(part), planned)
    }

    /// The part of this process's rank in an AllReduce of ranks on several hosts, on two levels: `inside` is the rank among
    /// those of its host, with their Reduce to the first and their Broadcast from it, where it has several; `between` makes
    /// the AllReduce of the first ranks of all hosts, on the first.
    ///
    /// # Errors
    /// The errors of [`Self::new`] and of [`Self::through_host`].
    #[doc(hidden)]
    pub fn on_levels(
        rank: &CudaRank,
        (proved, count): (&Proved, u64),
        kind: (DType, ReduceOp),
        options: CudaOptions,
        (inside, between): (Option<InsideHost<'_>>, Option<Box<dyn HostCall>>),
    ) -> Result<Self, Error> {
        let planned = PlannedCall::new(proved, count, kind.0, kind.1);
        let inside = inside.map(|(rank, algorithms)| {
            let part = |(algorithm, proved), options: CudaOptions| {
                let kernel = options.kernel(algorithm, proved, kind, Callers::Each);
                KernelPart::of_kernel(rank, kernel, count, options)
            };
            let [reduce, broadcast] = algorithms;
            // The Broadcast waits for the call between hosts, too.
            let longer = options.deadline(options.common.deadline.saturating_mul(2));
            Ok::<_, Error>((rank, [part(reduce, options)?, part(broadcast, longer)?]))
        });
        let bytes = planned.bytes(rank.rank());
        let between = between.map(|call| HostPart::new(rank, bytes, options, call));
        let part = LevelsPart::new(rank, inside.transpose()?, between.transpose()?);
        Self::of(ProcessPart::Levels(Box::new(part)), planned)
    }

    /// The reason why the rank's last launch copied its buffers into the plan's memory and back; `None` where the kernels
    /// of all ranks used them where they are.
    pub fn reason_for_copies(&self) -> Option<String> {
        match &self.part {
            ProcessPart::Kernel(part) => part.reason_for_copies(),
            ProcessPart::Host(_) | ProcessPart::Levels(_) => {
                Some("calls of ranks on several hosts go through memory of the hosts".to_owned())
            }
        }
    }

    /// The kernel that is launched, with its text and its schedule; `None` where ranks are on several hosts.
    pub fn kernel(&self) -> Option<&Kernel> {
        match &self.part {
            ProcessPart::Kernel(part) => Some(part.kernel()),
            ProcessPart::Host(_) | ProcessPart::Levels(_) => None,
        }
    }
}

/// Returns the kernel of the exchange of words.
fn words_kernel(proved: &Proved) -> Result<Kernel, Error> {
    let CudaOptions { common, .. } = CudaOptions::default();
    let made = proved.optimize(common.goal(Callers::Each)).map_err(crate::Error::Unproved)?;
    let (element, protocol, callers) = (WORD, Protocol::Simple, Callers::Each);
    let spec = Spec { element, op: ReduceOp::Sum, protocol, vector: VECTOR, callers };
    Kernel::of_table(&made, spec).map_err(|refused| Error::NoKernel(vec![*refused]))
}

impl ProcessPart {
    fn part(&self) -> &dyn PartOfRank {
        match self {
            Self::Kernel(part) => &**part,
            Self::Host(part) => part,
            Self::Levels(part) => &**part,
        }
    }
}

impl PartOfRank for ProcessPart {
    fn device_rank(&self) -> &DeviceRank {
        self.part().device_rank()
    }

    unsafe fn issue(
        &self,
        call: &PlannedCall,
        stream: (&Arc<CudaStream>, bool),
        io: [u64; 2],
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.part().issue(call, stream, io) }
    }

    fn check(&self, call: &PlannedCall, waited: Option<Duration>) -> Result<(), Error> {
        self.part().check(call, waited)
    }

    fn give_up(&self) {
        self.part().give_up();
    }

    fn describe(&self, text: &mut fmt::DebugStruct<'_, '_>) {
        self.part().describe(text);
    }
}
