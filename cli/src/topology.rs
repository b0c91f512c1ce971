//! The way from `--topology` to a graph: from a text in the language, from a topology file of NCCL's, or from a list of
//! links.

use std::path::Path;
use std::sync::Arc;

use roundelay_core::check;
use roundelay_core::diagnostics::Code;
use roundelay_core::syntax::Source;
use roundelay_core::topology::Topology;
use roundelay_core::topology::links;
use roundelay_core::topology::nccl::{self, Assumption, System};

use crate::flags::TopologyFlags;
use crate::report::Failure;
use crate::streams;

/// The largest size in bytes of a topology file.
const LARGEST: u64 = 64 << 20;

/// A topology, and the machine if it came from a file.
pub(crate) struct Given {
    pub(crate) topology: Arc<Topology>,
    pub(crate) system: Option<System>,
}

/// Returns the topology that the flags name, if they name one.
pub(crate) fn given(flags: &TopologyFlags) -> Result<Option<Given>, Failure> {
    flags.topology.as_deref().map(|text| read(text, flags.assume.as_deref())).transpose()
}

/// Returns the bytes of a file that is not larger than any topology.
fn bytes(path: &str) -> Result<Vec<u8>, Failure> {
    let read = streams::bytes(path, LARGEST).map_err(|error| {
        Failure::usage(Code::UnreadableXml, format!("`{path}` cannot be read: {error}"))
    })?;
    read.ok_or_else(|| {
        let title = format!("`{path}` has more than {} MiB", LARGEST >> 20);
        Failure::usage(Code::NotATopology, title)
            .with_help("the topology file of a machine has some 10 kB")
    })
}

/// Reads the topology of a text, or of a file: of a path that ends in `.xml`, or that is no text of a topology and
/// exists.
pub(crate) fn read(text: &str, assume: Option<&str>) -> Result<Given, Failure> {
    let assumption = assume.map(Assumption::parse).transpose()?;
    let xml = Path::new(text).extension().is_some_and(|e| e.eq_ignore_ascii_case("xml"));
    let is_file = xml || !text.contains('(') && Path::new(text).exists();
    if is_file {
        let bytes = bytes(text)?;
        let begin = bytes.trim_ascii_start();
        if !xml && !begin.starts_with(b"<") && !begin.starts_with(b"\xEF\xBB\xBF") {
            if assume.is_some() {
                return Err(no_file());
            }
            let list = String::from_utf8_lossy(&bytes);
            let topology = Arc::new(links::read(text, &list)?);
            return Ok(Given { topology, system: None });
        }
        let system = nccl::read(text, &bytes, assumption)?;
        let topology = Arc::new(system.topology.clone());
        return Ok(Given { topology, system: Some(system) });
    }
    if assume.is_some() {
        return Err(no_file());
    }
    let source = Source::from_text("<topology>", text);
    match check::topology::read(&source) {
        Ok(topology) => Ok(Given { topology: Arc::new(topology), system: None }),
        Err(errors) => Err(Failure::Value(errors, Box::new(source))),
    }
}

/// Returns the failure of an assumption about a topology that does not need it.
fn no_file() -> Failure {
    let title = "--assume completes a topology file of NCCL's, and this is none";
    Failure::usage(Code::BadFlag, title)
}
