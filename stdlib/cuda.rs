//! The same algorithms on NVIDIA GPUs: the author's loops as one kernel, which NVRTC compiles and the driver launches.
//!
//! ```no_run
//! use roundelay::cuda::{CudaWorld, OnDevice as _};
//! use roundelay::{DType, ReduceOp, library::RingAllReduce};
//!
//! // Eight ranks on the first GPU; E0415 says what is missing where there is none.
//! let world = CudaWorld::on(&[0], 8)?;
//! let plan = RingAllReduce::new().plan_on_device(&world, 1 << 20, DType::F32, ReduceOp::Sum)?;
//! println!("{}", plan.kernel().text);
//! # Ok::<(), roundelay::Error>(())
//! ```
//!
//! A plan is launched on slices of [`cudarc`], one for each rank, and returns at once.

use roundelay_core::check::others::Others;
use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::reread;
use roundelay_core::schedule::interpret::Interpreted;

#[doc(inline)]
pub use roundelay_core::emit::cuda::{Element, Form, Kernel, Protocol, Spec};
#[doc(inline)]
pub use roundelay_core::optimize::Callers;
#[doc(inline)]
pub use roundelay_kernels::cuda::{
    CudaOptions, CudaPlan, CudaWorld, Error, Missing, Part, Refused, cudarc,
};

use crate::library::SOURCES;
use crate::plans::proved;
use crate::{Algorithm, ReduceOp};

/// Bytes of the widest load that GPUs have.
const VECTOR: u32 = 16;

/// From an algorithm to a kernel, and to a plan that launches it: as [`crate::ToPlan`] does for the host, from the same
/// source.
pub trait OnDevice: Algorithm {
    /// The kernel of the author's loops, for all ranks in one launch, by the protocol that the program asks for. It
    /// needs no GPU.
    ///
    /// # Errors
    /// E0423 where the loops do not fit a kernel; whatever the proof finds.
    fn kernel(
        &self,
        nranks: u32,
        element: impl Into<Element>,
        op: ReduceOp,
    ) -> Result<Kernel, crate::Error> {
        let algorithm = read(self)?;
        let protocol = Protocol::of(algorithm.checked());
        let (element, callers) = (element.into(), Callers::One);
        loops(self, &algorithm, nranks, Spec { element, op, protocol, vector: VECTOR, callers })
    }

    /// The same, made for that.
    fn kernel_with(&self, nranks: u32, spec: Spec) -> Result<Kernel, crate::Error> {
        loops(self, &read(self)?, nranks, spec)
    }

    /// A plan for the ranks of `world` and `count` elements a unit (NCCL's count), proved first, always.
    ///
    /// # Errors
    /// E0415 without NVRTC, E0417 to E0419 where the kernel does not fit the device, E0423 where the loops do not fit
    /// a kernel: then [`CudaOptions::form`] has the table form, which is never taken unasked.
    fn plan_on_device(
        &self,
        world: &CudaWorld,
        count: u64,
        element: impl Into<Element>,
        op: ReduceOp,
    ) -> Result<CudaPlan, crate::Error> {
        self.plan_on_device_with(world, count, element, op, CudaOptions::default())
    }

    /// The same, to be made and run so.
    fn plan_on_device_with(
        &self,
        world: &CudaWorld,
        count: u64,
        element: impl Into<Element>,
        op: ReduceOp,
        options: CudaOptions,
    ) -> Result<CudaPlan, crate::Error> {
        let (algorithm, proved) = (read(self)?, proved(self, world.nranks())?);
        let kind = (element.into(), op);
        Ok(CudaPlan::new(world, &algorithm, &proved, count, kind, options)?)
    }
}

impl<A: Algorithm + ?Sized> OnDevice for A {}

/// The author's loops: what was expanded has only what they came to.
fn read<A: Algorithm + ?Sized>(algorithm: &A) -> Result<Interpreted, crate::Error> {
    reread(algorithm, &Others::library(SOURCES)).map_err(unfit)
}

fn loops<A: Algorithm + ?Sized>(
    algorithm: &A,
    read: &Interpreted,
    nranks: u32,
    spec: Spec,
) -> Result<Kernel, crate::Error> {
    Kernel::of_loops(read, &proved(algorithm, nranks)?, spec).map_err(unfit)
}

fn unfit(why: Vec<Diagnostic>) -> crate::Error {
    Error::NoKernel(why).into()
}
