//! Memory of a rank's device that the processes of all ranks can map.

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaStream, DevicePtr, DevicePtrMut, DeviceSlice, SyncOnDrop};

use super::super::device::{Device, failed};
use super::super::error::Error;
use super::super::shared_block::{BlockKind, SharedBlock};
use super::rank::CudaRank;

/// A buffer of bytes on a rank's device, which kernels of all ranks use where it is: launches on slices of other
/// allocators copy.
///
/// [`CudaRank::rank_buffer`] makes it. It is a slice for launches, as those of cudarc are.
pub struct RankBuffer {
    block: SharedBlock,
    len: usize,
    stream: Arc<CudaStream>,
    /// The last use on any stream.
    used: Option<CudaEvent>,
}

impl std::fmt::Debug for RankBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RankBuffer({} bytes on device {})", self.len, self.stream.context().ordinal())
    }
}

/// Memory of a device that the processes of all ranks can map, by its address: for callers in C and Python, whose launches
/// need not copy it either.
pub struct MappableMemory(SharedBlock);

impl MappableMemory {
    /// Allocates `bytes` zero bytes on the device of that number, in multiples of the driver's granule, mostly 2 MiB.
    ///
    /// # Errors
    /// E0415 without a driver or that device; E0419 where the device has no room; E0421 where the driver refuses.
    pub fn new(device: usize, bytes: usize) -> Result<Self, Error> {
        let device = Device::open(device)?;
        let kind = BlockKind::of_device(&device)?;
        Ok(Self(SharedBlock::own(&device, kind, "memory for all ranks", bytes)?))
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.0.address()
    }
}

impl Drop for MappableMemory {
    /// Waits for all work of the device, as `cuMemFree` does.
    fn drop(&mut self) {
        // A lost context uses the memory no more.
        let _ = self.0.finish();
    }
}

impl CudaRank {
    /// A buffer of `bytes` zero bytes on the rank's device, in memory that other ranks can map, so that launches need not
    /// copy it. `what` names it in messages. It takes a multiple of the driver's granule, mostly 2 MiB.
    ///
    /// # Errors
    /// E0419 where the device has no room for it.
    pub fn rank_buffer(&self, what: &str, bytes: usize) -> Result<RankBuffer, Error> {
        let kind = BlockKind::of_device(&self.device)?;
        let what = format!("{what} of rank {}", self.rank());
        let block = SharedBlock::own(&self.device, kind, &what, bytes)?;
        let used = self.context().new_event(None).map_err(failed("making an event"))?;
        Ok(RankBuffer { block, len: bytes, stream: self.stream().clone(), used: Some(used) })
    }
}

impl DeviceSlice<u8> for RankBuffer {
    fn len(&self) -> usize {
        self.len
    }

    fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }
}

impl RankBuffer {
    fn lend<'a>(&'a self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        if let Some(used) = &self.used {
            // The next call of the stream reports the error of one that failed here.
            let _ = stream.wait(used);
        }
        (self.block.address(), SyncOnDrop::record_event(&self.used, stream))
    }
}

impl DevicePtr<u8> for RankBuffer {
    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        self.lend(stream)
    }
}

impl DevicePtrMut<u8> for RankBuffer {
    fn device_ptr_mut<'a>(&'a mut self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        self.lend(stream)
    }
}

impl Drop for RankBuffer {
    fn drop(&mut self) {
        if let Some(used) = &self.used {
            // A lost context uses the memory no more.
            let _ = used.synchronize();
        }
    }
}
