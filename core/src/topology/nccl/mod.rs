//! NCCL's topology files, read and written; RCCL's dialect too.
//!
//! A file is a tree of elements (`xml`), which an [`Assumption`] may complete, and from which the graph is made
//! (`graph`) at the speeds that NCCL assumes (`speeds`). The tree is kept, so a file can be written again (`write`).

mod assume;
mod cables;
mod devices;
mod graph;
mod hosts;
mod joined;
mod machines;
mod matrix;
mod notes;
mod partitions;
mod places;
mod ranks;
mod speeds;
mod tree;
mod write;
mod xml;

use super::file::File;
use super::{Problem, Topology};

pub use assume::Assumption;
pub use machines::NamedMachine;
pub(super) use matrix::{begins as is_matrix, read as read_matrix};
pub use speeds::RULES;
pub(crate) use speeds::link_rate;
pub use write::write;

/// A machine as a topology file of NCCL describes it.
#[derive(Clone, Debug)]
pub struct System {
    /// The graph. A node's group is the position of its CPU in the file.
    pub topology: Topology,
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
    /// Oddities of the machine, in sentences without a full stop: a GPU that differs from the others, links that GPUs
    /// of this kind usually have.
    pub notes: Vec<String>,
    root: xml::Element,
}

/// A processor, or one NUMA node of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// `x86_64`, `arm64` or `ppc64`.
    pub arch: Option<String>,
    /// `GenuineIntel`, `AuthenticAMD` and the like.
    pub vendor: Option<String>,
}

/// Reads the topology file `name`. Where it has no GPUs, or none of them has links, `assume` describes them.
///
/// # Errors
/// E0606 for XML that cannot be read, E0607 for XML that is no topology of NCCL's, E0608 for a file without GPUs and
/// without an assumption.
pub fn read(name: &str, bytes: &[u8], assume: Option<Assumption>) -> Result<System, Problem> {
    let file = File::new(name, bytes)?;
    let mut root = file.parse()?;
    let mut completed = assume::complete(file, &mut root, assume)?;
    completed.notes.extend(partitions::join(&mut root));
    graph::system(name, file, root, completed)
}

impl System {
    /// Returns the text of the file again, as NCCL's reader takes it, with the assumptions as comments.
    ///
    /// # Errors
    /// E0609 for a topology that NCCL's reader would not take.
    pub fn write(&self) -> Result<String, Problem> {
        write::document(&self.assumptions, &self.root)
    }
}
