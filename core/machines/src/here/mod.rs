//! The machine of a [`Root`]: its tree of elements, as NCCL and RCCL build it from the files of the system.
//!
//! The ranks are the GPUs, and on a machine without GPUs the cores. What comes out is a [`System`] as that of a file, with
//! the facts that each source told; what no file tells is an assumption, which the report names.

mod amd;
mod cpus;
mod network;
mod nvidia;
mod pci;
mod processors;

use roundelay_base::diagnostics::Code;
use roundelay_topology::Problem;
use roundelay_topology::file::File;
use roundelay_topology::host::{Cores, Root, numbers};
use roundelay_topology::nccl::System;
use roundelay_topology::nccl::element::Element;
use roundelay_topology::nccl::graph::{self, Completed};

use crate::nccl::{Assumption, complete};
use pci::Tree;
use processors::Processors;

/// A GPU of NVIDIA's as its driver describes it: what no file of the system has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverGpu {
    /// The bus id, such as `0000:1b:00.0`.
    pub busid: String,
    /// The CUDA capability, such as 90.
    pub sm: u32,
    /// The bus id of the other end of each of its `NVLinks` that is on.
    pub nvlinks: Vec<String>,
    /// Its chip-to-chip links: the megabytes a second of each.
    pub c2c: Vec<u32>,
}

/// Reads the machine of a root, called `name` in messages. `driver` has the GPUs of NVIDIA's as their driver tells them, or
/// the reason why it was not asked; `assume` describes GPUs of which no source knows the kind or the links.
///
/// # Errors
/// E0607 where no GPU and no core can be read, E0608 where the kind of the GPUs is unknown and not assumed, and the errors
/// of a topology as a whole.
pub fn read(
    name: &str,
    root: &Root,
    driver: Result<&[DriverGpu], &str>,
    assume: Option<Assumption>,
) -> Result<System, Problem> {
    let mut facts = Completed::default();
    let cpus = Processors::read(root);
    let mut tree = Tree::new(root, &cpus);
    let amd = amd::gpus(&mut tree, &mut facts);
    let nvidia = nvidia::gpus(&mut tree, driver, &mut facts);
    let has_gpus = amd + nvidia > 0;
    let allowed = root.text("proc/self/status").and_then(|text| {
        let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        numbers(list)
    });
    let mut cores = Cores::read(root);
    let online = cores.cores().len();
    if let Some(allowed) = &allowed {
        cores = cores.restrict(allowed);
    }
    if has_gpus {
        let what = "CPUs of the GPUs and network cards, with their processors";
        facts.sources.push(source("/sys/devices/system/node, /proc/cpuinfo", what));
    } else {
        cpus::add_cores(&mut tree, &cores, &mut facts);
        if cores.cores().len() < online {
            facts.notes.push(format!(
                "this process may run on {} of the {online} cores that are online, and the ranks are these",
                cores.cores().len()
            ));
        }
    }
    network::cards(&mut tree, &mut facts);
    tree.tell(&mut facts);
    let version = if amd > 0 && nvidia == 0 { "2" } else { "1" };
    let mut system = Element::new("system", &[("version", version)]);
    system.children = tree.finish();
    if !has_gpus && cores.cores().is_empty() {
        let title = format!("{name}: no GPU and no core can be read");
        return Err(Problem::new(Code::NotATopology, title)
            .note("the files are /sys/bus/pci/devices, /sys/class/kfd and /sys/devices/system/cpu")
            .help("a container may hide them: mount /sys there, or give a topology file"));
    }
    let file = File { name, text: "" };
    let found = complete(file, &mut system, assume)?;
    facts.assumptions.extend(found.assumptions);
    facts.notes.extend(found.notes);
    graph::system(name, file, system, facts)
}

/// Returns sentences about the PCI links of the network cards, and of the switches above them, that run with fewer lanes
/// or slower than they could: links that have trained down.
pub fn trained_down(root: &Root) -> Vec<String> {
    let cpus = Processors::read(root);
    let mut tree = Tree::new(root, &cpus);
    network::cards(&mut tree, &mut Completed::default());
    tree.slow
}

fn source(from: &str, what: impl Into<String>) -> [String; 2] {
    [from.to_owned(), what.into()]
}
