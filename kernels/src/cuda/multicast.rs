//! One address for the blocks of several ranks, by which a switch folds what all of them have and stores at all of them.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use cudarc::driver::sys::{
    self, CUmemAllocationHandleType, CUmulticastGranularity_flags, CUmulticastObjectProp,
};
use cudarc::driver::{CudaContext, DriverError};

use super::device::{Device, failed};
use super::error::Error;
use super::shared_block::{self, SharedBlock};

/// A multicast object, which each of its devices joins before any binds memory to it.
pub(super) struct Multicast {
    context: std::sync::Arc<CudaContext>,
    handle: u64,
    bytes: usize,
    /// The descriptor by which other processes join, at the rank that made the object.
    descriptor: Option<OwnedFd>,
    /// The address of all blocks, once this rank's block is bound; it has the handle then.
    mapped: Option<SharedBlock>,
}

/// The properties of an object of that many devices and bytes.
fn properties(devices: usize, bytes: usize) -> CUmulticastObjectProp {
    CUmulticastObjectProp {
        numDevices: devices as u32,
        size: bytes,
        handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0.into(),
        flags: 0,
    }
}

impl Multicast {
    /// Returns the bytes of which sizes of objects are multiples.
    pub(super) fn granule(device: &Device, devices: usize) -> Result<usize, Error> {
        let mut granule = 0;
        let properties = properties(devices, 0);
        // SAFETY: both arguments outlive the call.
        let asked = unsafe {
            sys::cuMulticastGetGranularity(
                &raw mut granule,
                &raw const properties,
                CUmulticastGranularity_flags::CU_MULTICAST_GRANULARITY_MINIMUM,
            )
        };
        asked.result().map_err(failed(doing(device)))?;
        Ok(granule.max(1))
    }

    /// Makes an object for that many devices; `bytes` is a multiple of [`Self::granule`].
    pub(super) fn create(device: &Device, devices: usize, bytes: usize) -> Result<Self, Error> {
        let properties = properties(devices, bytes);
        let mut handle = 0;
        // SAFETY: both arguments outlive the call.
        let made = unsafe { sys::cuMulticastCreate(&raw mut handle, &raw const properties) };
        made.result().map_err(failed(doing(device)))?;
        let mut object = Self::of_handle(device, handle, bytes);
        object.descriptor = Some(shared_block::export(handle).map_err(failed(doing(device)))?);
        Ok(object)
    }

    /// Opens the object that another process made.
    pub(super) fn import(
        device: &Device,
        descriptor: Option<OwnedFd>,
        bytes: usize,
    ) -> Result<Self, Error> {
        let handle = shared_block::import_handle(descriptor, doing(device))?;
        Ok(Self::of_handle(device, handle, bytes))
    }

    fn of_handle(device: &Device, handle: u64, bytes: usize) -> Self {
        let context = device.context.clone();
        Self { context, handle, bytes, descriptor: None, mapped: None }
    }

    /// Has the device join the object.
    pub(super) fn join(&self, device: &Device) -> Result<(), Error> {
        // SAFETY: the driver looks the handle and the device up.
        let joined = unsafe { sys::cuMulticastAddDevice(self.handle, self.context.cu_device()) };
        joined.result().map_err(failed(doing(device)))
    }

    /// Binds the rank's block, which has the object's size, and maps the address of all blocks. All devices have joined: the
    /// driver waits for them.
    pub(super) fn bind(&mut self, device: &Device, block: &SharedBlock) -> Result<(), Error> {
        let memory = block.handle().ok_or_else(|| Error::KernelFailed {
            what: doing(device),
            why: "its block has no virtual addresses".to_owned(),
        })?;
        // SAFETY: the driver looks the handles up, and the block has these bytes.
        let bound = unsafe { sys::cuMulticastBindMem(self.handle, 0, memory, 0, self.bytes, 0) };
        bound.result().map_err(failed(doing(device)))?;
        let mapped = SharedBlock::map(device, self.handle, self.bytes);
        let mapped: Result<SharedBlock, DriverError> = mapped;
        self.mapped = Some(mapped.map_err(failed(doing(device)))?);
        Ok(())
    }

    /// Returns the descriptor by which other processes open the object.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(|descriptor| descriptor.as_fd())
    }

    /// Returns the address of all blocks, once this rank's block is bound.
    pub(super) fn address(&self) -> Option<u64> {
        self.mapped.as_ref().map(SharedBlock::address)
    }
}

fn doing(device: &Device) -> String {
    format!("having a switch reach the memory of device {}", device.ordinal)
}

impl Drop for Multicast {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_err() {
            return;
        }
        // A lost context has nothing to give back, so errors have no remedy.
        // SAFETY: each call gives back what this object took, once; no kernel of this process uses it any more, as plans
        // wait for their launches. The mapping has the handle where there is one.
        unsafe {
            if self.mapped.is_some() {
                let device = self.context.cu_device();
                let _ = sys::cuMulticastUnbind(self.handle, device, 0, self.bytes);
            } else {
                let _ = sys::cuMemRelease(self.handle);
            }
        }
    }
}
