//! NCCL's topology files, read and written; RCCL's dialect too.
//!
//! A file is read as a tree of elements (`xml`), which an [`Assumption`] may complete (`assume`); `roundelay_topology`
//! makes the graph of it.

mod assume;
mod devices;
mod matrix;
mod partitions;
mod write;
mod xml;

use roundelay_topology::Problem;
use roundelay_topology::file::File;
use roundelay_topology::nccl::{System, graph};

pub use assume::Assumption;
pub(super) use matrix::{begins as is_matrix, read as read_matrix};
pub use write::{write, write_system};

/// Reads the topology file `name`. Where it has no GPUs, or none of them has links, `assume` describes them.
///
/// # Errors
/// E0606 for XML that cannot be read, E0607 for XML that is no topology of NCCL's, E0608 for a file without GPUs and
/// without an assumption.
pub fn read(name: &str, bytes: &[u8], assume: Option<Assumption>) -> Result<System, Problem> {
    let file = File::new(name, bytes)?;
    let mut root = xml::parse(file)?;
    let mut completed = assume::complete(file, &mut root, assume)?;
    completed.notes.extend(partitions::join(&mut root));
    graph::system(name, file, root, completed)
}
