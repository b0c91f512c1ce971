//! The assumptions beyond PTX that a harness may declare.

use std::collections::BTreeSet;
use std::fmt;

pub use roundelay_ptx::Assumption as MachineAssumption;

/// Assumptions without which no kernel is run: each with what it says. A harness may name them.
const GRANTED: [(&str, &str); 6] = [
    ("resident", "all blocks of a launch run at once, unless `[run]` has `resident_blocks`"),
    ("peer-atomics", "atomic operations on the memory of peers are atomic"),
    ("zeroed", "pads and sentinels are set before any peer writes"),
    ("copies-are-launches", "copies and fills are launches in the order of their stream"),
    ("peer-alias", "other virtual addresses of a peer's memory are the same proxy"),
    ("volatile-in-order", "volatile accesses of a thread are performed in their order"),
];

/// An assumption that a harness may declare.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Assumption {
    /// One of the machine's.
    Machine(MachineAssumption),
    /// `payload-differs`: inputs never equal the sentinel.
    PayloadDiffers,
    /// One without which no kernel is run, by its number.
    Granted(u8),
}

/// A set of assumptions.
pub type Assumptions = BTreeSet<Assumption>;

impl Assumption {
    /// All assumptions of which there is one: not `weak-as-relaxed`, of which each buffer has its own.
    pub fn all() -> impl Iterator<Item = Self> {
        let machine = MachineAssumption::ALL.iter().filter(|one| !one.is_default()).cloned();
        let granted = (0..GRANTED.len() as u8).map(Self::Granted);
        machine.map(Self::Machine).chain([Self::PayloadDiffers]).chain(granted)
    }

    /// Whether a run without it exists: all others are granted to every kernel, and never told as used.
    pub const fn is_optional(&self) -> bool {
        !matches!(self, Self::Granted(_))
    }

    /// The sentence that says it.
    pub fn sentence(&self) -> &'static str {
        match self {
            Self::Machine(assumption) => assumption.sentence(),
            Self::PayloadDiffers => "inputs never equal the sentinel",
            Self::Granted(number) => GRANTED[usize::from(*number)].1,
        }
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(assumption) => assumption.fmt(f),
            Self::PayloadDiffers => f.write_str("payload-differs"),
            Self::Granted(number) => f.write_str(GRANTED[usize::from(*number)].0),
        }
    }
}

/// The assumptions of the machine in a set, and that all blocks are resident where `resident` says so.
pub(crate) fn of_machine(set: &Assumptions, resident: bool) -> roundelay_ptx::Assumptions {
    let machine = set.iter().filter_map(|one| match one {
        Assumption::Machine(assumption) => Some(assumption.clone()),
        _ => None,
    });
    machine.chain(resident.then_some(MachineAssumption::Resident)).collect()
}

/// The names of a set, sorted, with commas between them.
pub fn names(set: &Assumptions) -> String {
    let mut names: Vec<_> = set.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    names.join(", ")
}
