//! From `--topology` to a graph: a text in the language, or a topology file of NCCL's.

use std::sync::Arc;

use roundelay_core::check;
use roundelay_core::source::Source;
use roundelay_core::topology::Topology;

use crate::flags::TopologyFlags;
use crate::report::Failure;

/// A topology and what had to be assumed to know it.
pub(crate) struct Given {
    pub(crate) topology: Arc<Topology>,
    pub(crate) assumptions: Vec<String>,
}

/// The topology that the flags name, if they name one.
pub(crate) fn given(flags: &TopologyFlags) -> Result<Option<Given>, Failure> {
    flags.topology.as_deref().map(|text| read(text, flags.assume.as_deref())).transpose()
}

/// The topology of a text or file.
pub(crate) fn read(text: &str, _assume: Option<&str>) -> Result<Given, Failure> {
    let source = Source::from_text("<topology>", text);
    match check::topology::read(&source) {
        Ok(topology) => Ok(Given { topology: Arc::new(topology), assumptions: Vec::new() }),
        Err(errors) => Err(Failure::Value(errors, Box::new(source))),
    }
}
