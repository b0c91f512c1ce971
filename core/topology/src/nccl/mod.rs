//! A machine as NCCL sees it: a tree of CPUs, PCI switches, GPUs and network cards ([`element`]), from which the graph is
//! made ([`graph`]) at the speeds that NCCL assumes ([`speeds`]). The tree is kept, so that it can be written as a file.
//!
//! The tree of a machine that has a name is made of published facts ([`NamedMachine`]); `roundelay_machines` reads others
//! from files.

pub mod cables;
mod core_ranks;
mod cores;
pub mod element;
pub mod gpu_links;
pub mod graph;
mod hosts;
mod machines;
mod network;
mod notes;
pub mod places;
mod ranks;
pub mod speeds;
mod tree;

use super::Fabric;

pub use machines::NamedMachine;
pub use speeds::{RULES, link_rate};

/// A machine as a topology file of NCCL describes it.
#[derive(Clone, Debug)]
pub struct System {
    /// The graph. A node's group is the position of its CPU in the file; that of a core may be a cache.
    pub topology: Fabric,
    /// The lowest CUDA capability of the GPUs, such as 80; `None` for AMD's.
    pub sm: Option<u32>,
    /// Whether `NVSwitches` join the GPUs.
    pub nvswitch: bool,
    /// The processors, in order of the file.
    pub cpus: Vec<Cpu>,
    /// The rank of the job of each rank: a file has the ranks of the whole job, of which its machine may hold a part.
    pub ranks: Vec<u32>,
    /// The assumptions about facts that are not in the file, in sentences.
    pub assumptions: Vec<String>,
    /// The sources of the facts about a machine that no file of NCCL's described, each with its facts.
    pub sources: Vec<[String; 2]>,
    /// Oddities of the machine, in sentences without a full stop: a GPU that differs from the others, links that GPUs
    /// of this kind usually have.
    pub notes: Vec<String>,
    /// The tree from which the graph was made.
    pub root: element::Element,
}

/// A processor, or one NUMA node of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// `x86_64`, `arm64` or `ppc64`.
    pub arch: Option<String>,
    /// `GenuineIntel`, `AuthenticAMD` and the like.
    pub vendor: Option<String>,
}
