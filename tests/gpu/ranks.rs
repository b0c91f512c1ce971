//! Algorithms whose ranks launch one by one: each rank is a thread, and all ranks share one GPU. They are ranks over NCCL's
//! sends and receives, or ranks as processes have them, with kernels on memory that all of them map.

use std::ops::Deref;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use roundelay::Options;
use roundelay_kernels::cuda::cudarc::driver::{CudaSlice, DriverError};
use roundelay_kernels::cuda::{
    CudaOptions, CudaRank, CudaWorld, DeviceRank, Error, NcclComm, NcclId, NcclPart, NcclPlan,
    PartOfRank, ProcessPart, ProcessPlan, RankPlan,
};
use roundelay_kernels::grid::Buffers;
use roundelay_kernels::shared_memory::World;

use super::cases::{Case, Data};
use super::engine::Engine;

/// The first that lets ranks share a device, where `NCCL_MULTI_RANK_GPU_ENABLE` is 1.
const FIRST: u32 = 23_000;

/// A rank with a device.
pub(crate) trait Member: Clone + Send + Sync + Deref<Target = DeviceRank> {
    type Part: PartOfRank + Send;
    /// Whether its plans launch kernels of the algorithm.
    const KERNELS: bool;

    /// Makes all ranks, on one device.
    fn meet(device: usize, nranks: u32, deadline: Duration) -> Result<Vec<Self>, String>;

    fn plan(&self, case: &Case, deadline: Duration) -> Result<RankPlan<Self::Part>, Error>;
}

impl Member for NcclComm {
    type Part = NcclPart;
    const KERNELS: bool = false;

    fn meet(device: usize, nranks: u32, deadline: Duration) -> Result<Vec<Self>, String> {
        let id = NcclId::new().map_err(|error| coded(&error))?;
        each(0..nranks, |rank| NcclComm::join(device, &id, rank, nranks, deadline))
    }

    fn plan(&self, case: &Case, _: Duration) -> Result<NcclPlan, Error> {
        let Data { count, dtype, op } = case.data;
        NcclPlan::new(self, case.proved, count as u64, dtype, op)
    }
}

impl Member for CudaRank {
    type Part = ProcessPart;
    const KERNELS: bool = true;

    fn meet(device: usize, nranks: u32, deadline: Duration) -> Result<Vec<Self>, String> {
        let worlds = World::together(nranks, Options::new().deadline(deadline));
        let worlds = worlds.map_err(|error| error.to_string())?;
        each(worlds, |world| CudaRank::join(&world, device))
    }

    fn plan(&self, case: &Case, deadline: Duration) -> Result<ProcessPlan, Error> {
        let Data { count, dtype, op } = case.data;
        let options = CudaOptions::new().deadline(deadline);
        let options = options.form(case.form).protocol(case.protocol);
        ProcessPlan::new(self, case.algorithm, case.proved, count as u64, (dtype, op), options)
    }
}

/// The engine of ranks of one kind.
pub(crate) struct Ranks<M: Member> {
    device: usize,
    about: String,
    patience: Duration,
    /// The ranks that met last: meeting takes longer than most calls.
    met: Mutex<Vec<M>>,
}

fn coded(error: &Error) -> String {
    format!("[{}] {error}", error.code())
}

/// Does the work of each rank on a thread of its own, all at once.
fn each<T: Send, R: Send>(
    ranks: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, String> {
    let (work, ranks): (_, Vec<T>) = (&work, ranks.into_iter().collect());
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            ranks.into_iter().map(|rank| scope.spawn(move || work(rank))).collect();
        let done = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        done.collect::<Vec<_>>().into_iter().collect::<Result<_, _>>()
    })
    .map_err(|error| coded(&error))
}

/// Ranks end all at once, as they met.
fn leave<M: Member>(met: &mut Vec<M>) -> Result<(), String> {
    each(met.drain(..), |rank| {
        drop(rank);
        Ok(())
    })
    .map(|_: Vec<()>| ())
}

impl<M: Member> Drop for Ranks<M> {
    fn drop(&mut self) {
        if let Err(why) = leave(self.met.get_mut().unwrap_or_else(PoisonError::into_inner)) {
            println!("# ending ranks: {why}");
        }
    }
}

impl Ranks<NcclComm> {
    /// Returns ranks over NCCL on that device, or the reason why there are none.
    pub(crate) fn over_nccl(device: usize, patience: Duration) -> Result<Self, String> {
        let version = NcclComm::version().map_err(|error| coded(&error))?;
        if version < FIRST {
            return Err(format!("NCCL {version} takes one rank a device; 2.30 takes several"));
        }
        Self::new(device, patience, &format!("sends and receives of NCCL {version}"))
    }
}

impl Ranks<CudaRank> {
    /// Returns ranks as processes have them on that device, or the reason why there are none.
    pub(crate) fn as_processes(device: usize, patience: Duration) -> Result<Self, String> {
        Self::new(device, patience, "a launch for each rank on memory that all ranks map")
    }
}

impl<M: Member> Ranks<M> {
    fn new(device: usize, patience: Duration, what: &str) -> Result<Self, String> {
        let world = CudaWorld::on_devices(&[device], 1).map_err(|error| coded(&error))?;
        let name = world.names().next().unwrap_or("a GPU").to_owned();
        let about = format!("{what} on device {device}, {name}, a thread for each rank");
        Ok(Self { device, about, patience, met: Mutex::default() })
    }

    /// Ranks of a communicator, made anew where there are others or an error before.
    fn ranks(&self, nranks: u32) -> Result<Vec<M>, String> {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        if met.len() != nranks as usize {
            leave(&mut met)?;
            *met = M::meet(self.device, nranks, self.patience)?;
        }
        Ok(met.clone())
    }

    /// Returns the outputs of a run. All ranks are ready before one of them launches: loading or allocating may wait
    /// for the whole device, on which the other ranks would wait for this one.
    fn outputs(
        &self,
        ranks: Vec<M>,
        case: &Case,
        in_place: bool,
        repeats: u32,
    ) -> Result<Vec<Vec<u8>>, String> {
        let parts = each(ranks, |comm| Part::new(comm, case, self.patience))?;
        each(parts, |mut part| part.run(in_place, repeats))
    }
}

/// A rank with its part of a case.
struct Part<M: Member> {
    comm: M,
    plan: RankPlan<M::Part>,
    buffers: Buffers,
    bytes: Vec<u8>,
    input: CudaSlice<u8>,
    room: CudaSlice<u8>,
}

impl<M: Member> Part<M> {
    fn new(comm: M, case: &Case, deadline: Duration) -> Result<Self, Error> {
        let rank = comm.rank().index();
        let (buffers, bytes) = (case.buffers()[rank], case.inputs().swap_remove(rank));
        let plan = comm.plan(case, deadline)?;
        let mut input = comm.buffer("input", buffers.input)?;
        let room = comm.buffer("output", buffers.shared)?;
        let mut place = input.slice_mut(..bytes.len());
        comm.stream().memcpy_htod(&bytes, &mut place).map_err(copying)?;
        comm.stream().synchronize().map_err(copying)?;
        Ok(Self { comm, plan, buffers, bytes, input, room })
    }

    fn run(&mut self, in_place: bool, repeats: u32) -> Result<Vec<u8>, Error> {
        let Self { comm, plan, buffers, bytes, input, room } = self;
        let stream = comm.stream();
        // Bytes that are not written again would be right from the last time; in place, inputs are gone.
        let fresh =
            if in_place { Case::entered(buffers, bytes) } else { vec![0xA5; buffers.output] };
        for _ in 0..repeats {
            let mut room = room.slice_mut(..fresh.len());
            stream.memcpy_htod(&fresh, &mut room).map_err(copying)?;
            if in_place {
                plan.launch_bytes_in_place(stream, &mut room)?;
            } else {
                plan.launch_bytes(stream, &input.slice(..buffers.input), &mut room)?;
            }
        }
        plan.wait()?;
        let at = if in_place { buffers.output_at } else { 0 };
        let mut result = vec![0; buffers.output];
        if !result.is_empty() {
            let place = room.slice(at..at + buffers.output);
            stream.memcpy_dtoh(&place, &mut result).map_err(copying)?;
            stream.synchronize().map_err(copying)?;
        }
        Ok(result)
    }
}

fn copying(error: DriverError) -> Error {
    Error::KernelFailed { what: "copying".into(), why: format!("{error:?}") }
}

impl<M: Member> Engine for Ranks<M> {
    fn about(&self) -> String {
        self.about.clone()
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn has_kernels(&self) -> bool {
        M::KERNELS
    }

    fn run(&self, case: &Case, in_place: bool, repeats: u32) -> Result<Vec<Vec<u8>>, String> {
        let ranks = self.ranks(case.nranks)?;
        let outputs = self.outputs(ranks, case, in_place, repeats);
        if outputs.is_err() {
            leave(&mut self.met.lock().unwrap_or_else(PoisonError::into_inner))?;
        }
        outputs
    }

    fn without_last(&self, case: &Case) -> Result<String, String> {
        let deadline = Duration::from_secs(2);
        let ranks = M::meet(self.device, case.nranks, deadline)?;
        let last = case.nranks - 1;
        let parts = each(ranks, |comm| Part::new(comm, case, deadline))?;
        let told = each(parts, |mut part| {
            // The rank stays until the others have given up, and makes no call.
            if part.comm.rank().0 == last {
                std::thread::sleep(Duration::from_secs(4));
                return Ok(None);
            }
            Ok(part.run(false, 1).err())
        })?;
        let told: Vec<String> = told.iter().flatten().map(coded).collect();
        match told.iter().find(|told| told.starts_with("[E0405]")) {
            Some(late) => Ok(late.clone()),
            None => Err(format!("no rank was late: {told:?}")),
        }
    }
}
