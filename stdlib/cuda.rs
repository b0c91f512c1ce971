//! Algorithms on NVIDIA GPUs: the author's loops become one kernel, which NVRTC compiles and the driver launches.
//!
//! ```no_run
//! use roundelay::cuda::{CudaWorld, OnDevice as _};
//! use roundelay::{DType, ReduceOp, library::RingAllReduce};
//!
//! // Eight ranks on the first GPU; E0415 says what is missing where there is none.
//! let world = CudaWorld::on_devices(&[0], 8)?;
//! let plan = RingAllReduce::new().plan_on_device(&world, 1 << 20, DType::F32, ReduceOp::Sum)?;
//! println!("{}", plan.kernel().text);
//! # Ok::<(), roundelay::Error>(())
//! ```
//!
//! A [`CudaPlan`] is launched on slices of [`cudarc`], one for each rank, and a launch returns at once.
//!
//! Ranks that are threads or processes of their own, on one machine or on many, have [`NcclPlan`]s instead: plans of
//! the same algorithms over NCCL's sends and receives.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use roundelay::cuda::{NcclComm, NcclId, OnDevice as _};
//! use roundelay::{DType, ReduceOp, library::RingAllReduce};
//!
//! # fn rank_of_this_process() -> (u32, u32) { (0, 2) }
//! # fn shared_by_all(id: NcclId) -> NcclId { id }
//! // Rank 0 makes the name, and the others get it by whatever way they have.
//! let (rank, nranks) = rank_of_this_process();
//! let id = shared_by_all(NcclId::new()?);
//! let comm = NcclComm::join(0, &id, rank, nranks, Duration::from_secs(60))?;
//! let plan = RingAllReduce::new().plan_over_nccl(&comm, 1 << 20, DType::F32, ReduceOp::Sum)?;
//! let input = comm.buffer("input", 4 * plan.input_len())?;
//! let mut output = comm.buffer("output", 4 * plan.output_len())?;
//! plan.launch_bytes(comm.stream(), &input, &mut output)?;
//! plan.wait()?;
//! # Ok::<(), roundelay::Error>(())
//! ```
//!
//! The processes of a host with a GPU each, as training jobs have them, run the kernels themselves: each maps the memory
//! of the others.
//!
//! ```no_run
//! # #[cfg(target_os = "linux")]
//! # fn main() -> Result<(), roundelay::Error> {
//! use roundelay::cuda::{CudaOptions, OnDevice as _};
//! use roundelay::{DType, ReduceOp, World, library::RingAllReduce};
//!
//! // A rank of `roundelay launch`, torchrun or mpirun, on the GPU of its number.
//! let world = World::from_env()?;
//! let rank = world.on_device(world.rank().id() as usize)?;
//! let (f32s, sum, options) = (DType::F32, ReduceOp::Sum, CudaOptions::new());
//! let plan = RingAllReduce::new().plan_on_rank(&rank, 1 << 20, f32s, sum, options)?;
//! let input = rank.buffer("input", 4 * plan.input_len())?;
//! let mut output = rank.buffer("output", 4 * plan.output_len())?;
//! plan.launch_bytes(rank.stream(), &input, &mut output)?;
//! plan.wait()?;
//! # Ok(())
//! # }
//! # #[cfg(not(target_os = "linux"))]
//! # fn main() {}
//! ```
//!
//! Neither CUDA nor a driver is needed to build this module, nor for [`OnDevice::kernel`]: both libraries are looked
//! for when they are used, and E0415 says which library is missing and where it was looked for.

mod choice;
#[cfg(target_os = "linux")]
mod device_calls;

use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::layout::Configured;

#[cfg(target_os = "linux")]
pub use device_calls::DeviceCalls;
#[cfg(target_os = "linux")]
pub(crate) use device_calls::{HostCalls, HostKernels};
#[doc(inline)]
pub use roundelay_core::verify::Callers;
#[doc(inline)]
pub use roundelay_export::cuda::{Form, Kernel, Protocol, Spec};
#[doc(no_inline)]
pub use roundelay_kernels::cuda::cudarc;
#[doc(inline)]
pub use roundelay_kernels::cuda::{
    CudaOptions, CudaPlan, CudaWorld, DeviceRank, Error, Missing, NcclComm, NcclId, NcclPlan, Part,
    PlanGraph, RankPlan, Refused, Registration,
};
#[cfg(target_os = "linux")]
#[doc(inline)]
pub use roundelay_kernels::cuda::{CudaRank, ProcessPlan, RankBuffer, Transport};
#[doc(inline)]
pub use roundelay_kernels::grid::{Estimate, Gpu, LaunchShape};

pub use choice::{KernelChoice, KernelRow, select};

use crate::plans::proved;
use crate::{Algorithm, DType, ReduceOp};

/// Bytes of the widest load that GPUs have.
const VECTOR: u32 = 16;

/// Makes kernels of an algorithm, and plans that launch them on GPUs, from the same source from which
/// [`ToPlan`](crate::ToPlan) makes plans for the host.
///
/// Every algorithm has these methods; `use roundelay::cuda::OnDevice as _` brings them into scope. Counts are NCCL's,
/// elements of one unit of the collective.
pub trait OnDevice: Algorithm {
    /// Returns the kernel of the author's loops for `nranks` ranks, all of them in one launch, with the protocol that
    /// the program asks for ([`Protocol::for_algorithm`]). The algorithm is proved first. This needs neither a GPU nor NVRTC.
    ///
    /// # Errors
    /// E0423 where the loops do not fit a kernel; [`Error::Unproved`](crate::Error::Unproved) with the findings of
    /// the proof (E02xx, E03xx).
    fn kernel(&self, nranks: u32, dtype: DType, op: ReduceOp) -> Result<Kernel, crate::Error> {
        let algorithm = self.configured();
        let protocol = Protocol::for_algorithm(&algorithm);
        let (element, callers) = (dtype, Callers::One);
        loops(self, &algorithm, nranks, Spec { element, op, protocol, vector: VECTOR, callers })
    }

    /// Returns the kernel of the author's loops for `nranks` ranks, made for the element type, reduce op, protocol,
    /// widest load and way of launching that `spec` names.
    ///
    /// # Errors
    /// E0423 also where the program does not fit the protocol; else the errors of [`OnDevice::kernel`].
    fn kernel_with(&self, nranks: u32, spec: Spec) -> Result<Kernel, crate::Error> {
        loops(self, &self.configured(), nranks, spec)
    }

    /// Makes a plan for the ranks of `world` and `count` elements a unit (NCCL's count), with the default options: the
    /// author's loops as a kernel. The algorithm is always proved first.
    ///
    /// # Errors
    /// [`Error::Unproved`](crate::Error::Unproved) with the findings of the proof; E0415 without NVRTC; E0417 to
    /// E0419 where the kernel does not fit the device; E0423 where the loops do not fit a kernel:
    /// [`CudaOptions::form`] offers the table form for that, which is never taken unasked.
    fn plan_on_device(
        &self,
        world: &CudaWorld,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<CudaPlan, crate::Error> {
        self.plan_on_device_with(world, count, dtype, op, CudaOptions::default())
    }

    /// Makes a plan for the ranks of `world` and `count` elements a unit, made and run with `options`: form and
    /// protocol of the kernel, threads, deadline.
    ///
    /// # Errors
    /// E0423 also for a number of threads that no CTA can have; else the errors of [`OnDevice::plan_on_device`].
    fn plan_on_device_with(
        &self,
        world: &CudaWorld,
        count: u64,
        dtype: DType,
        op: ReduceOp,
        options: CudaOptions,
    ) -> Result<CudaPlan, crate::Error> {
        let (algorithm, proved) = (self.configured(), proved(self, world.nranks())?);
        let kind = (dtype, op);
        Ok(CudaPlan::new(world, &algorithm, &proved, count, kind, options)?)
    }

    /// Makes the plan of one rank of `comm` over NCCL's sends and receives, for `count` elements a unit (NCCL's count).
    /// All ranks make the same plan. The algorithm is proved first, and converted to sends and receives that give the
    /// same bits.
    ///
    /// # Errors
    /// [`Error::Unproved`](crate::Error::Unproved) with the findings of the proof; E0407 for a buffer with more bytes
    /// than addresses; E0415 without NVRTC, which compiles the reductions; E0419 where the device's memory does not
    /// suffice; E0426 where the algorithm cannot be converted to sends and receives; E0431 where the elements do not
    /// have the op.
    fn plan_over_nccl(
        &self,
        comm: &NcclComm,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<NcclPlan, crate::Error> {
        Ok(NcclPlan::new(comm, &proved(self, comm.nranks())?, count, dtype, op)?)
    }

    /// Makes the plan of one rank with a process and a GPU of its own, for `count` elements a unit (NCCL's count), made
    /// and run with `options`: one kernel a rank, on memory that all ranks map. All ranks make the same plan.
    ///
    /// # Errors
    /// [`Error::Unproved`](crate::Error::Unproved) with the findings of the proof; else the errors of
    /// [`ProcessPlan::new`].
    #[cfg(target_os = "linux")]
    fn plan_on_rank(
        &self,
        rank: &CudaRank,
        count: u64,
        dtype: DType,
        op: ReduceOp,
        options: CudaOptions,
    ) -> Result<ProcessPlan, crate::Error> {
        let (algorithm, proved) = (self.configured(), proved(self, rank.nranks())?);
        Ok(ProcessPlan::new(rank, &algorithm, &proved, count, (dtype, op), options)?)
    }
}

impl<A: Algorithm + ?Sized> OnDevice for A {}

fn loops<A: Algorithm + ?Sized>(
    algorithm: &A,
    read: &Configured,
    nranks: u32,
    spec: Spec,
) -> Result<Kernel, crate::Error> {
    Kernel::of_loops(read, &proved(algorithm, nranks)?, spec).map_err(unfit)
}

fn unfit(why: Vec<Diagnostic>) -> crate::Error {
    Error::NoKernel(why).into()
}
