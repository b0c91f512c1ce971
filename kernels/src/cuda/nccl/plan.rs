//! One rank's part of a proved algorithm, ready to be launched over NCCL.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};
use roundelay_core::diagnostics::{Diagnostic, Finding};
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::messages::{Groups, TwoSided};
use roundelay_core::source::Span;
use roundelay_core::verify::Proved;
use roundelay_export::cuda::check_width;

use super::super::device::failed;
use super::super::device_rank::DeviceRank;
use super::super::error::Error;
use super::super::fold::Folds;
use super::super::rank_plan::{PartOfRank, RankPlan};
use super::comm::NcclComm;
use super::issue::{FoldMemory, issue};
use super::nccl_steps::{Bases, NcclStep, Steps};
use crate::lowering::first_call::{WORD, WORDS};
use crate::lowering::plan_call::{PlannedCall, check_multiple};
use crate::options::{Check, Options};

/// One rank's part of a proved algorithm over NCCL's sends and receives.
pub type NcclPlan = RankPlan<NcclPart>;

/// The sends, receives and folds of a rank.
pub struct NcclPart {
    comm: NcclComm,
    steps: Steps,
    folds: Folds,
    scratch: CudaSlice<u8>,
}

/// A rank's memory on its device, in the order of a stream.
struct OnDevice<'a> {
    folds: &'a Folds,
    stream: &'a CudaStream,
}

impl FoldMemory for OnDevice<'_> {
    fn fold(&mut self, from: &[u64], to: u64, len: u64, divisor: i64) -> Result<(), Error> {
        // SAFETY: the addresses are within the buffers of the call, which stay lent until the stream is done.
        unsafe { self.folds.run(self.stream, from, to, len, divisor) }
    }
}

impl NcclPlan {
    /// The part of the communicator's rank in an algorithm that was proved for the communicator's number of ranks, for
    /// `count` elements a unit. The kernel that folds is compiled now.
    ///
    /// # Errors
    /// E0401 where the proof is for another number of ranks; E0407 for a buffer with more bytes than addresses; E0415
    /// without NVRTC; E0419 where the device's memory does not suffice; E0423 where the elements are narrower than f32 and
    /// the algorithm has sums that are not; E0425 for a fault of the compiler; E0426 where the algorithm cannot be brought
    /// to sends and receives; E0431 where the elements do not have the op; E0433 where the environment variable
    /// `ROUNDELAY_CHECK` asks for a check, and any rank has wrong data.
    pub fn new(
        comm: &NcclComm,
        proved: &Proved,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Self, Error> {
        let plan = Self::unchecked(comm, proved, count, dtype, op)?;
        if Options::default().checks()? == Check::First {
            plan.check_first(|exchange| {
                Self::unchecked(comm, exchange, WORDS, WORD, ReduceOp::Sum)
            })?;
        }
        Ok(plan)
    }

    /// Makes a plan without a check.
    fn unchecked(
        comm: &NcclComm,
        proved: &Proved,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Self, Error> {
        let nranks = proved.schedule().nranks;
        if nranks != comm.nranks() {
            let (what, given) = ("ranks of the communicator", comm.nranks() as usize);
            return Err(crate::Error::WrongBufferCount { what, given, nranks }.into());
        }
        op.check(dtype).map_err(crate::Error::NoSuchOp)?;
        check_multiple(proved.schedule(), count)?;
        let form = TwoSided::new(proved).map_err(unfit)?;
        check_width(form.schedule(), dtype).map_err(|wide| Error::NoKernel(vec![*wide]))?;
        let groups = Groups::new(&form).map_err(unfit)?;
        let steps = Steps::new(&form, &groups, comm.rank(), count, (dtype, op))?;
        let device = &comm.device;
        let what = format!("scratch of rank {}", comm.rank());
        let call = PlannedCall::new(form.schedule_with_proof(), count, dtype, op);
        let part = NcclPart {
            folds: Folds::new(device, (dtype, op), form.schedule())?,
            scratch: device.zeros(&what, steps.scratch as usize)?,
            steps,
            comm: comm.clone(),
        };
        // This waits for the default stream, not for the whole device: another rank of this process may be on the
        // device, and wait for this one.
        let zeroed = device.context.default_stream().synchronize();
        zeroed.map_err(failed("preparing the plan"))?;
        Self::of(part, call)
    }

    /// The number of groups of sends and receives that a launch issues.
    pub fn groups(&self) -> usize {
        self.part.groups()
    }
}

impl NcclPart {
    fn groups(&self) -> usize {
        self.steps.list.iter().filter(|step| matches!(step, NcclStep::Group { .. })).count()
    }
}

impl PartOfRank for NcclPart {
    fn device_rank(&self) -> &DeviceRank {
        &self.comm
    }

    unsafe fn issue(
        &self,
        _: &PlannedCall,
        (stream, _): (&Arc<CudaStream>, bool),
        [input, output]: [u64; 2],
    ) -> Result<(), Error> {
        let scratch = self.scratch.device_ptr(self.scratch.stream()).0;
        let bases = Bases { input, output, scratch };
        let mut memory = OnDevice { folds: &self.folds, stream };
        let mut link = self.comm.link();
        // SAFETY: the caller's promise; the steps were made for these lengths.
        unsafe { issue(&self.steps, &mut link, bases, stream.cu_stream().cast(), &mut memory) }
    }

    fn check(&self, call: &PlannedCall, waited: Option<Duration>) -> Result<(), Error> {
        let Some(waited) = waited else { return Ok(()) };
        let what = || format!("{} of rank {}", call.name(), self.comm.rank());
        let mut link = self.comm.link();
        link.check(&what())?;
        let deadline = self.comm.shared().deadline;
        if waited > deadline {
            link.give_up();
            let what = format!("waited {deadline:?} for {}", what());
            return Err(crate::Error::Late { what }.into());
        }
        Ok(())
    }

    fn give_up(&self) {
        self.comm.link().give_up();
    }

    fn describe(&self, text: &mut fmt::DebugStruct<'_, '_>) {
        text.field("comm", &self.comm).field("groups", &self.groups());
    }
}

/// Returns the error of an algorithm from its findings, without its source.
fn unfit(findings: Vec<Finding>) -> Error {
    let diagnostic = |finding: Finding| {
        let plain = Diagnostic::new(finding.code, Span::default(), finding.title);
        Diagnostic { notes: finding.notes, help: finding.help, ..plain }
    };
    Error::NoKernel(findings.into_iter().map(diagnostic).collect())
}
