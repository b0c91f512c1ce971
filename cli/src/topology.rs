//! The way from `--topology` to a graph: from a text in the language, from a file, or from the files of this machine's
//! system.

use std::path::Path;
use std::sync::Arc;

use roundelay_core::check;
use roundelay_core::diagnostics::Code;
use roundelay_core::syntax::Source;
use roundelay_core::topology::Topology;
use roundelay_machines::here::{self, DriverGpu};
use roundelay_machines::nccl::{Assumption, fuse};
use roundelay_machines::{self as files, TopologyFile};
use roundelay_topology::host::Root;
use roundelay_topology::nccl::{NamedMachine, System};

use crate::flags::TopologyFlags;
use crate::report::Failure;
use crate::streams::{self, note};

/// The largest size in bytes of a topology file.
const LARGEST: u64 = 64 << 20;
/// The text that stands for this machine.
pub(crate) const HERE: &str = "here";

/// A topology, and the machine if it came from a file about one.
pub(crate) struct Given {
    pub(crate) topology: Arc<Topology>,
    pub(crate) system: Option<System>,
    /// Sentences about a file that describes no machine.
    pub(crate) notes: Vec<String>,
}

impl From<System> for Given {
    fn from(system: System) -> Self {
        let topology = Arc::new(system.topology.clone().into());
        Self { topology, system: Some(system), notes: Vec::new() }
    }
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
/// exists; or of a machine: of this one for `here`, or of one whose `/sys` and `/proc` were copied to a folder. The
/// assumptions about a file that has few facts are said.
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
    if text == HERE || Path::new(text).is_dir() {
        return Ok((machine(text, assumption)?, false));
    }
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

/// Reads the machine of a folder, which is `/` for this machine.
fn machine(text: &str, assumption: Option<Assumption>) -> Result<Given, Failure> {
    let root = Root::new(if text == HERE { "/" } else { text }).map_err(|error| {
        Failure::usage(Code::UnreadableXml, format!("the folder `{text}` cannot be read: {error}"))
    })?;
    let driver = if text == HERE { driver() } else { Err("the files are a copy".to_owned()) };
    let driver = driver.as_deref().map_err(String::as_str);
    Ok(here::read(text, &root, driver, assumption)?.into())
}

/// Reads the machines of several files as the hosts of one job.
pub(crate) fn fused(files: &[String], assume: Option<&str>) -> Result<Given, Failure> {
    let machine = |file: &String| {
        let (given, _) = quietly(file, assume)?;
        given.system.ok_or_else(|| {
            let title = format!("`{file}` describes no machine, and several files are hosts");
            Failure::usage(Code::NotATopology, title)
                .with_help("give files of NCCL's, such as `roundelay topo --here --format xml` prints on each host")
        })
    };
    let systems = files.iter().map(machine).collect::<Result<Vec<_>, _>>()?;
    Ok(fuse(&files.join(" + "), &systems)?.into())
}

/// Asks NVIDIA's driver for its GPUs.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn driver() -> Result<Vec<DriverGpu>, String> {
    use roundelay_kernels::nvml::{NVML, gpus};
    let told = gpus(Path::new(NVML)).ok_or_else(|| format!("the loader finds no {NVML}"))??;
    let gpu = |gpu: roundelay_kernels::nvml::NvmlGpu| DriverGpu {
        busid: gpu.busid,
        sm: gpu.sm,
        nvlinks: gpu.nvlinks,
        c2c: gpu.c2c,
    };
    Ok(told.into_iter().map(gpu).collect())
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn driver() -> Result<Vec<DriverGpu>, String> {
    Err("it is asked on Linux alone".to_owned())
}
