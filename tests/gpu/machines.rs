//! Machines that execute a text of PTX: the interpreter, and a GPU.

use std::sync::Mutex;

use roundelay_kernels::cuda::{CudaWorld, LoadedPtx};
use roundelay_ptx::machine::{FinalState, Launch, RankLaunch, Window};
use roundelay_ptx::program::Module;

/// The address of the first buffer in the interpreter.
const FIRST: u64 = 0x10_0000;

/// A launch of a kernel. Its parameters are of 64 bits: the addresses of the buffers, and then the numbers.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) kernel: String,
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    pub(crate) buffers: Vec<Vec<u8>>,
    pub(crate) numbers: Vec<u64>,
}

/// A machine that executes PTX.
pub(crate) trait Machine: Sync {
    /// Runs the jobs one after another; returns the buffers of each after its run.
    fn run(&self, text: &str, jobs: &[Job]) -> Result<Vec<Vec<Vec<u8>>>, String>;
}

/// The interpreter, with a seed.
pub(crate) struct Interpreter(pub(crate) u64);

impl Machine for Interpreter {
    fn run(&self, text: &str, jobs: &[Job]) -> Result<Vec<Vec<Vec<u8>>>, String> {
        let module = Module::parse_whole(text).map_err(|error| error.to_string())?;
        jobs.iter().map(|job| interpreted(&module, job, self.0)).collect()
    }
}

fn interpreted(module: &Module, job: &Job, seed: u64) -> Result<Vec<Vec<u8>>, String> {
    let (mut windows, mut parameters, mut address) = (Vec::new(), Vec::new(), FIRST);
    for bytes in &job.buffers {
        windows.push(Window { name: "a buffer".to_owned(), address, bytes: bytes.clone() });
        parameters.extend(address.to_le_bytes());
        address = (address + bytes.len() as u64 + 1).next_multiple_of(1 << 12);
    }
    parameters.extend(job.numbers.iter().flat_map(|number| number.to_le_bytes()));
    let rank = RankLaunch {
        grid: [job.blocks, 1, 1],
        block: [job.threads, 1, 1],
        parameters,
        ..RankLaunch::new(module, &job.kernel)
    };
    let launch = Launch { seed, ..Launch::new(vec![rank], windows) };
    let FinalState { windows, .. } = launch.run().map_err(|failure| failure.to_string())?;
    Ok(windows.into_iter().map(|window| window.bytes).collect())
}

/// A GPU, which one thread uses at a time.
pub(crate) struct Gpu {
    world: CudaWorld,
    turn: Mutex<()>,
}

impl Gpu {
    pub(crate) fn new(device: usize) -> Result<Self, String> {
        let world = CudaWorld::on(&[device], 1).map_err(|error| error.to_string())?;
        Ok(Self { world, turn: Mutex::default() })
    }

    /// The name of the device.
    pub(crate) fn name(&self) -> &str {
        self.world.names().next().unwrap_or("a GPU")
    }
}

impl Machine for Gpu {
    fn run(&self, text: &str, jobs: &[Job]) -> Result<Vec<Vec<Vec<u8>>>, String> {
        let loaded = LoadedPtx::new(&self.world, text).map_err(|error| error.to_string())?;
        let _turn = self.turn.lock().map_err(|_| "a thread has failed".to_owned())?;
        let run = |job: &Job| {
            let grid = (job.blocks, job.threads);
            let ran = loaded.run(&job.kernel, grid, job.buffers.clone(), &job.numbers);
            ran.map_err(|error| error.to_string())
        };
        jobs.iter().map(run).collect()
    }
}
