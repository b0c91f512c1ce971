//! Algorithms over NCCL's sends and receives: each rank is a thread, and all ranks share one GPU.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use roundelay_kernels::cuda::cudarc::driver::{CudaSlice, DriverError};
use roundelay_kernels::cuda::{CudaWorld, Error, NcclComm, NcclId, NcclPlan};
use roundelay_kernels::grid::Buffers;

use super::cases::{Case, Data};
use super::engine::Engine;

/// The first that lets ranks share a device, where `NCCL_MULTI_RANK_GPU_ENABLE` is 1.
const FIRST: u32 = 23_000;

pub(crate) struct Nccl {
    device: usize,
    name: String,
    version: u32,
    patience: Duration,
    /// The ranks that met last: meeting takes longer than most calls.
    met: Mutex<Vec<NcclComm>>,
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
fn leave(met: &mut Vec<NcclComm>) -> Result<(), String> {
    each(met.drain(..), |comm| {
        drop(comm);
        Ok(())
    })
    .map(|_: Vec<()>| ())
}

impl Drop for Nccl {
    fn drop(&mut self) {
        if let Err(why) = leave(self.met.get_mut().unwrap_or_else(PoisonError::into_inner)) {
            println!("# ending NCCL: {why}");
        }
    }
}

impl Nccl {
    /// Returns NCCL with ranks on that device, or the reason why there is none.
    pub(crate) fn new(device: usize, patience: Duration) -> Result<Self, String> {
        let world = CudaWorld::on_devices(&[device], 1).map_err(|error| coded(&error))?;
        let name = world.names().next().unwrap_or("a GPU").to_owned();
        let version = NcclComm::version().map_err(|error| coded(&error))?;
        if version < FIRST {
            return Err(format!("NCCL {version} takes one rank a device; 2.30 takes several"));
        }
        Ok(Self { device, name, version, patience, met: Mutex::default() })
    }

    fn meet(&self, nranks: u32, deadline: Duration) -> Result<Vec<NcclComm>, String> {
        let id = NcclId::new().map_err(|error| coded(&error))?;
        each(0..nranks, |rank| NcclComm::join(self.device, &id, rank, nranks, deadline))
    }

    /// Ranks of a communicator, made anew where there are others or an error before.
    fn ranks(&self, nranks: u32) -> Result<Vec<NcclComm>, String> {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        if met.len() != nranks as usize {
            leave(&mut met)?;
            *met = self.meet(nranks, self.patience)?;
        }
        Ok(met.clone())
    }

    /// Returns the outputs of a run. All ranks are ready before one of them launches: loading or allocating may wait
    /// for the whole device, on which the other ranks would wait for this one.
    fn outputs(
        ranks: Vec<NcclComm>,
        case: &Case,
        in_place: bool,
        repeats: u32,
    ) -> Result<Vec<Vec<u8>>, String> {
        let parts = each(ranks, |comm| Part::new(comm, case))?;
        each(parts, |mut part| part.run(in_place, repeats))
    }
}

/// A rank with its part of a case.
struct Part {
    comm: NcclComm,
    plan: NcclPlan,
    buffers: Buffers,
    bytes: Vec<u8>,
    input: CudaSlice<u8>,
    room: CudaSlice<u8>,
}

impl Part {
    fn new(comm: NcclComm, case: &Case) -> Result<Self, Error> {
        let Data { count, dtype, op } = case.data;
        let rank = comm.rank().index();
        let (buffers, bytes) = (case.buffers()[rank], case.inputs().swap_remove(rank));
        let plan = NcclPlan::new(&comm, case.proved, count as u64, dtype, op)?;
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

impl Engine for Nccl {
    fn about(&self) -> String {
        let Self { device, name, version, .. } = self;
        format!(
            "sends and receives of NCCL {version} on device {device}, {name}, a thread for each rank"
        )
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn has_kernels(&self) -> bool {
        false
    }

    fn run(&self, case: &Case, in_place: bool, repeats: u32) -> Result<Vec<Vec<u8>>, String> {
        let ranks = self.ranks(case.nranks)?;
        let outputs = Self::outputs(ranks, case, in_place, repeats);
        if outputs.is_err() {
            leave(&mut self.met.lock().unwrap_or_else(PoisonError::into_inner))?;
        }
        outputs
    }

    fn without_last(&self, case: &Case) -> Result<String, String> {
        let ranks = self.meet(case.nranks, Duration::from_secs(2))?;
        let last = case.nranks - 1;
        let parts = each(ranks, |comm| Part::new(comm, case))?;
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
