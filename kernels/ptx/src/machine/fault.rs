//! Errors of launches and of runs.

use std::fmt;

use crate::memory::Conflict;
use crate::program::{Lack, Space};

/// The reason why a launch cannot begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchError {
    /// The module has no kernel of this name.
    Kernel(String),
    /// The function calls itself, perhaps through others.
    Recursion(String),
    /// The kernel takes as many bytes of parameters as the first number says, and has got the second.
    Parameters(u32, usize),
    /// The block has no thread, more than 1024 of them, or more than `.maxntid` allows.
    Block([u32; 3]),
    /// The window overlaps another one, or is at addresses that the machine needs.
    Window(String),
    /// The alias stands for addresses that are not in a window, or for several without being a multicast.
    Alias(String),
    /// A block has too many bytes of shared memory.
    Shared(u64),
    /// The first number, bytes of local memory and parameters of a thread, is too large for threads of the second number.
    Private(u64, u64),
    /// The grid has too many blocks.
    Grid([u32; 3]),
    /// A cluster has no block or more than 16, several in y or z, or does not divide the grid.
    Cluster([u32; 3]),
    /// No module on a device has a variable of this name and of this number of bytes in global memory.
    Variable(String, usize),
    /// The kernel, or a function that it calls, has instructions that are not in the subset.
    Lacks(String, Vec<Lack>),
    /// The launch of this number is to begin after one with a number that is not lower.
    Order(u32),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel(name) => write!(f, "the module has no kernel {name}"),
            Self::Recursion(name) => write!(f, "the function {name} calls itself"),
            Self::Parameters(takes, given) => {
                write!(f, "the kernel takes {takes} bytes of parameters, not {given}")
            }
            Self::Block([x, y, z]) => write!(f, "a block of {x} x {y} x {z} threads cannot run"),
            Self::Alias(name) => write!(f, "{name} stands for addresses that no window has"),
            Self::Shared(bytes) => {
                write!(f, "a block with {bytes} bytes of shared memory cannot run")
            }
            Self::Private(bytes, threads) => {
                write!(f, "{threads} threads with {bytes} bytes of local memory each cannot run")
            }
            Self::Grid([x, y, z]) => write!(f, "a grid of {x} x {y} x {z} blocks cannot run"),
            Self::Cluster([x, y, z]) => write!(f, "a cluster of {x} x {y} x {z} blocks cannot run"),
            Self::Variable(name, bytes) => {
                write!(f, "no variable {name} of {bytes} bytes in global memory")
            }
            Self::Lacks(name, lacks) => {
                write!(f, "{name} has what is not in the subset")?;
                lacks.iter().try_for_each(|lack| write!(f, "\n  {lack}"))
            }
            Self::Window(name) => write!(f, "the addresses of {name} are not free"),
            Self::Order(number) => {
                write!(f, "launch {number} is to begin after one with a number that is not lower")
            }
        }
    }
}

impl std::error::Error for LaunchError {}

/// A thread at an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Where {
    /// The rank.
    pub rank: u32,
    /// The number of the block in the rank's grid.
    pub block: u32,
    /// The number of the warp in the block.
    pub warp: u32,
    /// The lanes, of which a single thread has one.
    pub lanes: u32,
    /// The function.
    pub function: String,
    /// The source's file and line, where the text has them.
    pub source: Option<(String, u32)>,
    /// The line of the PTX text.
    pub line: u32,
}

impl Where {
    /// Returns the lanes in words, such as `lanes 0-15, 17`.
    pub fn lanes_in_words(&self) -> String {
        Lanes(self.lanes).to_string()
    }
}

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, block, warp, function, line, .. } = self;
        write!(f, "rank {rank}, block {block}, warp {warp}, {}, ", Lanes(self.lanes))?;
        if let Some((file, line)) = &self.source {
            write!(f, "{file}:{line}, ")?;
        }
        write!(f, "{function}, line {line} of the PTX")
    }
}

/// Lanes of a warp in words.
struct Lanes(u32);

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0;
        write!(f, "{}", if left.is_power_of_two() { "lane" } else { "lanes" })?;
        let mut before = " ";
        while left != 0 {
            let first = left.trailing_zeros();
            let count = (left >> first).trailing_ones();
            write!(f, "{before}{first}")?;
            if count > 1 {
                write!(f, "-{}", first + count - 1)?;
            }
            left &= !((u32::MAX >> (32 - count)) << first);
            before = ", ";
        }
        Ok(())
    }
}

/// The memory of an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessedMemory {
    /// A byte of a window.
    Window {
        /// The window's name.
        name: String,
        /// The address of the byte.
        address: u64,
        /// The offset of the byte in the window.
        offset: u64,
    },
    /// A byte of a variable in global memory.
    Variable {
        /// The variable's name.
        name: String,
        /// The offset of the byte in the variable.
        offset: u64,
        /// The name of all variables of its module.
        of: String,
    },
    /// A byte of shared memory, by its address there.
    Shared(u64),
}

impl fmt::Display for AccessedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Window { name, offset, .. } => write!(f, "{name} at byte {offset}"),
            Self::Variable { name, offset, of } => write!(f, "{name} at byte {offset}, of {of}"),
            Self::Shared(address) => write!(f, "shared memory at {address:#x}"),
        }
    }
}

/// An error of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFault {
    /// The kind.
    pub kind: FaultKind,
    /// The threads that ran into it; none where no thread can go on.
    pub at: Option<Where>,
    /// Races before it, behind which the run went on.
    pub before: Vec<KernelFault>,
}

/// The kind of an error of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An access to bytes that no memory has.
    Bounds {
        /// The space of the instruction.
        space: Space,
        /// The address in it.
        address: u64,
        /// Bytes of the access.
        bytes: u32,
    },
    /// An access whose address is not a multiple of its size.
    Alignment {
        /// The address.
        address: u64,
        /// Bytes of the access.
        bytes: u32,
    },
    /// An access to a multicast address that is not by `multimem`, or a `multimem` to another address.
    Multicast {
        /// The address.
        address: u64,
    },
    /// A store to memory that is constant.
    ReadOnly {
        /// The space of the instruction.
        space: Space,
        /// The address in it.
        address: u64,
    },
    /// A load of a byte of shared memory that nothing has stored.
    NoValue {
        /// The space of the instruction.
        space: Space,
        /// The address of the byte.
        address: u64,
    },
    /// An effect that shows depends on a byte of local memory that nothing has stored.
    Unset {
        /// The effect.
        what: &'static str,
    },
    /// An access that is not ordered with one before it.
    Unordered {
        /// The reason.
        conflict: Conflict,
        /// The memory.
        memory: AccessedMemory,
        /// Whether the access stores.
        stores: bool,
        /// The thread of the access before it.
        other: Box<Where>,
        /// Whether that one stores.
        other_stores: bool,
    },
    /// A shuffle, vote or barrier of a warp that names lanes that have ended, or leaves its own lane out.
    Lanes {
        /// The lanes that it names.
        mask: u32,
        /// The lanes that cannot take part.
        missing: u32,
    },
    /// A barrier whose threads do not agree on their number, or whose number is not one of whole warps.
    BarrierCount {
        /// The number of the barrier.
        barrier: u64,
        /// The number of threads that this one names; none for all of the block.
        count: Option<u64>,
        /// The number that those before it named.
        before: Option<u64>,
    },
    /// The instruction `trap`.
    Trap,
    /// A condition of the source that does not hold, by `assert`.
    Assert {
        /// The condition.
        condition: String,
        /// The file and the line.
        place: (String, u32),
        /// The function.
        function: String,
    },
    /// No thread can go on, or all repeat loads whose values no thread changes: each with the
    /// thing that it waits for.
    Stuck(Vec<(Where, String)>),
    /// The limit of instructions.
    Limit(u64),
    /// The end of the time, after that number of instructions.
    Late(u64),
}

/// Joins threads that wait alike with the first of them: each of these with the words for the number of the others, which
/// are none where it is alone.
pub fn join_waiting<T>(
    all: impl IntoIterator<Item = T>,
    alike: impl Fn(&T, &T) -> bool,
) -> Vec<(T, String)> {
    let mut joined: Vec<(T, usize)> = Vec::new();
    for one in all {
        match joined.iter_mut().find(|(first, _)| alike(first, &one)) {
            Some((_, more)) => *more += 1,
            None => joined.push((one, 0)),
        }
    }
    let words = |more| if more == 0 { String::new() } else { format!(", and {more} more") };
    joined.into_iter().map(|(first, more)| (first, words(more))).collect()
}

/// The name of an access.
fn access(stores: bool) -> &'static str {
    if stores { "store" } else { "load" }
}

/// The kind without the places of threads.
impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Bounds { space, address, bytes } => {
                write!(f, "an access of {bytes} bytes at {address:#x} ({space:?}) is out of bounds")
            }
            FaultKind::Alignment { address, bytes } => {
                write!(f, "an access of {bytes} bytes at {address:#x} is not aligned")
            }
            FaultKind::Multicast { address } => {
                let only = "multicast addresses are for `multimem`, and `multimem` for them";
                write!(f, "an access to {address:#x}: {only}")
            }
            FaultKind::ReadOnly { space, address } => {
                write!(f, "a store to {address:#x} ({space:?}), which cannot be stored to")
            }
            FaultKind::NoValue { space, address } => {
                write!(f, "a load of the byte {address:#x} ({space:?}), which nothing has stored")
            }
            FaultKind::Unset { what } => {
                write!(f, "{what} depends on local memory that nothing has stored")
            }
            FaultKind::Unordered { conflict, memory, stores, other_stores, .. } => {
                let (now, before) = (access(*stores), access(*other_stores));
                match conflict {
                    Conflict::Race => write!(f, "a race: a {now} and a {before} of {memory}"),
                    Conflict::Scope => {
                        write!(
                            f,
                            "a race: a scope is too narrow for a {now} and a {before} of {memory}"
                        )
                    }
                    Conflict::Alias => write!(
                        f,
                        "a {now} and a {before} of {memory}, one by a multicast address and one by the window's own, \
                         without `fence.proxy.alias` between them"
                    ),
                    Conflict::Constant => {
                        write!(
                            f,
                            "a {now} and a {before} of {memory}, of which one takes it for constant"
                        )
                    }
                }
            }
            FaultKind::Lanes { mask, missing } => {
                let (mask, missing) = (Lanes(*mask), Lanes(*missing));
                write!(f, "an exchange of {mask}, where {missing} cannot take part")
            }
            FaultKind::BarrierCount { barrier, count, before } => {
                let threads = |count: &Option<u64>| {
                    count.map_or("all threads".to_owned(), |count| format!("{count} threads"))
                };
                let (count, before) = (threads(count), threads(before));
                write!(f, "barrier {barrier} of {count}, where others wait for {before}")
            }
            FaultKind::Trap => f.write_str("a trap"),
            FaultKind::Assert { condition, place: (file, line), function } => {
                write!(f, "the assertion `{condition}` of {function} fails ({file}:{line})")
            }
            FaultKind::Stuck(_) => f.write_str("no thread can go on"),
            FaultKind::Limit(limit) => write!(f, "more than {limit} instructions"),
            FaultKind::Late(after) => {
                write!(f, "it had not ended when the time was up, after {after} instructions")
            }
        }
    }
}

impl fmt::Display for KernelFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        match &self.kind {
            FaultKind::Unordered { stores, other, other_stores, .. } => {
                write!(f, "; the {}: {other}; the {}", access(*other_stores), access(*stores))?;
            }
            FaultKind::Stuck(waiting) => {
                waiting.iter().try_for_each(|(at, what)| write!(f, "\n  {at}: {what}"))?;
            }
            _ => {}
        }
        match &self.at {
            Some(at) => write!(f, ": {at}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for KernelFault {}
