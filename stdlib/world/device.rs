//! Worlds of processes with a GPU each.
#![cfg(all(feature = "cuda", target_os = "linux"))]

use super::World;
use crate::Error;
use crate::cuda::{CudaOptions, CudaRank, DeviceCalls};

impl World {
    /// Opens the GPU of that number for this process's rank, and returns when all ranks of the world have opened theirs and
    /// mapped each other's memory: kernels run on it ([`OnDevice::plan_on_rank`](crate::cuda::OnDevice::plan_on_rank)).
    /// The calls of this world go on as before, on memory of the host.
    ///
    /// # Errors
    /// E0415 without a driver or that device; E0421 where the driver refuses; E0413 with the error of another rank; E0405
    /// and E0428 where a rank does not come or its process ends; E0427 for ranks on several hosts, which have NCCL's sends
    /// and receives ([`OnDevice::plan_over_nccl`](crate::cuda::OnDevice::plan_over_nccl)).
    pub fn on_device(&self, device: usize) -> Result<CudaRank, Error> {
        if self.hosts.is_some() {
            let what = "kernels run on GPUs of one host, and the ranks of this world are on several; take `NcclComm` there";
            return Err(roundelay_kernels::Error::NotJoined { what: what.to_owned() }.into());
        }
        Ok(CudaRank::join(&self.engine, device)?)
    }

    /// Opens the GPU of that number as [`Self::on_device`] does, for calls on its memory by the algorithms that this world
    /// uses now, with its options. [`Self::update`] has them run those that it uses later.
    ///
    /// # Errors
    /// The errors of [`Self::on_device`].
    pub fn device_calls(&self, device: usize) -> Result<DeviceCalls, Error> {
        let rank = self.on_device(device)?;
        let options = CudaOptions::new().common(self.engine.options());
        Ok(DeviceCalls::new(rank, self.chosen.clone(), options))
    }

    /// Has later calls on a GPU of this rank run the algorithms that the world uses now. All ranks do so between the same two
    /// calls.
    pub fn update(&self, calls: &DeviceCalls) {
        calls.choose(self.chosen.clone());
    }
}
