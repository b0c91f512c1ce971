//! The tree of PCI devices, by NCCL's rules: from a device up its path in `/sys`, a switch at a time, to the memory node.

use std::collections::{BTreeMap, BTreeSet};

use roundelay_base::units::count;
use roundelay_topology::host::Root;
use roundelay_topology::nccl::element::{Element, integer};
use roundelay_topology::nccl::graph::Completed;

use super::processors::Processors;
use super::source;

/// The folder of links to all PCI devices.
pub(super) const DEVICES: &str = "sys/bus/pci/devices";
/// The class of a switch whose own class cannot be read.
const SWITCH: &str = "0x060400";
/// The devices that are named before the rest is only counted.
const NAMED: usize = 4;
/// The most bytes of a value.
const LONGEST: usize = 64;

/// The tree that is being built: the CPUs by their memory node, with what hangs below them.
pub(super) struct Tree<'a> {
    pub(super) root: &'a Root,
    processors: &'a Processors,
    cpus: BTreeMap<i64, Element>,
    /// The CPU that was found first, where devices hang that are none of PCI.
    first: Option<i64>,
    /// The devices that are in the tree.
    seen: BTreeSet<String>,
    /// Devices without a memory node, and without the speed of their link.
    homeless: Vec<String>,
    speedless: Vec<String>,
    /// Sentences about links that are slower than they could be.
    pub(super) slow: Vec<String>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(root: &'a Root, processors: &'a Processors) -> Self {
        let (homeless, speedless, slow) = (Vec::new(), Vec::new(), Vec::new());
        let (cpus, seen) = (BTreeMap::new(), BTreeSet::new());
        Self { root, processors, cpus, first: None, seen, homeless, speedless, slow }
    }

    /// Returns the CPU of a memory node, which is -1 where no file tells it.
    pub(super) fn cpu(&mut self, numaid: i64) -> &mut Element {
        self.first.get_or_insert(numaid);
        let new = || self.processors.node(self.root, numaid);
        self.cpus.entry(numaid).or_insert_with(new)
    }

    /// Returns the CPU below which a device hangs that has no place among the PCI devices.
    pub(super) fn first_cpu(&mut self) -> &mut Element {
        self.cpu(self.first.unwrap_or(0))
    }

    /// Returns the element of a PCI device, in its place below switches and CPU. `class` is that of a device whose own
    /// class cannot be read.
    pub(super) fn device(&mut self, busid: &str, class: &str) -> &mut Element {
        let (chain, numaid) = chain(self.root, &busid.to_lowercase());
        let levels = chain.len();
        let mut elements = Vec::new();
        for (level, place) in chain.into_iter().enumerate() {
            let class = if level + 1 < levels { SWITCH } else { class };
            let element = place.element(self.root, class);
            if self.seen.insert(place.busid.clone()) {
                if numaid < 0 {
                    self.homeless.push(place.busid.clone());
                }
                if element.get("link_speed").is_none() {
                    self.speedless.push(place.busid.clone());
                }
                self.slow.extend(place.trained_down(self.root, &element));
            }
            elements.push(element);
        }
        let mut at = self.cpu(numaid);
        for element in elements {
            let is_known = |c: &Element| c.tag == "pci" && c.get("busid") == element.get("busid");
            let known = at.children.iter().position(is_known);
            let place = known.unwrap_or_else(|| {
                at.children.push(element);
                at.children.len() - 1
            });
            at = &mut at.children[place];
        }
        at
    }

    /// Tells where the devices come from, and what is unusual about them.
    pub(super) fn tell(&self, facts: &mut Completed) {
        if !self.seen.is_empty() {
            let what = format!("{} with classes, links and memory nodes", devices(self.seen.len()));
            facts.sources.push(source("/sys/bus/pci/devices", what));
        }
        let named = |ids: &[String]| {
            let more = ids.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{}{more}", ids[..ids.len().min(NAMED)].join(", "))
        };
        if !self.homeless.is_empty() {
            facts.notes.push(format!(
                "no file tells the memory node of {} ({}), as on most virtual machines: NCCL has a CPU -1 for that",
                devices(self.homeless.len()),
                named(&self.homeless)
            ));
        }
        if !self.speedless.is_empty() {
            facts.notes.push(format!(
                "no file tells the PCI link of {} ({})",
                devices(self.speedless.len()),
                named(&self.speedless)
            ));
        }
        facts.notes.extend(self.slow.iter().cloned());
    }

    /// Returns the CPUs, with devices in the order of their bus ids.
    pub(super) fn finish(self) -> Vec<Element> {
        let mut cpus: Vec<_> = self.cpus.into_values().collect();
        cpus.iter_mut().for_each(sort);
        cpus
    }
}

fn devices(count_of: usize) -> String {
    count(count_of, "PCI device")
}

fn sort(element: &mut Element) {
    let busid = |e: &Element| e.get("busid").filter(|_| e.tag == "pci").map(str::to_owned);
    element.children.sort_by_key(|e| (e.tag != "pci", busid(e)));
    element.children.iter_mut().for_each(sort);
}

/// A device, and its folder without the root where it has one.
struct PciPlace {
    busid: String,
    folder: Option<String>,
}

/// Returns a device with the switches above it, the highest first, and the number of its memory node. A switch is two
/// devices in a path, of which NCCL takes the upper one.
fn chain(root: &Root, busid: &str) -> (Vec<PciPlace>, i64) {
    let Some(path) = root.real(&format!("{DEVICES}/{busid}")) else {
        return (vec![PciPlace { busid: busid.to_owned(), folder: None }], -1);
    };
    let parts: Vec<&str> = path.split('/').collect();
    let mut at = parts.len() - 1;
    let mut chain = Vec::new();
    loop {
        let folder = parts[..=at].join("/");
        // The name of the link is the device, also where it leads to a folder of another name.
        let busid = if chain.is_empty() { busid } else { parts[at] };
        chain.push(PciPlace { busid: busid.to_owned(), folder: Some(folder) });
        let is_switch = at >= 2 && is_address(parts[at - 1]) && is_address(parts[at - 2]);
        if !is_switch {
            break;
        }
        at -= 2;
    }
    let highest = format!("{}/numa_node", parts[..=at].join("/"));
    let numaid = root.text(&highest).and_then(|text| text.parse().ok());
    chain.reverse();
    (chain, numaid.filter(|node| (-1..1 << 16).contains(node)).unwrap_or(-1))
}

/// Whether a text is the address of a PCI device, as NCCL takes one: `0000:1b:00.0`.
pub(super) fn is_address(text: &str) -> bool {
    let form = b"hhhh:hh:hh.h";
    let fits = |(c, f): (u8, &u8)| if *f == b'h' { c.is_ascii_hexdigit() } else { c == *f };
    text.len() == form.len() && text.bytes().zip(form).all(fits)
}

impl PciPlace {
    /// Returns a file of the device; `None` where NCCL's format has no place for its text.
    fn text(&self, root: &Root, name: &str) -> Option<String> {
        let text = root.text(&format!("{}/{name}", self.folder.as_ref()?))?;
        let plain = |c: char| !c.is_control() && !"\"&<>".contains(c);
        (text.len() <= LONGEST && text.chars().all(plain)).then_some(text)
    }

    fn element(&self, root: &Root, class: &str) -> Element {
        let own = self.text(root, "class");
        let of = [("busid", &*self.busid), ("class", own.as_deref().unwrap_or(class))];
        let mut element = Element::new("pci", &of);
        for name in ["vendor", "device", "subsystem_vendor", "subsystem_device"] {
            element.attributes.extend(self.text(root, name).map(|text| (name, text)));
        }
        // A link is as its slower end can be.
        let ends = |name: &str| [self.text(root, name), self.text(root, &format!("../{name}"))];
        let slower = ends("max_link_speed").into_iter().flatten();
        let slower = slower.min_by(|a, b| rate(a).total_cmp(&rate(b)));
        element.attributes.extend(slower.map(|text| ("link_speed", text)));
        let lanes = ends("max_link_width").into_iter().flatten();
        let lanes =
            lanes.filter_map(|text| text.parse::<u8>().ok()).filter(|lanes| *lanes > 0).min();
        element.attributes.extend(lanes.map(|lanes| ("link_width", lanes.to_string())));
        element
    }

    /// Returns a sentence about a link that runs with fewer lanes or slower than both of its ends can.
    fn trained_down(&self, root: &Root, element: &Element) -> Option<String> {
        let lanes: i64 = self.text(root, "current_link_width")?.parse().ok()?;
        let most = element.get("link_width").and_then(integer)?;
        let now = self.text(root, "current_link_speed")?;
        let best = element.get("link_speed")?;
        let slower = rate(&now) < rate(best);
        let mut parts = Vec::new();
        parts.extend((lanes < most).then(|| format!("{lanes} of its {most} lanes")));
        parts.extend(slower.then(|| format!("{now} of {best}")));
        if parts.is_empty() {
            return None;
        }
        let idle = match lanes < most {
            false if element.is_class("0x03") => "; a GPU that is idle does so to save power",
            false => "",
            true => ": a bad contact or slot has links train down so",
        };
        Some(format!(
            "the link of PCI device {} runs with {}{idle}",
            self.busid,
            parts.join(" and ")
        ))
    }
}

/// Returns the number of a text such as `16.0 GT/s PCIe`; the largest where it has none, as NCCL takes it.
fn rate(text: &str) -> f64 {
    let number = text.split_whitespace().next().and_then(|word| word.parse().ok());
    number.filter(|rate: &f64| rate.is_finite()).unwrap_or(f64::MAX)
}
