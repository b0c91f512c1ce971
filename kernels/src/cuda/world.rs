//! Ranks on GPUs: any number on one device, or on several devices of this process that reach each other's memory.

use std::sync::Arc;

use cudarc::driver::sys::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemLocation, CUmemLocationType, CUresult,
};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DriverError, result, sys};
use roundelay_core::ids::RankId;

use super::device::{self, Device, failed};
use super::error::Error;
use crate::grid::Placement;

/// The GPUs of this process on which ranks run, and the placement of the ranks on them.
#[derive(Clone)]
pub struct CudaWorld {
    pub(super) devices: Arc<[Device]>,
    pub(super) placement: Placement,
}

impl CudaWorld {
    /// A world of `nranks` ranks on the devices with these numbers, which count from 0. Each device has a row of
    /// consecutive ranks, in rows as even as possible; a repeated number counts once.
    ///
    /// # Errors
    /// E0409 for no ranks; E0415 without a driver, without a GPU of that number, or for no numbers; E0422 where one of
    /// several devices cannot reach another's memory.
    pub fn on_devices(ordinals: &[usize], nranks: u32) -> Result<Self, Error> {
        if nranks == 0 {
            return Err(crate::Error::NoRanks { nranks: 0 }.into());
        }
        let mut devices: Vec<Device> = Vec::new();
        for ordinal in ordinals {
            if devices.iter().all(|device| device.ordinal != *ordinal) {
                devices.push(Device::open(*ordinal)?);
            }
        }
        if devices.is_empty() {
            let tried = ["no device was named"];
            return Err(Error::missing(super::error::Part::Device, tried));
        }
        for from in &devices {
            for to in devices.iter().filter(|to| to.ordinal != from.ordinal) {
                reach(from, to)?;
            }
        }
        let placement = Placement { devices: devices.len(), nranks };
        Ok(Self { devices: devices.into(), placement })
    }

    /// The number of GPUs that this machine has.
    ///
    /// # Errors
    /// E0415 where there is no driver or no GPU.
    pub fn count_devices() -> Result<usize, Error> {
        device::count()
    }

    /// The number of ranks.
    pub fn nranks(&self) -> u32 {
        self.placement.nranks
    }

    /// The names of the devices in the order in which they were given, such as `NVIDIA H200`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.devices.iter().map(|device| device.name.as_str())
    }

    /// The context of a rank's device: buffers of the rank are slices of it.
    pub fn context(&self, rank: impl Into<RankId>) -> &Arc<CudaContext> {
        &self.devices[self.placement.device(rank.into())].context
    }

    /// The default stream of the first device.
    pub fn stream(&self) -> Arc<CudaStream> {
        self.devices[0].context.default_stream()
    }

    /// Waits until `stream` has done all its work.
    ///
    /// # Errors
    /// E0421 where the driver reports an error.
    pub fn finish(stream: &CudaStream) -> Result<(), Error> {
        stream.synchronize().map_err(failed("waiting for a stream"))
    }

    /// A buffer of `bytes` zero bytes on the device of `rank`; of one byte where `bytes` is 0. `what` names it in
    /// messages.
    ///
    /// # Errors
    /// E0419 where the device has no room for it.
    pub fn buffer(
        &self,
        what: &str,
        rank: impl Into<RankId>,
        bytes: usize,
    ) -> Result<CudaSlice<u8>, Error> {
        let rank = rank.into();
        self.devices[self.placement.device(rank)].zeros(&format!("{what} of rank {rank}"), bytes)
    }

    /// Returns two of the devices that are not joined by `NVLink`, and the reason, in words.
    pub(super) fn torn(&self) -> Option<String> {
        let pairs =
            self.devices.iter().flat_map(|from| self.devices.iter().map(move |to| (from, to)));
        pairs.filter(|(from, to)| from.ordinal != to.ordinal).find_map(|(from, to)| {
            let why = device::joined(from.context.cu_device(), to.context.cu_device()).err()?;
            Some(format!("device {} reaches device {} by PCIe: {why}", from.ordinal, to.ordinal))
        })
    }
}

/// Lets one device reach the memory of another: plain allocations, and allocations from the other's pool.
fn reach(from: &Device, to: &Device) -> Result<(), Error> {
    let what = || format!("opening device {} to device {}", to.ordinal, from.ordinal);
    let (reader, owner) = (from.context.cu_device(), to.context.cu_device());
    let mut can = 0;
    // SAFETY: both devices are open, and `can` outlives the call.
    let asked = unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, reader, owner) };
    asked.result().map_err(failed(what()))?;
    if can == 0 {
        return Err(Error::NoPeerAccess { from: from.ordinal, to: to.ordinal });
    }
    from.context.bind_to_thread().map_err(failed(what()))?;
    // SAFETY: the context of `from` is current, that of `to` is open.
    let enabled = unsafe { sys::cuCtxEnablePeerAccess(to.context.cu_ctx(), 0) };
    match enabled.result() {
        Ok(()) | Err(DriverError(CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)) => {}
        Err(error) => return Err(failed(what())(error)),
    }
    if !to.context.has_async_alloc() {
        return Ok(());
    }
    // SAFETY: the device is open.
    let pool = unsafe { result::device::get_mem_pool(owner) }.map_err(failed(what()))?;
    let access = CUmemAccessDesc {
        location: CUmemLocation {
            type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: reader,
        },
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    // SAFETY: the pool is the owner's, and `access` outlives the call.
    let granted = unsafe { sys::cuMemPoolSetAccess(pool, &raw const access, 1) };
    granted.result().map_err(failed(what()))
}
