//! A finding: what went wrong in a run, with its places in the sources and in the harness.

use roundelay_core::dtype::named_enum;
use roundelay_ptx::machine::{AccessedMemory, Conflict, FaultKind, KernelFault, Where};
use roundelay_ptx::program::is_page;

use crate::assumption::Assumptions;
use crate::modules::Loaded;
use crate::sequence::{Sequence, Variation};

named_enum! {
    /// The kind of a finding.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Kind as slice {
        /// Two accesses that nothing orders.
        Race = "race",
        /// A scope that is too narrow.
        Scope = "scope",
        /// Memory that is taken for constant and is not.
        Constant = "constant",
        /// Threads of which none can go on.
        Hang = "hang",
        /// A wrong result.
        Wrong = "wrong",
        /// A pad that is not zero at the end.
        DirtyPad = "dirty-pad",
        /// An access that is not aligned.
        Misaligned = "misaligned",
        /// An access to bytes that no buffer has.
        Bounds = "bounds",
        /// An access to a multicast address that is not `multimem`, or the other way round.
        Multicast = "multicast",
        /// A value that depends on memory that nothing has stored.
        Uninitialised = "uninitialised",
        /// A barrier whose threads do not agree.
        Barrier = "barrier",
        /// An exchange of lanes that cannot take part.
        Lanes = "lanes",
        /// A trap.
        Trap = "trap",
        /// More instructions than the limit.
        Limit = "limit",
        /// An instruction that the machine does not have.
        Unsupported = "unsupported",
    }
}

/// Threads at an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSite {
    /// Whether it stores; none where it is no access to memory.
    pub stores: Option<bool>,
    /// The file and the line in it, where the text has them.
    pub source: Option<(String, u32)>,
    /// The files and lines of the calls through which the code was inlined, inner ones first.
    pub inlined: Vec<(String, u32)>,
    /// The line of the PTX.
    pub ptx_line: u32,
    /// The function, by its name in the PTX.
    pub function: String,
    /// The rank.
    pub rank: u32,
    /// The call.
    pub call: u32,
    /// The step of the call.
    pub step: String,
    /// The block in the grid.
    pub block: u32,
    /// The warp in the block.
    pub warp: u32,
    /// The lanes, as a mask.
    pub lanes: u32,
    /// The lanes in words.
    lanes_in_words: String,
}

impl ThreadSite {
    /// The threads in words.
    pub fn threads(&self) -> String {
        let Self { rank, call, step, block, warp, lanes_in_words, .. } = self;
        format!("rank {rank}, call {call}, {step}, block {block}, warp {warp}, {lanes_in_words}")
    }
}

/// A place in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The buffer.
    pub name: String,
    /// The rank whose buffer it is.
    pub rank: u32,
    /// The byte.
    pub offset: u64,
    /// The element.
    pub element: u64,
}

/// A finding.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its kind.
    pub kind: Kind,
    /// One line, lower case, no full stop.
    pub title: String,
    /// The threads that ran into it.
    pub at: Option<ThreadSite>,
    /// The access before, with which it conflicts.
    pub other: Option<ThreadSite>,
    /// Threads that wait, each with the thing that it waits for.
    pub waiting: Vec<(ThreadSite, String)>,
    /// The place in memory.
    pub memory: Option<Memory>,
    /// The ranks of the run.
    pub ranks: u32,
    /// The elements of its calls, in turn.
    pub elements: Vec<i64>,
    /// The seed.
    pub seed: u64,
    /// The way in which the run differs from a plain one.
    pub variation: Variation,
    /// The choices of the seed's run that were not plain, and how many of these the finding needs.
    pub story: Option<(usize, usize)>,
    /// The smallest set of assumptions that cures it, where one was found.
    pub cured_by: Option<Assumptions>,
    /// Findings behind this one in the same run.
    pub behind: Vec<String>,
}

impl Finding {
    pub(crate) fn new(kind: Kind, title: impl Into<String>) -> Self {
        Self {
            kind,
            title: title.into(),
            at: None,
            other: None,
            waiting: Vec::new(),
            memory: None,
            ranks: 0,
            elements: Vec::new(),
            seed: 0,
            variation: Variation::Plain,
            story: None,
            cured_by: None,
            behind: Vec::new(),
        }
    }

    /// Makes a finding of a fault of the machine.
    pub(crate) fn of_fault(fault: &KernelFault, run: &Sequence) -> Self {
        let kind = match &fault.kind {
            FaultKind::Unordered { conflict: Conflict::Race | Conflict::Alias, .. } => Kind::Race,
            FaultKind::Unordered { conflict: Conflict::Scope, .. } => Kind::Scope,
            FaultKind::Unordered { conflict: Conflict::Constant, .. } => Kind::Constant,
            FaultKind::Bounds { .. } | FaultKind::ReadOnly { .. } => Kind::Bounds,
            FaultKind::Alignment { .. } => Kind::Misaligned,
            FaultKind::Multicast { .. } => Kind::Multicast,
            FaultKind::NoValue { .. } | FaultKind::Unset { .. } => Kind::Uninitialised,
            FaultKind::Lanes { .. } => Kind::Lanes,
            FaultKind::BarrierCount { .. } => Kind::Barrier,
            FaultKind::Trap | FaultKind::Assert { .. } => Kind::Trap,
            FaultKind::Stuck(_) => Kind::Hang,
            FaultKind::Limit(_) | FaultKind::Late(_) => Kind::Limit,
        };
        let mut found = Self::new(kind, fault.kind.to_string());
        found.at = fault.at.as_ref().map(|at| access(at, None, run));
        match &fault.kind {
            FaultKind::Unordered { memory, stores, other, other_stores, .. } => {
                if let AccessedMemory::Window { address, offset, .. } = memory {
                    // An alias has addresses behind those of a buffer.
                    found.memory = place(*address, run).filter(|at| at.offset == *offset);
                }
                if let Some(at) = &mut found.at {
                    at.stores = Some(*stores);
                }
                found.other = Some(access(other, Some(*other_stores), run));
            }
            FaultKind::Stuck(waiting) => {
                found.waiting = waiting
                    .iter()
                    .map(|(at, what)| (access(at, None, run), what.clone()))
                    .collect();
                // A launch that has not begun is not to blame.
                found.waiting.retain(|(_, what)| !what.contains("launches before"));
                // Those that poll come first: others only wait for them.
                found.waiting.sort_by_key(|(_, what)| what != "polls");
            }
            FaultKind::Bounds { address, bytes, .. } | FaultKind::Alignment { address, bytes } => {
                if let Some(number) = run.layout.near(*address) {
                    let (room, name) =
                        (&run.layout.rooms[number], &run.layout.windows[number].name);
                    let offset = address - room.address;
                    found.title = match kind {
                        Kind::Bounds if offset < room.bytes + 4096 => format!(
                            "an access of {bytes} bytes at byte {offset} of {name}, which has {} bytes",
                            room.bytes
                        ),
                        Kind::Misaligned => {
                            format!(
                                "an access of {bytes} bytes at byte {offset} of {name} ({address:#x}) is not aligned"
                            )
                        }
                        _ => found.title,
                    };
                    found.memory = place(*address, run);
                }
            }
            _ => {}
        }
        found
    }

    /// Gives the finding the facts of its run.
    pub(crate) fn of_run(mut self, run: &Sequence, seed: u64) -> Self {
        self.ranks = run.case.ranks;
        self.elements.clone_from(&run.case.elements);
        self.variation = run.variation;
        self.seed = seed;
        self
    }
}

/// The place in a buffer that an address is in, or closest behind; none for the harness's own memory.
fn place(address: u64, run: &Sequence) -> Option<Memory> {
    let number = run.layout.near(address)?;
    let (buffer, rank) = run.layout.buffer(number);
    let buffer = run.harness.memory.get(buffer)?;
    let offset = address - run.layout.rooms[number].address;
    let size = if buffer.pointers.is_some() { 8 } else { buffer.dtype.size() as u64 };
    Some(Memory { name: buffer.name.clone(), rank, offset, element: offset / size })
}

fn access(at: &Where, stores: Option<bool>, run: &Sequence) -> ThreadSite {
    let launched = &run.launches[(at.rank as usize).min(run.launches.len() - 1)];
    let loaded = launched.module.map(|module| &*run.case.loaded[module]);
    let mut places = loaded.map_or_else(Vec::new, |loaded| places(loaded, at));
    // The line of a page for which the threads work comes first; other threads may have handed the work to them.
    if let Some((page, line)) = at.source.as_ref().filter(|(file, _)| is_page(file)) {
        let mut files = loaded.iter().flat_map(|loaded| &loaded.module.files);
        let file = files.find(|file| file.rsplit('/').next() == Some(page)).unwrap_or(page);
        let page = (file.clone(), *line);
        places.retain(|place| *place != page);
        places.insert(0, page);
    }
    let mut places = places.into_iter();
    ThreadSite {
        stores,
        source: places.next(),
        inlined: places.collect(),
        ptx_line: at.line,
        function: at.function.clone(),
        rank: launched.rank,
        call: launched.call,
        step: launched.step.clone(),
        block: at.block,
        warp: at.warp,
        lanes: at.lanes,
        lanes_in_words: at.lanes_in_words(),
    }
}

/// The place of an instruction in the sources, and those of the calls through which it was inlined.
fn places(loaded: &Loaded, at: &Where) -> Vec<(String, u32)> {
    let module = &loaded.module;
    let function = module.function(&at.function).map(|number| &module.functions[number]);
    let instruction =
        function.and_then(|function| function.instructions.iter().find(|one| one.line == at.line));
    let Some(instruction) = instruction else { return Vec::new() };
    let named = |place: &roundelay_ptx::program::Place| {
        Some((module.files.get(place.file as usize)?.clone(), place.line))
    };
    module.places(instruction).filter_map(named).collect()
}
