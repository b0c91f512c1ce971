//! NCCL's topology files, read and written; RCCL's dialect too.
//!
//! A file is read as a tree of elements (`xml`), which an [`Assumption`] may complete (`assume`); `roundelay_topology`
//! makes the graph of it.

mod assume;
mod devices;
mod fuse;
mod matrix;
mod partitions;
mod write;
mod xml;

use roundelay_topology::Problem;
use roundelay_topology::file::File;
use roundelay_topology::nccl::System;
use roundelay_topology::nccl::element::Element;
use roundelay_topology::nccl::graph::{self, Completed};

pub use assume::Assumption;
pub use fuse::fuse;
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
    let completed = complete(file, &mut root, assume)?;
    graph::system(name, file, root, completed)
}

/// Completes a tree by an assumption, and puts the parts of cards where they belong.
pub(crate) fn complete(
    file: File,
    root: &mut Element,
    assume: Option<Assumption>,
) -> Result<Completed, Problem> {
    let mut completed = assume::complete(file, root, assume)?;
    completed.notes.extend(partitions::join(root));
    Ok(completed)
}
