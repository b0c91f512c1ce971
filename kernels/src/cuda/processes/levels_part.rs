//! An AllReduce of ranks on several hosts, on two levels: kernels reduce on each host to its first rank, the first ranks make
//! the AllReduce between hosts on memory of the host, and kernels broadcast its result on each host.
//!
//! An error between hosts ends the kernels of the host that wait for its result; and where the kernels before give up, the
//! call between hosts is ended and not made: no rank takes an unfinished sum for a result.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::CudaStream;

use super::super::device::failed;
use super::super::device_rank::DeviceRank;
use super::super::error::Error;
use super::super::rank_plan::PartOfRank;
use super::host_part::{HostPart, in_order};
use super::part::KernelPart;
use super::rank::CudaRank;
use crate::lowering::plan_call::PlannedCall;

/// A kernel of the ranks of this host, with its call.
pub(super) type KernelCall = (KernelPart, PlannedCall);

/// A rank's part of an AllReduce on two levels.
pub struct LevelsPart {
    rank: CudaRank,
    /// The Reduce and the Broadcast of the ranks of this host; `None` where it has one rank.
    inside: Option<[KernelCall; 2]>,
    /// The AllReduce between hosts; `None` where another rank of this host makes it.
    between: Option<HostPart>,
}

impl LevelsPart {
    /// Makes the part of the kernels of this host's ranks, of which `inside` is this one, and of a call between hosts.
    pub(super) fn new(
        rank: &CudaRank,
        inside: Option<(&CudaRank, [KernelCall; 2])>,
        between: Option<HostPart>,
    ) -> Self {
        let between = between.map(|part| match &inside {
            Some((rank, [(reduce, _), _])) => part.between(rank, reduce.control()),
            None => part,
        });
        Self { rank: rank.clone(), inside: inside.map(|(_, kernels)| kernels), between }
    }
}

impl PartOfRank for LevelsPart {
    fn device_rank(&self) -> &DeviceRank {
        &self.rank
    }

    unsafe fn issue(
        &self,
        call: &PlannedCall,
        (stream, captures): (&Arc<CudaStream>, bool),
        [input, output]: [u64; 2],
    ) -> Result<(), Error> {
        self.check(call, None)?;
        let what = || failed(format!("launching {} of rank {}", call.name(), self.rank.rank()));
        in_order(&self.rank, (stream, captures), |stream| {
            let kernel = |at: usize, io| match &self.inside {
                // SAFETY: the caller's promise: the parts have the lengths of the call, or none.
                Some(kernels) => unsafe {
                    kernels[at].0.issue(&kernels[at].1, (stream, captures), io)
                },
                None => Ok(()),
            };
            kernel(0, [input, output])?;
            if let Some(between) = &self.between {
                let from = if self.inside.is_some() { output } else { input };
                // SAFETY: as before.
                unsafe { between.copy_and_call(stream, [from, output]) }.map_err(what())?;
            }
            kernel(1, [output; 2])
        })
    }

    fn check(&self, call: &PlannedCall, waited: Option<Duration>) -> Result<(), Error> {
        if let Some(between) = &self.between {
            between.check(call, waited)?;
        }
        let kernels = self.inside.iter().flatten();
        kernels.into_iter().try_for_each(|(part, call)| part.check(call, waited))
    }

    fn give_up(&self) {
        if let Some(between) = &self.between {
            between.give_up();
        }
        self.inside.iter().flatten().for_each(|(part, _)| part.give_up());
    }

    fn describe(&self, text: &mut fmt::DebugStruct<'_, '_>) {
        text.field("rank", &self.rank).field("levels", &2);
    }
}
