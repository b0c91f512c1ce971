//! Folds that the host issues one by one: copies, and a kernel that folds up to eight sources, or a number into each element.

use std::sync::Arc;

use cudarc::driver::sys::CUstream;
use cudarc::driver::{
    CudaContext, CudaFunction, CudaStream, DeviceRepr, LaunchConfig, PushKernelArg, result,
};
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::schedule::Schedule;

use super::compile::{Target, compile};
use super::device::{Device, failed};
use super::device_rank::DeviceRank;
use super::error::Error;
pub use crate::grid::fold::Scalar;
use crate::grid::fold::{FoldCall, NAME, blocks, text};

// SAFETY: words without padding, as the kernel's text has them.
unsafe impl DeviceRepr for FoldCall {}

/// Folds of one element type and op on a device.
pub(super) struct Folds {
    kernel: CudaFunction,
    threads: u32,
    element_size: u64,
}

impl Folds {
    /// Compiles the kernel for the device. Its folds of narrow floats round once, or after each source where the folds
    /// of the schedule are chains.
    pub(super) fn new(
        device: &Device,
        (dtype, op): (DType, ReduceOp),
        schedule: &Schedule,
    ) -> Result<Self, Error> {
        Self::of_text(device, dtype, &text(dtype, op, schedule.has_chains()))
    }

    fn of_text(device: &Device, dtype: DType, text: &str) -> Result<Self, Error> {
        let target = Target::new(device.arch);
        let [kernel] = device.load(&*compile(text, NAME, &target)?, [NAME])?;
        Ok(Self { kernel, threads: target.threads, element_size: dtype.size() as u64 })
    }

    /// Enqueues `to = from[0]`, with each other source folded into it in turn, divided by `divisor` unless that is 0: a
    /// copy where one source is not divided, otherwise a launch of the kernel.
    ///
    /// # Safety
    /// Each address is valid for `len` elements on the device of `stream`, until `stream` is done.
    pub(super) unsafe fn run(
        &self,
        stream: &CudaStream,
        from: &[u64],
        to: u64,
        len: u64,
        divisor: i64,
    ) -> Result<(), Error> {
        let bytes = len * self.element_size;
        let nothing = from == [to] && divisor == 0;
        if bytes == 0 || nothing {
            return Ok(());
        }
        let issue = || failed("issuing a fold");
        if let ([from], 0) = (from, divisor) {
            stream.context().bind_to_thread().map_err(issue())?;
            // SAFETY: the caller promises it.
            let copied =
                unsafe { result::memcpy_dtod_async(to, *from, bytes as usize, stream.cu_stream()) };
            return copied.map_err(issue());
        }
        // SAFETY: the caller promises it.
        unsafe { self.launch(stream, &FoldCall::new(from, to, len, divisor), bytes) }
    }

    /// Launches the kernel.
    ///
    /// # Safety
    /// The kernel touches only memory that is valid on the device of `stream`, until `stream` is done.
    unsafe fn launch(&self, stream: &CudaStream, call: &FoldCall, bytes: u64) -> Result<(), Error> {
        let config = LaunchConfig {
            grid_dim: (blocks(bytes), 1, 1),
            block_dim: (self.threads, 1, 1),
            shared_mem_bytes: 0,
        };
        let mut builder = stream.launch_builder(&self.kernel);
        builder.arg(call);
        // SAFETY: the kernel takes this argument; the caller promises the rest.
        unsafe { builder.launch(config) }.map_err(failed("issuing a fold"))?;
        Ok(())
    }
}

/// Products of all elements of a buffer with one number, on the device of a rank.
///
/// Integers wrap, and narrow floats are rounded once, as in a reduction by `Prod`.
pub struct Products {
    folds: Folds,
    context: Arc<CudaContext>,
}

impl Products {
    /// Compiles the kernel for an element type.
    ///
    /// # Errors
    /// E0421 where the driver or NVRTC refuses; E0415 without NVRTC.
    pub fn new(rank: &DeviceRank, dtype: DType) -> Result<Self, Error> {
        let folds = Folds::of_text(&rank.device, dtype, &text(dtype, ReduceOp::Prod, false))?;
        Ok(Self { folds, context: rank.context().clone() })
    }

    /// Calls `then` with the address of a buffer of `len` products, the elements at `from` times `number`, which is there
    /// for what `then` enqueues on `stream`.
    ///
    /// # Errors
    /// E0419 or E0421 where the driver has no memory or refuses; the error of `then`.
    ///
    /// # Safety
    /// The stream is one of the rank's device. The address of the elements, and that of the number if it has one, are valid
    /// on the device until `stream` is done, and aligned for the type.
    pub unsafe fn multiply(
        &self,
        stream: CUstream,
        (from, len): (u64, usize),
        number: Scalar,
        then: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let bytes = len * self.folds.element_size as usize;
        if bytes == 0 {
            return then(from);
        }
        // SAFETY: the caller's promise; the value goes before this function returns.
        let on = unsafe { self.context.wrap_borrowed_stream(stream) };
        let refused = || failed("making products");
        self.context.bind_to_thread().map_err(refused())?;
        // SAFETY: the context is current, and the memory is freed below.
        let to = unsafe { result::malloc_async(stream, bytes) }.map_err(refused())?;
        let call = FoldCall::by_number(from, to, len as u64, number);
        // SAFETY: the caller's promise, and the memory is there until `stream` has passed the kernel.
        let launched = unsafe { self.folds.launch(&on, &call, bytes as u64) };
        let done = launched.and_then(|()| then(to));
        // SAFETY: allocated above, and freed once, after what was enqueued.
        unsafe { result::free_async(to, stream) }.map_err(refused())?;
        done
    }
}

#[cfg(test)]
mod tests {
    use super::super::compile::tests::compiled;
    use super::*;

    #[test]
    fn what_folds_compiles_for_every_type_and_op_without_spills() {
        let f32s = ["sm_80", "sm_100"].map(|arch| (DType::F32, ReduceOp::Sum, arch));
        let (bits, others): (Vec<ReduceOp>, Vec<ReduceOp>) =
            ReduceOp::ALL.iter().partition(|op| op.is_for_integers());
        let kinds =
            DType::ALL.iter().zip(others.iter().cycle()).chain(DType::ALL.iter().zip(&bits));
        // Each takes a second of NVRTC: a usual run takes types of each width, some integers and some floats.
        let usual = [DType::F8E4M3, DType::Bf16, DType::I8, DType::U32, DType::F64];
        let whole = std::env::var("ROUNDELAY_TESTS").is_ok_and(|which| which == "all");
        let kinds = kinds.filter(|(dtype, _)| whole || usual.contains(dtype));
        let all = kinds.map(|(dtype, op)| (*dtype, *op, "sm_90"));
        for (dtype, op, arch) in all.chain(f32s) {
            let compiled = compiled(&text(dtype, op, arch == "sm_80"), NAME, arch);
            assert!(compiled.usage.iter().any(|usage| usage.name == NAME), "{}", compiled.log);
            let spills = compiled.usage.iter().find(|usage| usage.spill_stores > 0);
            assert_eq!(spills, None, "{dtype} {op} {arch}");
        }
    }
}
