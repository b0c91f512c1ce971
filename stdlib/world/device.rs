//! Worlds of processes with a GPU each.
#![cfg(all(feature = "cuda", target_os = "linux"))]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roundelay_core::ids::RankId;
use roundelay_kernels::AnyRankPlan;
use roundelay_kernels::cuda::HostCall;
use roundelay_kernels::network::HostsPlan;

use super::World;
use crate::comm::choices::Chosen;
use crate::cuda::{CudaOptions, CudaRank, DeviceCalls, HostCalls, HostKernels};
use crate::{Call, Error};

impl World {
    /// Opens the GPU of that number for this process's rank, and returns when all ranks of the world have opened theirs and
    /// mapped each other's memory: kernels run on it ([`OnDevice::plan_on_rank`](crate::cuda::OnDevice::plan_on_rank)).
    /// The calls of this world go on as before, on memory of the host.
    ///
    /// # Errors
    /// E0415 without a driver or that device; E0421 where the driver refuses; E0413 with the error of another rank; E0405
    /// and E0428 where a rank does not come or its process ends; E0427 for ranks on several hosts, which have
    /// [`Self::device_calls`], and NCCL's sends and receives
    /// ([`OnDevice::plan_over_nccl`](crate::cuda::OnDevice::plan_over_nccl)).
    pub fn on_device(&self, device: usize) -> Result<CudaRank, Error> {
        if self.hosts.is_some() {
            let what = "kernels run on GPUs of one host, and the ranks of this world are on several; take `device_calls` or `NcclComm` there";
            return Err(roundelay_kernels::Error::NotJoined { what: what.to_owned() }.into());
        }
        Ok(CudaRank::join(&self.engine, device)?)
    }

    /// Opens the GPU of that number as [`Self::on_device`] does, for calls on its memory by the algorithms that this world
    /// uses now, with its options. [`Self::update`] has them run those that it uses later. Calls of ranks on several hosts go
    /// through memory of the hosts: see [`DeviceCalls`].
    ///
    /// # Errors
    /// The errors of [`Self::on_device`] on one host; on several, those of [`Self::split`], and E0427 where another rank
    /// cannot open its GPU.
    pub fn device_calls(&self, device: usize) -> Result<DeviceCalls, Error> {
        let options = CudaOptions::new().common(self.engine.options());
        let Some(hosts) = &self.hosts else {
            let rank = self.on_device(device)?;
            return Ok(DeviceCalls::new(rank, self.chosen.clone(), options));
        };
        let place = (RankId(hosts.rank()), hosts.nranks());
        let opened = CudaRank::across_hosts(&self.engine, device, place);
        // Kernels of the ranks of this host, if there are several that reach each other, and a compiler.
        let inside = match self.engine.nranks() {
            1 => HostKernels::Alone,
            _ => match CudaRank::join(&self.engine, device) {
                Ok(rank) if CudaRank::finds_compiler() => HostKernels::Of(rank),
                _ => HostKernels::None,
            },
        };
        let mut can = vec![0_u8; hosts.nranks() as usize];
        let mine = match (&opened, &inside) {
            (Err(_), _) => 0,
            (Ok(_), HostKernels::None) => 1,
            (Ok(_), _) => 2,
        };
        self.rank().all_gather(&[mine], &mut can)?;
        let opened = opened?;
        if let Some(rank) = can.iter().position(|can| *can == 0) {
            let what = format!("rank {rank} cannot open its GPU; its own error has the reason");
            return Err(roundelay_kernels::Error::NotJoined { what }.into());
        }
        let inside = if can.contains(&1) { HostKernels::None } else { inside };
        // Messages of this world may be under way, and its calls come from other threads.
        let mut world = self.split(Some(0), 0)?.ok_or_else(|| {
            let what = "a world of all ranks has all of them".to_owned();
            Error::from(roundelay_kernels::Error::Corrupt { what })
        })?;
        world.chosen = self.chosen.clone();
        let calls = DeviceCalls::new(opened, self.chosen.clone(), options);
        Ok(calls.through(Box::new(CallsOfHosts { world: Mutex::new(Arc::new(world)), inside })))
    }

    /// Has later calls on a GPU of this rank run the algorithms that the world uses now. All ranks do so between the same two
    /// calls.
    pub fn update(&self, calls: &DeviceCalls) {
        calls.choose(self.chosen.clone());
    }
}

/// The calls of a world on several hosts, which no one else uses.
#[derive(Debug)]
struct CallsOfHosts {
    world: Mutex<Arc<World>>,
    inside: HostKernels,
}

impl CallsOfHosts {
    fn world(&self) -> MutexGuard<'_, Arc<World>> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostCalls for CallsOfHosts {
    fn prepare(&self, call: Call) -> Result<Box<dyn HostCall>, Error> {
        let world = self.world().clone();
        let plan = world.plan(call.into())?;
        Ok(Box::new(CallOfHosts { plan, world }))
    }

    fn prepare_between(&self, call: Call) -> Result<Option<Box<dyn HostCall>>, Error> {
        let world = self.world().clone();
        let Some(hosts) = &world.hosts else { return Ok(None) };
        let Some(levels) = world.levels(hosts, &call)? else { return Ok(None) };
        let Call { count, dtype, op, .. } = call;
        let plan = HostsPlan::between_hosts(hosts, &levels.across, count, dtype, op)?;
        let Some(plan) = plan else { return Ok(None) };
        let plan: Arc<AnyRankPlan> = Arc::new(plan);
        Ok(Some(Box::new(CallOfHosts { plan, world })))
    }

    fn inside(&self) -> &HostKernels {
        &self.inside
    }

    fn choose(&self, chosen: Chosen) {
        let mut world = self.world();
        let other = World { chosen, ..world.share() };
        *world = Arc::new(other);
    }

    fn abort(&self, why: &str) -> Result<(), Error> {
        if let HostKernels::Of(rank) = &self.inside {
            rank.abort(why)?;
        }
        self.world().abort(why)
    }
}

/// A call of such a world.
struct CallOfHosts {
    plan: Arc<AnyRankPlan>,
    world: Arc<World>,
}

impl HostCall for CallOfHosts {
    fn run(&self, input: &[u8], output: &mut [u8]) -> Result<(), roundelay_kernels::Error> {
        self.plan.run_bytes(input, output)
    }

    fn abort(&self, why: &str) {
        // Only a forked child has no world to end, and it has no GPU either.
        let _ = self.world.abort(why);
    }
}
