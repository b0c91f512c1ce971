//! A rank with a device of its own: what ranks over NCCL and ranks in processes both are.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use roundelay_core::ids::RankId;

use super::device::{Device, failed};
use super::error::Error;

/// One rank of several, and the GPU of its buffers.
pub struct DeviceRank {
    pub(super) device: Device,
    stream: Arc<CudaStream>,
    rank: RankId,
    nranks: u32,
}

impl DeviceRank {
    pub(super) fn new(device: Device, rank: RankId, nranks: u32) -> Result<Self, Error> {
        let making = format!("making a stream on device {}", device.ordinal);
        device.context.bind_to_thread().map_err(failed(making.clone()))?;
        // The first stream of a context is made when all work of the device is done, if slices have events. Kernels of other
        // ranks may wait there for what this rank is to do.
        // SAFETY: no slice of this context has work under way: it was opened for this rank, which waited for what it did.
        unsafe { device.context.disable_event_tracking() };
        let stream = device.context.new_stream().map_err(failed(making));
        // SAFETY: as before.
        unsafe { device.context.enable_event_tracking() };
        let stream = stream?;
        Ok(Self { device, stream, rank, nranks })
    }

    /// The rank, counted from 0.
    pub fn rank(&self) -> RankId {
        self.rank
    }

    /// The number of ranks.
    pub fn nranks(&self) -> u32 {
        self.nranks
    }

    /// The context of the rank's device: the rank's buffers are slices of it.
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.device.context
    }

    /// A stream of the rank's own. Ranks of one device must not share a stream: each would wait for the later work of
    /// the others.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// A buffer of `bytes` zero bytes on the rank's device; of one byte where `bytes` is 0. `what` names it in
    /// messages.
    ///
    /// # Errors
    /// E0419 where the device has no room for it.
    pub fn buffer(&self, what: &str, bytes: usize) -> Result<CudaSlice<u8>, Error> {
        self.device.zeros(&format!("{what} of rank {}", self.rank), bytes)
    }
}
