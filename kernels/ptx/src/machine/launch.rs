//! Launches: the kernels of ranks, and the state after their run.

use std::collections::HashMap;

use super::fault::{KernelFault, LaunchError};
use super::image::{Image, first_lanes};
use super::stream::InStream;
use super::warp::Warp;
use super::{Block, Counters, Machine};
use crate::choices::Choices;
use crate::memory::{
    END_OF_WINDOWS, Home, LANES, Memory, Sizes, VARIABLES, VARIABLES_EACH, Window,
};
use crate::program::Module;

/// A launch of a kernel: one for a rank, or one for several ranks.
#[derive(Clone, Debug)]
pub struct RankLaunch<'a> {
    /// The module; ranks may share one.
    pub module: &'a Module,
    /// The name of the kernel.
    pub kernel: &'a str,
    /// The blocks in x, y and z.
    pub grid: [u32; 3],
    /// The threads of a block in x, y and z.
    pub block: [u32; 3],
    /// The bytes of the parameters.
    pub parameters: Vec<u8>,
    /// Bytes of shared memory beyond the variables of the module.
    pub dynamic_shared: u32,
    /// The device: the scope `gpu` has the threads of all its launches.
    pub device: u32,
    /// The launches that end before this one begins, by their numbers, which are lower; none begins with the run.
    pub after: Vec<usize>,
}

/// Limits of a run, and its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions, each counted once for each group of lanes that executes it together.
    pub instructions: u64,
    /// Turns of each warp that may pass without a store, a barrier or an end of a thread.
    pub idle_turns: u64,
    /// `%globaltimer` at the start, in nanoseconds.
    pub start_ns: u64,
    /// Nanoseconds that pass in a turn.
    pub turn_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { instructions: 1_000_000_000, idle_turns: 1000, start_ns: 1, turn_ns: 1 }
    }
}

/// Launches of kernels that run at the same time, unless one is to run after others.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The launches of kernels.
    pub ranks: Vec<RankLaunch<'a>>,
    /// Global memory, which all ranks reach.
    pub windows: Vec<Window>,
    /// The seed of all choices.
    pub seed: u64,
    /// The limits.
    pub limits: Limits,
}

/// The state after a run to its end.
#[derive(Clone, Debug)]
pub struct FinalState {
    /// Global memory after the run, by rising addresses.
    pub windows: Vec<Window>,
    /// The counts of each launch, for each warp of a block: those of the warps with this number in all its blocks.
    pub counters: Vec<Vec<Counters>>,
    /// The variables of each launch in global memory, by their names.
    pub variables: Vec<HashMap<String, Vec<u8>>>,
}

/// The way in which a launch fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It cannot begin.
    Launch(LaunchError),
    /// A thread ran into an error, or no thread can go on.
    Fault(Box<KernelFault>),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Launch(error) => error.fmt(f),
            Self::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

impl Launch<'_> {
    /// Runs the kernels of all ranks to their end, with the choices of the seed.
    pub fn run(&self) -> Result<FinalState, Failure> {
        self.run_by(Choices::seeded(self.seed)).1
    }

    /// Runs the kernels of all ranks to their end, without a poll in vain: a strong load reads the first store of its
    /// location that its warp has not seen, and waits for it. The seed chooses the order of warps. The counts are the same
    /// for all seeds, because no thread does anything else with another one. It is for kernels whose strong loads are waits.
    pub fn run_patiently(&self) -> Result<FinalState, Failure> {
        self.run_by(Choices::patient(self.seed)).1
    }

    /// Runs with given choices, and returns them.
    pub(crate) fn run_by(&self, choices: Choices) -> (Choices, Result<FinalState, Failure>) {
        let mut machine = match self.machine(choices.clone()) {
            Ok(machine) => machine,
            Err(error) => return (choices, Err(Failure::Launch(error))),
        };
        let run = machine.run();
        let Machine { memory, counters, choices, image, launches, .. } = machine;
        let outcome = run.map_err(Failure::Fault).map(|()| {
            let (windows, own) = memory
                .into_windows()
                .into_iter()
                .partition(|window| window.address < END_OF_WINDOWS);
            let mut own: HashMap<u64, Vec<u8>> =
                Vec::into_iter(own).map(|window: Window| (window.address, window.bytes)).collect();
            let variables = (0..).zip(&launches).map(|(number, launch)| {
                let bytes = own.remove(&variables_of(number)).unwrap_or_default();
                image.globals(launch.module, &bytes)
            });
            FinalState { windows, counters, variables: variables.collect() }
        });
        (choices, outcome)
    }

    fn machine(&self, choices: Choices) -> Result<Machine<'_>, LaunchError> {
        let image = Image::new(self.ranks.iter().map(|rank| rank.module))?;
        let mut sizes = Sizes {
            homes: Vec::new(),
            shared: Vec::new(),
            constants: Vec::new(),
            local_bytes: 0,
            param_bytes: 0,
        };
        let mut windows = self.windows.clone();
        let (mut blocks, mut warps, mut launches) = (Vec::new(), Vec::new(), Vec::new());
        let mut counters = Vec::new();
        for (number, rank) in (0..).zip(&self.ranks) {
            let kernel = image.kernel(rank.module, rank.kernel)?;
            let frame = &image.frames[kernel];
            let takes = frame.function.parameters.iter().map(|p| p.offset + p.bytes).max();
            if takes.unwrap_or(0) as usize != rank.parameters.len() {
                return Err(LaunchError::Parameters(takes.unwrap_or(0), rank.parameters.len()));
            }
            let threads = threads(rank)?;
            counters.push(vec![Counters::default(); threads.div_ceil(LANES) as usize]);
            let own = &image.sizes[frame.module];
            sizes.local_bytes = sizes.local_bytes.max(own.local);
            sizes.param_bytes = sizes.param_bytes.max(own.param);
            sizes.constants.push(own.constants.clone());
            if !own.globals.is_empty() {
                windows.push(Window {
                    name: format!("the variables of rank {number}"),
                    address: variables_of(number),
                    bytes: own.globals.clone(),
                });
            }
            if rank.after.iter().any(|&before| before >= number as usize) {
                return Err(LaunchError::Order(number));
            }
            let first_warp = warps.len();
            for in_rank in 0..rank.grid.iter().product() {
                let block = blocks.len();
                let first = warps.len();
                for in_block in 0..threads.div_ceil(LANES) {
                    let lanes = first_lanes(threads - in_block * LANES);
                    let thread = warps.len() as u32 * LANES;
                    let start = (kernel, frame.first);
                    warps.push(Warp::new(thread, (block, in_block), lanes, start, own.registers));
                    let (block, device) = (block as u32, rank.device);
                    sizes.homes.push(Home { block, rank: number, device });
                }
                sizes.shared.push(own.shared + u64::from(rank.dynamic_shared));
                let warps = first..warps.len();
                let (barriers, lines) = (Vec::new(), HashMap::new());
                blocks.push(Block { rank: number, in_rank, warps, barriers, lines });
            }
            let (shape, warps) = ([rank.grid, rank.block], first_warp..warps.len());
            launches.push(InStream::new(shape, frame.module, warps, rank.after.clone()));
        }
        self.check_windows()?;
        let mut memory = Memory::new(windows, sizes);
        for warp in &warps {
            let block: &Block = &blocks[warp.block];
            let parameters = &self.ranks[block.rank as usize].parameters;
            for thread in warp.first..warp.first + LANES {
                memory.set_param(thread, 0, parameters);
            }
        }
        let limits = self.limits;
        let mut junctions = Vec::new();
        if choices.waiting_load().is_some() {
            for frame in &image.frames {
                let of_frame = super::junctions::junctions(frame.function);
                junctions.extend(of_frame.into_iter().map(|to| to.map(|to| frame.first + to)));
            }
        }
        let (executed, turns, idle) = (0, 0, 0);
        Ok(Machine {
            image,
            launches,
            blocks,
            warps,
            memory,
            choices,
            limits,
            junctions,
            counters,
            executed,
            turns,
            idle,
        })
    }

    fn check_windows(&self) -> Result<(), LaunchError> {
        let mut windows: Vec<&Window> = self.windows.iter().collect();
        windows.sort_by_key(|window| window.address);
        let mut free = 0;
        for window in windows {
            let end = window.address.checked_add(window.bytes.len() as u64);
            match end.filter(|&end| window.address >= free && end <= END_OF_WINDOWS) {
                Some(end) => free = end,
                None => return Err(LaunchError::Window(window.name.clone())),
            }
        }
        Ok(())
    }
}

/// The address of the variables of a launch in global memory.
fn variables_of(number: u32) -> u64 {
    VARIABLES + u64::from(number) * VARIABLES_EACH
}

/// The threads of a block of a rank.
fn threads(rank: &RankLaunch) -> Result<u32, LaunchError> {
    let error = LaunchError::Block(rank.block);
    let [x, y, z] = rank.block;
    let threads = x.checked_mul(y).and_then(|xy| xy.checked_mul(z)).unwrap_or(0);
    let kernel = rank.module.functions.iter().find(|function| function.name == rank.kernel);
    let most = kernel.and_then(|kernel| kernel.most_threads);
    let most = most.map_or(1024, |[x, y, z]| (x * y * z).min(1024));
    if threads == 0 || threads > most { Err(error) } else { Ok(threads) }
}
