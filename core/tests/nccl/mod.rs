//! NCCL's topology files and the paths in them: the contents of real files, refusals, written files.

mod bad;
mod dumps;
mod files;
mod fuzz;
mod generations;
mod machines;
mod matrix;
mod partial;
mod routes;
mod rules;
mod written;

use roundelay_topology::Fabric;
use std::fmt::Write as _;

use roundelay_core::units::rate_text;
use roundelay_machines::nccl::{self, Assumption};
use roundelay_topology::nccl::System;
use roundelay_topology::paths::{self, Path};
use roundelay_topology::shape::{Argument, Shape, ShapeKind, Size};
use roundelay_topology::{LinkKind, NodeId, NodeKind, Problem};

/// Files that name their GPUs.
pub(crate) const FULL: [&str; 4] = [
    "azure-ncv4-4a100-pcie.xml",
    "rccl-4p3l-mesh.xml",
    "rccl-8p90a-partial-mesh.xml",
    "simccl-8a100-nvswitch-5nic.xml",
];
/// Files that do not.
pub(crate) const PARTIAL: [&str; 2] = ["aws-p4d-8a100-vm.xml", "azure-ndv4-8a100-vm.xml"];

fn bytes(name: &str) -> Vec<u8> {
    let path = format!("{}/../../tests/topo/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn load(name: &str) -> System {
    let assume = PARTIAL.contains(&name).then(|| Assumption::parse("sm=80,nvlinks=12").unwrap());
    nccl::read(name, &bytes(name), assume).unwrap_or_else(|problem| panic!("{problem:#?}"))
}

/// A system of our own.
fn text(xml: &str) -> Result<System, Problem> {
    nccl::read("test.xml", xml.as_bytes(), None)
}

fn node(topology: &Fabric, name: &str) -> NodeId {
    let found = topology.nodes().iter().position(|node| node.name == name);
    NodeId(found.unwrap_or_else(|| panic!("no node {name}")) as u32)
}

fn path(topology: &Fabric, from: &str, to: &str) -> Path {
    let to = node(topology, to);
    paths::paths_from(topology, node(topology, from))[to.index()].clone()
}

/// Kind and bandwidth of a path.
fn says(topology: &Fabric, from: &str, to: &str) -> String {
    let path = path(topology, from, to);
    format!("{} {}", path.kind, rate_text(path.bandwidth.floor()))
}

/// Returns an artificial topology whose links carry `rate`, or b.
fn shape(kind: ShapeKind, sizes: &[i64], rate: Option<u64>) -> Shape {
    let sizes = sizes.iter().map(|n| Argument::Size(Size::One(*n)));
    let arguments: Vec<_> = sizes.chain(rate.map(Argument::Rate)).collect();
    Shape::new(kind, &arguments).unwrap()
}

fn capacity(topology: &Fabric, from: &str, to: &str, kind: LinkKind) -> Option<String> {
    let to = node(topology, to);
    let links = topology.out(node(topology, from));
    let link = links.iter().find(|link| link.to == to && link.kind == kind)?;
    Some(rate_text(link.capacity.floor()))
}

/// Nodes, links and the paths between ranks, and from ranks to network cards.
fn describe(system: &System) -> String {
    let topology = &system.topology;
    let mut text = String::new();
    let _ = writeln!(text, "sm {:?}, nvswitch {}", system.sm, system.nvswitch);
    for sentence in &system.assumptions {
        let _ = writeln!(text, "{sentence}");
    }
    let name = |node: NodeId| topology.nodes()[node.index()].name.as_str();
    for (i, node) in topology.nodes().iter().enumerate() {
        let _ = write!(text, "{i} {:?} `{}` group {:?}", node.kind, node.name, node.group);
        let _ = writeln!(text, "{}", node.vendor.map(|v| format!(" {v:?}")).unwrap_or_default());
    }
    for link in topology.links() {
        let (from, to) = (name(link.from), name(link.to));
        let _ = write!(text, "{from} -> {to}: {:?} ", link.kind);
        let _ = writeln!(text, "{} {} ns", rate_text(link.capacity.floor()), link.latency);
    }
    let wanted = |i: &usize| matches!(topology.nodes()[*i].kind, NodeKind::Nic | NodeKind::Net);
    let ranks = topology.nranks() as usize;
    let columns: Vec<_> =
        (0..ranks).chain((ranks..topology.nodes().len()).filter(wanted)).collect();
    for rank in topology.ranks() {
        let paths = paths::paths_from(topology, rank.into());
        let cell =
            |i: &usize| format!("{} {}", paths[*i].kind, rate_text(paths[*i].bandwidth.floor()));
        let row: Vec<_> = columns.iter().map(cell).collect();
        let _ = writeln!(text, "{rank}: {}", row.join(", "));
    }
    text
}
