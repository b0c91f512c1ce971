//! Writes topology files within the limits of NCCL's own reader.
//!
//! It accepts no `<?xml?>` line and no line break inside a tag, escapes nothing, and has limits for elements,
//! children, attributes and characters; a topology beyond them is refused with the reason.

use std::fmt::Write as _;

use roundelay_base::diagnostics::Code;
use roundelay_base::units::rate_text;
use roundelay_topology::nccl::cables::NVLINKS;
use roundelay_topology::nccl::element::Element;
use roundelay_topology::nccl::gpu_links::switch;
use roundelay_topology::nccl::{System, speeds};
use roundelay_topology::{Fabric, GpuModel, Link, NodeId, NodeKind, Problem};

const ELEMENTS: usize = 256;
const CHILDREN: usize = 640;
const ATTRIBUTES: usize = 16;
const CHARACTERS: usize = 255;

/// Capabilities with an `NVLink` speed of their own; the first that fits a topology is used.
const GPUS: [i64; 5] = [80, 90, 100, 60, 86];

fn refuse(title: impl Into<String>) -> Problem {
    Problem::new(Code::CannotWrite, title)
}

/// Elements of ours, which NCCL's reader passes over without a limit.
const PASSED: [&str; 2] = ["l3", "core"];

/// Returns the text of the file of a machine again, as NCCL's reader takes it, with the sources and assumptions as
/// comments.
///
/// # Errors
/// E0609 for a topology that NCCL's reader would not take.
pub fn write_system(system: &System) -> Result<String, Problem> {
    let source = |[from, what]: &[String; 2]| format!("{from}: {what}.");
    let sources: Vec<_> = system.sources.iter().map(source).collect();
    document(&[sources, system.assumptions.clone()].concat(), &system.root)
}

/// Returns an element as text, with comments above it.
fn document(comments: &[String], root: &Element) -> Result<String, Problem> {
    let mut text = String::new();
    for comment in comments {
        let _ = writeln!(text, "<!-- {} -->", comment.replace("--", "- -"));
    }
    let mut elements = 0;
    put(root, 0, &mut elements, &mut text)?;
    if elements > ELEMENTS {
        let title = format!("{elements} elements; NCCL reads files of at most {ELEMENTS}");
        return Err(refuse(title));
    }
    Ok(text)
}

fn put(
    element: &Element,
    depth: usize,
    elements: &mut usize,
    text: &mut String,
) -> Result<(), Problem> {
    let Element { tag, attributes, children, .. } = element;
    *elements += usize::from(!PASSED.contains(tag));
    let known = children.iter().filter(|child| !PASSED.contains(&child.tag)).count();
    if known > CHILDREN {
        let title = format!("{known} children of a <{tag}>; NCCL reads {CHILDREN}");
        return Err(refuse(title));
    }
    if attributes.len() > ATTRIBUTES {
        let title =
            format!("{} attributes of a <{tag}>; NCCL reads {ATTRIBUTES}", attributes.len());
        return Err(refuse(title));
    }
    let indent = "  ".repeat(depth);
    let _ = write!(text, "{indent}<{tag}");
    for (name, value) in attributes {
        if value.len() > CHARACTERS {
            let title = format!("a `{name}` of {} characters", value.len());
            return Err(refuse(title).note(format!("NCCL reads {CHARACTERS}")));
        }
        if value.contains(|c: char| c.is_control() || "\"&<>".contains(c)) {
            let title =
                format!("the `{name}` of a <{tag}> holds a character that NCCL cannot read");
            return Err(refuse(title).note("its reader knows no quotes, &, < or > in a value"));
        }
        let _ = write!(text, " {name}=\"{value}\"");
    }
    if children.is_empty() {
        text.push_str("/>\n");
        return Ok(());
    }
    text.push_str(">\n");
    children.iter().try_for_each(|child| put(child, depth + 1, elements, text))?;
    let _ = writeln!(text, "{indent}</{tag}>");
    Ok(())
}

/// Writes a constructed topology as a file: its links as `NVLinks` between GPUs, or to one `NVSwitch`.
pub fn write(topology: &Fabric) -> Result<String, Problem> {
    if topology.is_relative() {
        return Err(refuse("the links of the topology have no bandwidth in bytes a second")
            .help("give one, such as `full_mesh(8, 20GB/s)`"));
    }
    let odd = |kind: NodeKind| !matches!(kind, NodeKind::Rank | NodeKind::NvSwitch);
    if let Some(node) = topology.nodes().iter().find(|node| odd(node.kind)) {
        let title = format!("the format has no place for `{}`", node.name);
        return Err(refuse(title).note(
            "it describes the inside of one machine: its GPUs, joined by \
            NVLinks or one NVSwitch; a network is not part of it",
        ));
    }
    let switches = topology.nodes().len() - topology.nranks() as usize;
    if switches > 1 {
        let title = format!("{switches} switches; NCCL takes all NVSwitches of a file for one");
        return Err(refuse(title));
    }
    let sm = capability(topology)?;
    let mut cpu =
        Element::new("cpu", &[("numaid", "0"), ("arch", "x86_64"), ("vendor", "AuthenticAMD")]);
    for rank in topology.ranks() {
        let (id, text) = (busid(rank.into()), rank.to_string());
        let speed = [("link_speed", "16 GT/s"), ("link_width", "16")];
        let mut pci =
            Element::new("pci", &[&[("busid", &*id), ("class", "0x030200")], &speed[..]].concat());
        let capability = sm.to_string();
        let mut gpu = Element::new(
            "gpu",
            &[("dev", &text), ("sm", &capability), ("rank", &text), ("gdr", "1")],
        );
        for link in topology.out(rank.into()) {
            gpu.children.push(cable(topology, link, speeds::nvlink(sm))?);
        }
        pci.children.push(gpu);
        cpu.children.push(pci);
    }
    let mut root = Element::new("system", &[("version", "1")]);
    root.children.push(cpu);
    let comments = [
        format!("{} as NVLinks of sm {sm}.", topology.name()),
        "The CPU and the PCI links are made up: the format asks for them. It has no latencies."
            .into(),
    ];
    document(&comments, &root)
}

/// Returns the bus id of a GPU in the file.
fn busid(rank: NodeId) -> String {
    format!("0000:{:02x}:{:02x}.0", rank.0 / 32 + 1, rank.0 % 32)
}

/// Returns the number of `NVLinks` that have the capacity of `link`.
fn lanes(link: &Link, each: u64) -> Option<u64> {
    let whole = link.capacity.den() == 1 && link.capacity.num().is_multiple_of(each);
    let count = link.capacity.num() / each;
    (whole && count <= NVLINKS as u64).then_some(count)
}

/// Returns a capability at which every link is a whole number of `NVLinks`.
fn capability(topology: &Fabric) -> Result<i64, Problem> {
    let known = match topology.gpus().map(|gpus| gpus.model) {
        None => &GPUS[..],
        Some(GpuModel::Cuda(sm)) => &[i64::from(sm)],
        Some(GpuModel::Amd(_)) => {
            return Err(refuse("the ranks are AMD's GPUs, which NVLinks do not join"));
        }
    };
    let fits = |sm: &i64, links: &[Link]| {
        links.iter().all(|link| lanes(link, speeds::nvlink(*sm)).is_some())
    };
    if let Some(sm) = known.iter().find(|sm| fits(sm, topology.links())) {
        return Ok(*sm);
    }
    let none = |link: &&Link| known.iter().all(|sm| lanes(link, speeds::nvlink(*sm)).is_none());
    let title = match topology.links().iter().find(none) {
        Some(link) => {
            let rate = link.capacity;
            format!("{rate} bytes/s are not a whole number of NVLinks, at most {NVLINKS}")
        }
        None => "no GPU has an NVLink of which all bandwidths are whole numbers".to_owned(),
    };
    let speed = |sm: &i64| format!("{} (sm {sm})", rate_text(speeds::nvlink(*sm)));
    let speeds: Vec<_> = known.iter().map(speed).collect();
    Err(refuse(title).help(format!("give multiples of one of {}", speeds.join(", "))))
}

fn cable(topology: &Fabric, link: &Link, each: u64) -> Result<Element, Problem> {
    let count = lanes(link, each).unwrap_or_default().to_string();
    if topology.is_rank(link.to) {
        let target = busid(link.to);
        let class = ("tclass", "0x030200");
        return Ok(Element::new("nvlink", &[("target", &*target), ("count", &*count), class]));
    }
    let back = |l: &Link| l.to == link.from && l.capacity == link.capacity;
    if !topology.out(link.to).iter().any(back) {
        let title = format!("rank {} sends to the switch at another speed than back", link.from.0);
        return Err(refuse(title));
    }
    Ok(switch(&count))
}
