//! The estimated time of a launch, before there is one: of a plan on its device, and of a kernel on a GPU that this
//! machine need not have.

use cudarc::driver::sys::CUdevice_attribute;
use roundelay_export::cuda::Kernel;

use super::compile::{Target, fit};
use super::device::failed;
use super::error::Error;
use super::options::CudaOptions;
use super::plan::{CudaPlan, check_threads, resident_parts};
use super::world::CudaWorld;
use crate::grid::{Estimate, Gpu, LaunchShape};

/// The architecture for which kernels are compiled for a GPU of the model.
const ARCH: &str = "sm_90";

/// The launch of a kernel on a GPU that this machine need not have, as NVRTC compiles it, and its estimated time.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// CTAs of each stream, and the bytes that each of them has under way.
    pub shape: LaunchShape,
    /// CTAs that a multiprocessor is to hold at once.
    pub ctas: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// The estimated time of a launch.
    pub estimate: Estimate,
}

impl Outlook {
    /// The outlook of `kernel` for `count` elements a unit, with all ranks on one `gpu`. Threads and parts are those of
    /// `options`. `graph`: whether a CUDA graph launches it. The estimate needs NVRTC, but no GPU.
    ///
    /// # Errors
    /// E0415 without NVRTC; E0417 where NVRTC refuses the kernel; E0418 where the GPU would not hold all CTAs at once;
    /// E0423 for a number of threads that no CTA can have.
    pub fn for_kernel(
        kernel: &Kernel,
        count: u64,
        gpu: &Gpu,
        options: CudaOptions,
        graph: bool,
    ) -> Result<Self, Error> {
        let threads = check_threads(options.threads)?;
        let target = Target { threads, ..Target::new(ARCH.parse()?) };
        let fitted = fit(&kernel.text, &kernel.name, &target)?;
        let (ctas, shape) =
            (fitted.target.ctas, shape(kernel, count, gpu, options, &fitted.target)?);
        let shape = LaunchShape { graph, ..shape };
        let registers = fitted.compiled.resources(&kernel.name).map_or(0, |used| used.registers);
        let estimate = Estimate::for_launch(kernel, count, gpu, shape);
        Ok(Self { shape, ctas, registers, estimate })
    }

    /// The shape of a launch of `kernel` without a graph, before the kernel is compiled: a multiprocessor holds one
    /// CTA, which has as many bytes under way as two would have.
    ///
    /// # Errors
    /// E0418 where the GPU would not hold all CTAs at once.
    pub fn expected_shape(
        kernel: &Kernel,
        count: u64,
        gpu: &Gpu,
        options: CudaOptions,
    ) -> Result<LaunchShape, Error> {
        shape(kernel, count, gpu, options, &Target::new(ARCH.parse()?))
    }
}

/// Returns the shape of a launch of a kernel that was compiled for `target`, with all ranks on one `gpu`.
fn shape(
    kernel: &Kernel,
    count: u64,
    gpu: &Gpu,
    options: CudaOptions,
    target: &Target,
) -> Result<LaunchShape, Error> {
    let streams = kernel.schedule.streams.len() as u64;
    let holds = u64::from(gpu.multiprocessors) * u64::from(target.ctas);
    let nranks = kernel.schedule.nranks;
    let parts = resident_parts(kernel, count, options, &[(streams, holds)], |_| nranks)?;
    Ok(LaunchShape { parts, in_flight: target.block_in_flight(), graph: false })
}

impl CudaWorld {
    /// The first device as the model sees it. `copy_bandwidth`: the result of [`Self::copy_bandwidth`] on that device.
    ///
    /// # Errors
    /// E0421 where the driver reports an error.
    pub fn gpu(&self, copy_bandwidth: f64) -> Result<Gpu, Error> {
        let device = &self.devices[0];
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE;
        let cache = device.context.attribute(attribute);
        let cache =
            cache.map_err(failed(format!("asking device {} for its cache", device.ordinal)))?;
        let cache = u64::try_from(cache).unwrap_or(0);
        let memory = device.context.mem_get_info();
        let (_, memory) =
            memory.map_err(failed(format!("asking device {} for its memory", device.ordinal)))?;
        let sizes = (memory as u64, cache);
        Ok(Gpu::like_hopper(&device.name, device.multiprocessors, copy_bandwidth, sizes))
    }
}

impl CudaPlan {
    /// The estimated time of a launch on `gpu`. `graph`: whether a CUDA graph launches it.
    pub fn estimate(&self, gpu: &Gpu, graph: bool) -> Estimate {
        let shape = LaunchShape { parts: self.parts, in_flight: self.in_flight, graph };
        Estimate::for_launch(&self.kernel, self.call.count, gpu, shape)
    }
}
