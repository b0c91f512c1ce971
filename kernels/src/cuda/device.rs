//! One GPU, and the driver's calls that concern it alone.

#[cfg(target_os = "linux")]
use std::ffi::CStr;
use std::sync::Arc;

use cudarc::driver::sys::{CUdevice_P2PAttribute, CUdevice_attribute, CUresult};
use cudarc::driver::{CudaContext, CudaFunction, CudaSlice, DriverError, result, sys};
use cudarc::nvrtc::Ptx;

use super::arch::Arch;
use super::compile::Compiled;
use super::error::{Error, Part};

/// A GPU with its context.
pub(super) struct Device {
    pub(super) context: Arc<CudaContext>,
    pub(super) ordinal: usize,
    pub(super) name: String,
    pub(super) arch: Arch,
    /// The number of multiprocessors, each of which holds the same number of CTAs.
    pub(super) multiprocessors: u32,
}

/// Turns a driver's error into an [`Error`], with `what` as the failed action.
pub(super) fn failed(what: impl Into<String>) -> impl FnOnce(DriverError) -> Error {
    let what = what.into();
    move |error| Error::KernelFailed { what, why: words(error) }
}

fn words(error: DriverError) -> String {
    let text = error.error_string().map(|text| text.to_string_lossy().into_owned());
    let DriverError(code) = error;
    text.map_or_else(|_| format!("{code:?}"), |text| format!("{text} ({code:?})"))
}

/// Returns whether atomics of a device are whole in the memory of another one, as by `NVLink`; the error is the reason
/// why not.
pub(super) fn joined(reader: sys::CUdevice, owner: sys::CUdevice) -> Result<(), String> {
    let mut native = 0;
    // SAFETY: both devices are open, and the argument outlives the call.
    let asked = unsafe {
        sys::cuDeviceGetP2PAttribute(
            &raw mut native,
            CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
            reader,
            owner,
        )
    };
    match asked.result() {
        Ok(()) if native != 0 => Ok(()),
        Ok(()) => Err("no NVLink joins the devices".to_owned()),
        Err(error) => Err(format!("the driver does not tell: {error}")),
    }
}

/// Returns the number of GPUs; E0415 where there is no driver or no GPU.
pub(super) fn count() -> Result<usize, Error> {
    // SAFETY: libraries of these names do nothing when they are loaded. Without this, cudarc panics.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::missing(Part::Driver, ["the loader finds no libcuda.so.1"]));
    }
    let counted = result::init().and_then(|()| result::device::get_count());
    match counted.map_err(words) {
        Ok(count @ 1..) => Ok(count as usize),
        Ok(_) => Err(Error::missing(Part::Device, ["the driver counts none"])),
        Err(why) => Err(Error::missing(Part::Device, [format!("the driver says: {why}")])),
    }
}

/// Returns the number of the device that is current in this thread, 0 where none is; E0415 where there is no driver or no
/// GPU.
#[cfg(target_os = "linux")]
pub(super) fn current() -> Result<usize, Error> {
    count()?;
    let mut device = 0;
    // SAFETY: the driver is there, and the argument outlives the call.
    let found = unsafe { sys::cuCtxGetDevice(&raw mut device) };
    // A thread without a context has the first device, as in CUDA's runtime.
    Ok(if found.result().is_ok() { usize::try_from(device).unwrap_or(0) } else { 0 })
}

impl Device {
    /// Opens the GPU of that number, as the driver counts them.
    pub(super) fn open(ordinal: usize) -> Result<Self, Error> {
        let count = count()?;
        if ordinal >= count {
            let has = format!("there is no device {ordinal}: the driver counts {count}, from 0");
            return Err(Error::missing(Part::Device, [has]));
        }
        let what = || format!("opening device {ordinal}");
        let context = CudaContext::new(ordinal).map_err(failed(what()))?;
        let (major, minor) = context.compute_capability().map_err(failed(what()))?;
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        Ok(Self {
            ordinal,
            name: context.name().map_err(failed(what()))?,
            arch: Arch::of_capability(major as u32, minor as u32)?,
            multiprocessors: context.attribute(attribute).map_err(failed(what()))? as u32,
            context,
        })
    }

    /// Returns the address on the PCI bus, such as `0000:1B:00.0`; an empty text where the driver does not tell it.
    #[cfg(target_os = "linux")]
    pub(super) fn busid(&self) -> String {
        let (mut text, device) = ([0_u8; 32], self.context.cu_device());
        // SAFETY: the driver is there, and writes no more bytes than the text has.
        let told = unsafe { sys::cuDeviceGetPCIBusId(text.as_mut_ptr().cast(), 32, device) };
        let text = CStr::from_bytes_until_nul(&text).ok().filter(|_| told.result().is_ok());
        text.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
    }

    /// Returns the number of CTAs of a kernel that the device holds at once.
    pub(super) fn holds(&self, function: &CudaFunction, threads: u32) -> Result<u64, Error> {
        let each = function.occupancy_max_active_blocks_per_multiprocessor(threads, 0, None);
        let each = each.map_err(failed(format!("asking device {} for room", self.ordinal)))?;
        Ok(u64::from(each) * u64::from(self.multiprocessors))
    }

    /// Allocates `bytes` bytes, all zero.
    pub(super) fn zeros(&self, what: &str, bytes: usize) -> Result<CudaSlice<u8>, Error> {
        let stream = self.context.default_stream();
        // The driver has no blocks of no bytes. The bytes are zero when the method returns: a slice is freed on the
        // default stream of the device that its thread used last, which does not wait for this device.
        let memory = stream.alloc_zeros(bytes.max(1));
        let memory = memory.and_then(|memory| stream.synchronize().map(|()| memory));
        memory.map_err(|error| match error {
            DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => Error::DeviceMemory {
                what: what.to_owned(),
                device: self.ordinal,
                asked: bytes as u64,
                free: self.context.mem_get_info().map_or(0, |(free, _)| free as u64),
            },
            other => failed(format!("allocating {what} on device {}", self.ordinal))(other),
        })
    }

    /// Loads functions of a compiled text.
    pub(super) fn load<const N: usize>(
        &self,
        compiled: &Compiled,
        names: [&str; N],
    ) -> Result<[CudaFunction; N], Error> {
        let what = || format!("loading {} on device {}", names.join(" and "), self.ordinal);
        let module = self.context.load_module(Ptx::from_binary(compiled.cubin.clone()));
        let module = module.map_err(failed(what()))?;
        let found: Result<Vec<_>, _> =
            names.iter().map(|name| module.load_function(name)).collect();
        let found = found.map_err(failed(what()))?;
        Ok(found.try_into().unwrap_or_else(|_| unreachable!("one function for each name")))
    }

    /// Waits for all work of the device.
    pub(super) fn finish(&self, what: &str) -> Result<(), Error> {
        let done = self.context.synchronize();
        done.map_err(failed(format!("{what} on device {}", self.ordinal)))
    }
}
