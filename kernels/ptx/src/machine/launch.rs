//! Launches: the kernels of ranks, and the state after their run.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use super::fault::{KernelFault, LaunchError};
use super::image::Image;
use super::rank::RankLaunch;
use super::stream::{Columns, InStream};
use super::warp::Warp;
use super::{Block, Counters, Machine};
use crate::assumptions::{Assumption, Assumptions};
use crate::choices::Choices;
use crate::memory::{Alias, END_OF_WINDOWS, LANES, Memory, Races, Sizes, Window, variables_at};
use crate::program::Module;

/// Limits of a run, and its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions, each counted once for each group of lanes that executes it together.
    pub instructions: u64,
    /// The time at which a run ends, if it is still going on.
    pub end: Option<Instant>,
    /// Turns of each warp that may pass without a store, a barrier or an end of a thread.
    pub idle_turns: u64,
    /// `%globaltimer` at the start, in nanoseconds.
    pub start_ns: u64,
    /// Nanoseconds that pass in a turn.
    pub turn_ns: u64,
    /// Races of accesses of one size behind which a run goes on, each pair of instructions once. The race after them ends
    /// the run.
    pub races: usize,
    /// Blocks that a device runs at once, unless [`Assumption::Resident`] is assumed. The blocks of a cluster begin
    /// together, even if they are more.
    pub resident_blocks: u32,
}

impl Limits {
    /// The limits of a run that says nothing else.
    pub const DEFAULT: Self = Self {
        instructions: 1_000_000_000,
        end: None,
        idle_turns: 1000,
        start_ns: 1,
        turn_ns: 1,
        races: 0,
        resident_blocks: 1,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The bytes of a variable of a module on a device, before the run.
#[derive(Clone, Debug)]
pub struct InitialVariable<'a> {
    /// The device.
    pub device: u32,
    /// The module.
    pub module: &'a Module,
    /// The name of the variable in global memory.
    pub name: String,
    /// All its bytes.
    pub bytes: Vec<u8>,
}

/// Launches of kernels that run at the same time, unless one is to run after others.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The launches of kernels.
    pub ranks: Vec<RankLaunch<'a>>,
    /// Global memory, which all ranks reach.
    pub windows: Vec<Window>,
    /// Other addresses of windows.
    pub aliases: Vec<Alias>,
    /// Variables of modules that do not begin with the bytes of the module's text.
    pub variables: Vec<InitialVariable<'a>>,
    /// The assumptions on which the kernels may rely beyond PTX.
    pub assumptions: Assumptions,
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
    /// The variables of each module on each device in global memory, by their names. Launches of a module on a device
    /// have them in common.
    pub variables: Vec<HashMap<String, Vec<u8>>>,
    /// For each launch the number of its variables in [`variables`](Self::variables).
    pub variables_of: Vec<usize>,
    /// Races behind which the run went on.
    pub races: Vec<KernelFault>,
    /// For each instruction whether it was executed: those of the functions of each module, in the order in which launches
    /// have the modules first.
    pub covered: Vec<bool>,
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

impl<'a> Launch<'a> {
    /// Launches with these windows, by the seed 0.
    pub fn new(ranks: Vec<RankLaunch<'a>>, windows: Vec<Window>) -> Self {
        Self {
            ranks,
            windows,
            aliases: Vec::new(),
            variables: Vec::new(),
            assumptions: Assumptions::default(),
            seed: 0,
            limits: Limits::default(),
        }
    }

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
        let Machine { memory, counters, choices, image, launches, races, covered, .. } = machine;
        let outcome = match run {
            Err(fault) => Err(Failure::Fault(Box::new(KernelFault { before: races, ..*fault }))),
            Ok(()) => {
                let (windows, own): (Vec<Window>, Vec<Window>) = memory
                    .into_windows()
                    .into_iter()
                    .partition(|window| window.address < END_OF_WINDOWS);
                let variables_of: Vec<usize> =
                    launches.iter().map(|launch| launch.variables as usize).collect();
                let mut variables = Vec::new();
                for (launch, &number) in launches.iter().zip(&variables_of) {
                    if number == variables.len() {
                        let at = variables_at(launch.variables);
                        let bytes = own.iter().find(|window| window.address == at);
                        let bytes = bytes.map_or(&[][..], |window| &window.bytes);
                        variables.push(image.globals(launch.module, bytes));
                    }
                }
                Ok(FinalState { windows, counters, variables, variables_of, races, covered })
            }
        };
        (choices, outcome)
    }

    fn machine(&self, choices: Choices) -> Result<Machine<'_>, LaunchError> {
        let image = Image::new(self.ranks.iter().map(|rank| rank.module))?;
        let covered = vec![false; image.code.len()];
        let mut sizes =
            Sizes { warps: 0, blocks: 0, constants: Vec::new(), local_bytes: 0, param_bytes: 0 };
        let mut windows = self.windows.clone();
        let mut launches: Vec<InStream> = Vec::new();
        let (mut blocks, mut counters) = (Vec::new(), Vec::new());
        let mut columns = Columns::default();
        let mut variables: Vec<(u32, usize)> = Vec::new();
        for (number, rank) in self.ranks.iter().enumerate() {
            let kernel = image.kernel(rank.module, rank.kernel)?;
            let frame = &image.frames[kernel];
            let takes = frame.function.parameters.iter().map(|p| p.offset + p.bytes).max();
            if takes.unwrap_or(0) as usize != rank.parameters.len() {
                return Err(LaunchError::Parameters(takes.unwrap_or(0), rank.parameters.len()));
            }
            let in_grid = blocks_of(rank)?;
            let warps_of_block = threads(rank)?.div_ceil(LANES);
            counters.push(vec![Counters::default(); warps_of_block as usize]);
            let own = &image.sizes[frame.module];
            sizes.local_bytes = sizes.local_bytes.max(own.local);
            sizes.param_bytes = sizes.param_bytes.max(own.param);
            sizes.constants.push(own.constants.clone());
            let key = (rank.device, frame.module);
            let of_device = variables.iter().position(|known| *known == key);
            let of_device = of_device.unwrap_or_else(|| {
                variables.push(key);
                windows.extend(self.globals(rank, &own.globals, variables.len() - 1));
                variables.len() - 1
            });
            let shared = own.shared + u64::from(rank.dynamic_shared);
            if shared >= MOST_SHARED {
                return Err(LaunchError::Shared(shared));
            }
            if rank.after.iter().any(|&before| before >= number) {
                return Err(LaunchError::Order(number as u32));
            }
            let mut launch = InStream::new(rank, (kernel, frame.module), number);
            launch.variables = of_device as u32;
            launch.early = rank.early && !self.assumptions.has(&Assumption::Pdl);
            if self.assumptions.has(&Assumption::OneOrder) {
                let same = |before: &usize| self.ranks[*before].device == rank.device;
                launch.after.extend((0..number).filter(same));
            }
            let warps = in_grid * u64::from(warps_of_block);
            let taken = columns.take(&launch, warps);
            launch.columns = taken.ok_or(LaunchError::Grid(rank.grid))?;
            launch.blocks = blocks.len()..blocks.len() + in_grid as usize;
            let cluster = rank.cluster.iter().product::<u32>();
            for (in_rank, warps) in (0..).zip(launch.columns.chunks(warps_of_block as usize)) {
                let first_of_cluster = (launch.blocks.start as u32) + in_rank / cluster * cluster;
                blocks.push(Block::new((number as u32, in_rank), first_of_cluster, warps));
            }
            launches.push(launch);
        }
        self.check_windows()?;
        sizes.warps = columns.count();
        let of_thread = sizes.local_bytes + sizes.param_bytes;
        let threads = sizes.warps as u64 * u64::from(LANES);
        if of_thread.saturating_mul(threads) > MOST_PRIVATE {
            return Err(LaunchError::Private(of_thread, threads));
        }
        sizes.blocks = blocks.len();
        let races = Races { go_on: self.limits.races > 0, found: Vec::new() };
        let memory = Memory::new((windows, self.aliases.clone()), sizes, &self.assumptions, races);
        let limits = self.limits;
        let mut junctions = Vec::new();
        if choices.waiting_load().is_some() {
            for frame in &image.frames {
                let of_frame = super::junctions::junctions(frame.function);
                junctions.extend(of_frame.into_iter().map(|to| to.map(|to| frame.first + to)));
            }
        }
        Ok(Machine {
            image,
            ranks: &self.ranks,
            assumptions: &self.assumptions,
            launches,
            blocks,
            warps: (0..columns.count() as u32).map(|number| Warp::new(number * LANES)).collect(),
            occupants: vec![Vec::new(); columns.count()],
            first_open: 0,
            clusters: HashMap::new(),
            memory,
            weak_is_relaxed: self
                .assumptions
                .iter()
                .any(|a| matches!(a, Assumption::WeakAsRelaxed(_))),
            choices,
            limits,
            junctions,
            counters,
            races: Vec::new(),
            raced: BTreeSet::new(),
            executed: 0,
            covered,
            turns: 0,
            idle: 0,
        })
    }

    /// The window of a module's variables on a device.
    fn globals(&self, rank: &RankLaunch, initial: &[u8], number: usize) -> Option<Window> {
        let mut bytes = initial.to_vec();
        for given in &self.variables {
            let is_of = given.device == rank.device && std::ptr::eq(given.module, rank.module);
            if let Some(range) = is_of.then(|| Image::global(rank.module, &given.name)).flatten()
                && range.len() == given.bytes.len()
            {
                bytes[range].copy_from_slice(&given.bytes);
            }
        }
        let name = format!("the variables of device {}", rank.device);
        (!bytes.is_empty()).then(|| Window { name, address: variables_at(number as u32), bytes })
    }

    fn check_windows(&self) -> Result<(), LaunchError> {
        for InitialVariable { module, name, bytes, .. } in &self.variables {
            let range = Image::global(module, name);
            if range.is_none_or(|range| range.len() != bytes.len()) {
                return Err(LaunchError::Variable(name.clone(), bytes.len()));
            }
        }
        let windows = self.windows.iter().map(|w| (w.address, w.bytes.len() as u64, &w.name));
        let aliases = self.aliases.iter().map(|alias| (alias.address, alias.bytes, &alias.name));
        let mut ranges: Vec<_> = windows.chain(aliases).collect();
        ranges.sort_unstable();
        let mut free = 0;
        for (address, bytes, name) in ranges {
            let end = address.checked_add(bytes);
            match end.filter(|&end| address >= free && end <= END_OF_WINDOWS) {
                Some(end) => free = end,
                None => return Err(LaunchError::Window(name.clone())),
            }
        }
        let is_in = |first: &u64, bytes: u64| {
            self.windows.iter().any(|window| {
                let within = first.checked_sub(window.address);
                let end = within.and_then(|within| within.checked_add(bytes));
                end.is_some_and(|end| end <= window.bytes.len() as u64)
            })
        };
        for alias in &self.aliases {
            let is_one = alias.multicast || alias.of.len() == 1;
            let fits = alias.of.iter().all(|first| is_in(first, alias.bytes));
            if !is_one || !fits || alias.of.is_empty() {
                return Err(LaunchError::Alias(alias.name.clone()));
            }
        }
        Ok(())
    }
}

/// The number of blocks of a launch.
fn blocks_of(rank: &RankLaunch) -> Result<u64, LaunchError> {
    let divides = |(grid, cluster): (&u32, &u32)| *cluster > 0 && grid.is_multiple_of(*cluster);
    let of_cluster = rank.cluster.iter().map(|&blocks| u64::from(blocks)).product::<u64>();
    let is_row = rank.cluster[1..] == [1, 1];
    if !rank.grid.iter().zip(&rank.cluster).all(divides) || of_cluster > 16 || !is_row {
        return Err(LaunchError::Cluster(rank.cluster));
    }
    let all = rank.grid.iter().try_fold(1u64, |all, &more| all.checked_mul(more.into()));
    all.filter(|&all| all <= MOST_BLOCKS).ok_or(LaunchError::Grid(rank.grid))
}

/// The blocks of a launch at most.
const MOST_BLOCKS: u64 = 1 << 20;

/// Bytes of shared memory of a block at most.
const MOST_SHARED: u64 = 1 << 24;

/// Bytes of local memory and parameters of all threads at most.
const MOST_PRIVATE: u64 = 1 << 33;

/// The threads of a block of a rank.
fn threads(rank: &RankLaunch) -> Result<u32, LaunchError> {
    let error = LaunchError::Block(rank.block);
    let [x, y, z] = rank.block;
    let threads = x.checked_mul(y).and_then(|xy| xy.checked_mul(z)).unwrap_or(0);
    let kernel = rank.module.functions.iter().find(|function| function.name == rank.kernel);
    let most = kernel.and_then(|kernel| kernel.most_threads);
    let most = most.map_or(1024, |three| three.iter().fold(1, |a: u32, &b| a.saturating_mul(b)));
    if threads == 0 || threads > most.min(1024) { Err(error) } else { Ok(threads) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warps(launch: &Launch) -> usize {
        launch.machine(Choices::seeded(0)).expect("a launch that may run").warps.len()
    }

    /// A launch runs in the warps of those that have ended when it begins, so the clocks do not grow with a chain.
    #[test]
    fn launches_take_the_warps_of_ended_ones_over() {
        let text =
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";
        let module = Module::parse(text).expect("a module");
        let on = |device, after: &[usize], early| RankLaunch {
            grid: [3, 1, 1],
            block: [40, 1, 1],
            device,
            after: after.to_vec(),
            early,
            ..RankLaunch::new(&module, "k")
        };
        let chain = |early| {
            let after = |number: usize| if number == 0 { vec![] } else { vec![number - 1] };
            let ranks = (0..50).map(|number| on(0, &after(number), early));
            Launch::new(ranks.collect(), Vec::new())
        };
        assert_eq!(warps(&chain(false)), 6);
        // Launches that begin early may run beside all others.
        assert_eq!(warps(&chain(true)), 300);
        // One of another device, and two behind one, which run at the same time.
        let fork = [on(0, &[], false), on(1, &[0], false), on(0, &[0], false), on(0, &[0], false)];
        assert_eq!(warps(&Launch::new(fork.to_vec(), Vec::new())), 18);
        // One behind both takes the warps of one, and those of the other are free for the next.
        let join = [&fork[..], &[on(0, &[2, 3], false), on(0, &[2, 3], false)]].concat();
        assert_eq!(warps(&Launch::new(join, Vec::new())), 18);
    }
}
