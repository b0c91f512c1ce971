//! The way from `--topology` to a graph: from a text in the language, or from a file.

use std::path::Path;
use std::sync::Arc;

use roundelay_core::check;
use roundelay_core::diagnostics::Code;
use roundelay_core::syntax::Source;
use roundelay_core::topology::Topology;
use roundelay_machines::nccl::Assumption;
use roundelay_machines::{self as files, TopologyFile};
use roundelay_topology::nccl::{NamedMachine, System};

use crate::flags::TopologyFlags;
use crate::report::Failure;
use crate::streams::{self, note};

/// The largest size in bytes of a topology file.
const LARGEST: u64 = 64 << 20;

/// A topology, and the machine if it came from a file about one.
pub(crate) struct Given {
    pub(crate) topology: Arc<Topology>,
    pub(crate) system: Option<System>,
    /// Sentences about a file that describes no machine.
    pub(crate) notes: Vec<String>,
}

/// Returns the topology that the flags name, if they name one.
pub(crate) fn given(flags: &TopologyFlags) -> Result<Option<Given>, Failure> {
    optional(flags.topology.as_deref(), flags.assume.as_deref())
}

/// Reads the topology of a text or of a file, if there is one.
pub(crate) fn optional(text: Option<&str>, assume: Option<&str>) -> Result<Option<Given>, Failure> {
    text.map(|text| read(text, assume)).transpose()
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
/// exists. The assumptions about a file that has few facts are said.
pub(crate) fn read(text: &str, assume: Option<&str>) -> Result<Given, Failure> {
    let (given, is_sketch) = quietly(text, assume)?;
    for assumption in given.system.iter().flat_map(|system| &system.assumptions) {
        if is_sketch {
            note(format!("note: {text}: assumed: {assumption}"));
        }
    }
    Ok(given)
}

/// Reads the topology of a text, or of a file, and returns whether it is of a file that has few facts.
pub(crate) fn quietly(text: &str, assume: Option<&str>) -> Result<(Given, bool), Failure> {
    let assumption = assume.map(Assumption::parse).transpose()?;
    let xml = Path::new(text).extension().is_some_and(|e| e.eq_ignore_ascii_case("xml"));
    let is_file = xml || !text.contains('(') && Path::new(text).exists();
    if is_file {
        let read = files::read(text, &bytes(text)?, xml, assumption)?;
        let TopologyFile { topology, system, notes, is_sketch } = read;
        return Ok((Given { topology: Arc::new(topology.into()), system, notes }, is_sketch));
    }
    let source = Source::from_text("<topology>", text);
    match check::topology::read(&source) {
        Ok(topology) => {
            let topology = match assumption {
                Some(assumption) => assumption.of_ranks(topology.into())?.into(),
                None => topology,
            };
            let (topology, notes) = (Arc::new(topology), Vec::new());
            let system = check::topology::machine(&source);
            Ok((Given { topology, system, notes }, false))
        }
        Err(mut errors) => {
            if let Some(machine) = NamedMachine::find(text.trim()) {
                errors.truncate(1);
                let help = format!("write `machine(\"{}\")`", machine.name);
                for error in &mut errors {
                    error.help = Some(help.clone());
                }
            }
            Err(Failure::Value(errors, Box::new(source)))
        }
    }
}
