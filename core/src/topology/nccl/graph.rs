//! From the tree of a file to the graph of a machine, as NCCL builds it.
//!
//! Two walks: the first finds the GPUs, whose ranks number the first nodes; the second makes the other nodes
//! and all links. Links between the same two nodes add up.

use std::collections::BTreeMap;

use super::xml::{Element, File};
use super::{Cpu, System, speeds};
use crate::rational::Rat;
use crate::topology::draft::Draft;
use crate::topology::{Link, LinkKind, NodeId, NodeKind, Problem, Vendor};

/// GPUs of a machine.
const GPUS: usize = 256;
/// CPUs of a machine: each is linked to all others.
const CPUS: usize = 256;
/// Nodes of a machine.
const NODES: usize = 1 << 12;
/// `NVLinks` between two devices.
pub(super) const NVLINKS: i64 = 1024;
/// Megabytes a second of a chip-to-chip link; also megabits of a network port.
const MEGA: i64 = 1_000_000_000;
/// The longest latency of a network port: an hour, in microseconds.
const SLOWEST: f64 = 3.6e9;

/// The system that a complete tree describes.
pub(super) fn system(
    name: &str,
    file: File,
    mut root: Element,
    assumptions: Vec<String>,
) -> Result<System, Problem> {
    let version = file.number(&root, "version", 1..=2)?;
    version.ok_or_else(|| file.lacks(&root, "version"))?;
    let ranks = ranks(file, &root)?;
    number(&mut root, &mut ranks.iter());
    let mut reader = GraphReader {
        file,
        draft: Draft::new(name, ranks.len() as u64, false)?,
        nodes: ranks.len(),
        devices: BTreeMap::new(),
        links: BTreeMap::new(),
        gpus: Vec::new(),
        bridges: Vec::new(),
        guessed: Guessed::default(),
    };
    reader.cpus(&root)?;
    if reader.gpus.len() < ranks.len() {
        let lost = ranks.len() - reader.gpus.len();
        let title = format!("{lost} GPUs that are not in a <pci> of their own below a <cpu>");
        return Err(file.wrong(&root, title));
    }
    reader.bridges()?;
    let (sm, nvswitch) = reader.nvlinks()?;
    let GraphReader { mut draft, links, guessed, .. } = reader;
    for ((from, to, kind), (capacity, latency)) in links {
        draft.link(Link { from, to, kind, capacity: Rat::whole(capacity), latency })?;
    }
    let cpu = |cpu: &Element| Cpu {
        arch: cpu.get("arch").map(str::to_owned),
        vendor: cpu.get("vendor").map(str::to_owned),
    };
    let cpus = root.all("cpu").map(cpu).collect();
    let assumptions = [assumptions, guessed.sentences()].concat();
    Ok(System { topology: draft.build()?, sm, nvswitch, cpus, assumptions, root })
}

/// The GPUs, in order of the file.
fn find<'a>(element: &'a Element, gpus: &mut Vec<&'a Element>) {
    for child in &element.children {
        match child.tag {
            "gpu" => gpus.push(child),
            _ => find(child, gpus),
        }
    }
}

/// Writes every GPU's rank into its element.
fn number(element: &mut Element, ranks: &mut std::slice::Iter<u32>) {
    for child in &mut element.children {
        if child.tag != "gpu" {
            number(child, ranks);
        } else if let Some(rank) = ranks.next() {
            child.attributes.retain(|(name, _)| *name != "rank");
            child.attributes.push(("rank", rank.to_string()));
        }
    }
}

/// The rank of each GPU.
fn ranks(file: File, root: &Element) -> Result<Vec<u32>, Problem> {
    let mut gpus = Vec::new();
    find(root, &mut gpus);
    if gpus.len() > GPUS {
        let title = format!("{} GPUs; a machine has at most {GPUS}", gpus.len());
        return Err(file.wrong(root, title));
    }
    let has = |name: &&str| gpus.iter().any(|gpu| gpu.get(name).is_some());
    let Some(name) = ["rank", "dev"].into_iter().find(has) else {
        return Ok((0..gpus.len() as u32).collect());
    };
    let mut seen = vec![false; gpus.len()];
    let rank = |gpu: &&Element| {
        let rank = file.number(gpu, name, 0..=i64::from(u32::MAX))?;
        let rank = rank.ok_or_else(|| file.lacks(gpu, name))?;
        match seen.get_mut(rank as usize).map(|seen| std::mem::replace(seen, true)) {
            Some(false) => Ok(rank as u32),
            Some(true) => Err(file.wrong(gpu, format!("two GPUs have {name} {rank}"))),
            None => {
                let title = format!("a GPU has {name} {rank}, and there are {} GPUs", gpus.len());
                Err(file.wrong(gpu, title).note("their ranks are 0, 1, 2, ... without a gap"))
            }
        }
    };
    gpus.iter().map(rank).collect()
}

/// What was not known, counted.
#[derive(Default)]
struct Guessed {
    pci: usize,
    cpus: usize,
    xgmi: usize,
    network: usize,
}

impl Guessed {
    fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let mut say = |count: usize, what: &str| {
            if count > 0 {
                sentences.push(format!("{what} ({count}).").replace("(1)", "(once)"));
            }
        };
        say(self.pci, "PCI links of unknown speed are 8 GT/s per lane");
        say(self.cpus, "CPUs of unknown make reach others at 6 GB/s");
        say(self.xgmi, "xGMI links of unknown GPUs are 24 GB/s");
        say(self.network, "Network ports of unknown speed are 10 Gb/s");
        sentences
    }
}

/// Where in the tree a device hangs.
#[derive(Clone, Copy)]
struct Attachment {
    parent: NodeId,
    cpu: NodeId,
    group: u32,
}

struct Gpu<'a> {
    element: &'a Element,
    node: NodeId,
    cpu: NodeId,
    busid: String,
}

/// The graph of a machine, as far as its file has been read.
struct GraphReader<'a> {
    file: File<'a>,
    draft: Draft,
    nodes: usize,
    /// By bus id, in small letters.
    devices: BTreeMap<String, NodeId>,
    links: BTreeMap<(NodeId, NodeId, LinkKind), (u64, u64)>,
    gpus: Vec<Gpu<'a>>,
    /// Links between PCI switches, which may name one that comes later.
    bridges: Vec<(&'a Element, NodeId)>,
    guessed: Guessed,
}

impl<'a> GraphReader<'a> {
    fn node(
        &mut self,
        at: &Element,
        name: String,
        kind: NodeKind,
        group: Option<u32>,
    ) -> Result<NodeId, Problem> {
        self.nodes += 1;
        if self.nodes > NODES {
            return Err(self.file.wrong(at, format!("more than {NODES} devices")));
        }
        Ok(self.draft.switch(name, kind, group))
    }

    fn link(&mut self, from: NodeId, to: NodeId, kind: LinkKind, capacity: u64, latency: u64) {
        let (sum, slowest) = self.links.entry((from, to, kind)).or_default();
        *sum = sum.saturating_add(capacity);
        *slowest = latency.max(*slowest);
    }

    fn cable(&mut self, a: NodeId, b: NodeId, kind: LinkKind, capacity: u64) {
        self.link(a, b, kind, capacity, 0);
        self.link(b, a, kind, capacity, 0);
    }

    fn cpus(&mut self, root: &'a Element) -> Result<(), Problem> {
        let mut cpus: Vec<(&'a Element, NodeId)> = Vec::new();
        for (group, cpu) in root.all("cpu").enumerate() {
            let numaid = self.file.number(cpu, "numaid", -1..=1 << 16)?;
            let numaid = numaid.ok_or_else(|| self.file.lacks(cpu, "numaid"))?;
            let id = |cpu: &'a Element| ["numaid", "host_hash"].map(|name| cpu.get(name));
            if cpus.iter().any(|(other, _)| id(other) == id(cpu)) {
                return Err(self.file.wrong(cpu, format!("two CPUs of numaid {numaid}")));
            }
            if group >= CPUS {
                return Err(self.file.wrong(cpu, format!("more than {CPUS} CPUs")));
            }
            let group = group as u32;
            let node = self.node(cpu, format!("CPU {numaid}"), NodeKind::Cpu, Some(group))?;
            if cpu.get("arch") == Some("x86_64") {
                match cpu.get("vendor") {
                    Some("GenuineIntel") => self.draft.vendor(node, Vendor::Intel),
                    Some("AuthenticAMD") => self.draft.vendor(node, Vendor::Amd),
                    _ => {}
                }
            }
            cpus.push((cpu, node));
            self.below(cpu, Attachment { parent: node, cpu: node, group })?;
        }
        for (cpu, from) in &cpus {
            let host = cpu.get("host_hash");
            let others = cpus.iter().filter(|(o, to)| to != from && o.get("host_hash") == host);
            let known = speeds::between_cpus(cpu);
            let others: Vec<_> = others.collect();
            self.guessed.cpus += usize::from(known.is_none() && !others.is_empty());
            for (_, to) in others {
                self.link(*from, *to, LinkKind::Sys, known.unwrap_or(speeds::CPUS), 0);
            }
        }
        Ok(())
    }

    /// The devices of a CPU or a PCI switch.
    fn below(&mut self, element: &'a Element, place: Attachment) -> Result<(), Problem> {
        for device in fused(element) {
            self.device(device, place)?;
        }
        for nic in element.all("nic") {
            self.nic(nic, None, speeds::LOCAL, place)?;
        }
        Ok(())
    }

    fn device(&mut self, element: &'a Element, place: Attachment) -> Result<(), Problem> {
        let file = self.file;
        let busid = file.text(element, "busid")?.to_lowercase();
        let width = file.number(element, "link_width", 0..=64)?.unwrap_or(0) as u64;
        let (speed, known) = speeds::pci(element.get("link_speed"), width);
        let gpus: Vec<_> = element.all("gpu").collect();
        let bridge = element.all("pci").next().is_some();
        let node = match gpus[..] {
            [gpu] if !bridge => {
                let rank = file.number(gpu, "rank", 0..=GPUS as i64)?;
                let node = NodeId(rank.ok_or_else(|| file.lacks(gpu, "rank"))? as u32);
                self.draft.group(node, place.group);
                let busid = busid.clone();
                self.gpus.push(Gpu { element: gpu, node, cpu: place.cpu, busid });
                self.cable(place.parent, node, LinkKind::Pci, speed);
                node
            }
            [_] => return Err(file.wrong(element, format!("devices below the GPU {busid}"))),
            [_, again, ..] => {
                return Err(file.wrong(again, format!("two GPUs in the PCI device {busid}")));
            }
            [] if let Some(nic) = element.all("nic").next().filter(|_| !bridge) => {
                self.nic(nic, Some(&busid), speed, place)?
            }
            // NCCL passes them over too: a display, a card without a driver.
            [] if !bridge && (element.is_class("0x03") || element.is_class("0x02")) => {
                return Ok(());
            }
            [] => {
                let name = format!("PCI {busid}");
                let node = self.node(element, name, NodeKind::Pci, Some(place.group))?;
                self.cable(place.parent, node, LinkKind::Pci, speed);
                self.bridges.extend(element.all("pcilink").map(|link| (link, node)));
                self.below(element, Attachment { parent: node, ..place })?;
                node
            }
        };
        self.guessed.pci += usize::from(!known);
        match self.devices.insert(busid, node) {
            None => Ok(()),
            Some(_) => {
                let busid = element.get("busid").unwrap_or_default();
                Err(file.wrong(element, format!("two PCI devices have the busid {busid}")))
            }
        }
    }

    /// A network card, and behind each of its ports the network.
    fn nic(
        &mut self,
        nic: &Element,
        busid: Option<&str>,
        speed: u64,
        place: Attachment,
    ) -> Result<NodeId, Problem> {
        let ports: Vec<_> = nic.all("net").collect();
        let named = ports.first().and_then(|net| net.get("name").or(net.get("dev"))).or(busid);
        let name = format!("NIC {}", named.unwrap_or("without ports"));
        let node = self.node(nic, name, NodeKind::Nic, Some(place.group))?;
        self.cable(place.parent, node, LinkKind::Pci, speed);
        for net in ports {
            let megabits = self.file.number(net, "speed", -1..=MEGA)?.unwrap_or(0);
            self.guessed.network += usize::from(megabits <= 0);
            let latency = self.latency(net)?;
            let name = format!("NET {}", net.get("name").or(net.get("dev")).unwrap_or("?"));
            let port = self.node(net, name, NodeKind::Net, None)?;
            let capacity = speeds::network(megabits);
            self.link(node, port, LinkKind::Net, capacity, latency);
            self.link(port, node, LinkKind::Net, capacity, latency);
        }
        Ok(node)
    }

    /// Microseconds, as a fraction, in nanoseconds.
    fn latency(&self, net: &Element) -> Result<u64, Problem> {
        let Some(text) = net.get("latency") else { return Ok(0) };
        match text.parse::<f64>() {
            Ok(us) if (0.0..=SLOWEST).contains(&us) => Ok((us * 1000.0).round() as u64),
            _ => Err(self.file.wrong(net, "the `latency` of a <net> is no time in microseconds")),
        }
    }

    /// Short cuts between PCI switches.
    fn bridges(&mut self) -> Result<(), Problem> {
        for (link, from) in std::mem::take(&mut self.bridges) {
            let to = self.target(link)?;
            if to != from {
                self.links.insert((from, to, LinkKind::Pci), (speeds::LOCAL, 0));
            }
        }
        Ok(())
    }

    /// The device that a link names.
    fn target(&self, link: &Element) -> Result<NodeId, Problem> {
        let target = self.file.text(link, "target")?.to_lowercase();
        self.devices.get(&target).copied().ok_or_else(|| {
            let target: String = target.chars().take(40).filter(|c| !c.is_control()).collect();
            let title = format!("a <{}> to {target}, which is not in the file", link.tag);
            self.file.wrong(link, title)
        })
    }

    /// Cables of the GPUs: to each other, to CPUs, and to switches, which are one node together.
    fn nvlinks(&mut self) -> Result<(Option<u32>, bool), Problem> {
        let file = self.file;
        let (mut lowest, mut switch) = (None::<u32>, None);
        for gpu in std::mem::take(&mut self.gpus) {
            let gcn = gpu.element.get("gcn");
            let sm = file.number(gpu.element, "sm", 0..=100_000)?;
            let cables = |c: &&Element| ["nvlink", "xgmi"].contains(&c.tag);
            let amd = gcn.is_some() || gpu.element.all("xgmi").next().is_some();
            if !amd {
                let sm = sm.ok_or_else(|| file.lacks(gpu.element, "sm"))? as u32;
                lowest = Some(lowest.map_or(sm, |lowest| lowest.min(sm)));
            }
            for cable in gpu.element.children.iter().filter(cables) {
                if file.text(cable, "target")?.eq_ignore_ascii_case(&gpu.busid) {
                    continue;
                }
                let count = file.number(cable, "count", 0..=NVLINKS)?;
                let count = count.ok_or_else(|| file.lacks(cable, "count"))? as u64;
                if count == 0 {
                    continue;
                }
                let speed = if !amd {
                    speeds::nvlink(sm.unwrap_or_default())
                } else if let Some(known) = gcn.and_then(speeds::xgmi) {
                    known
                } else {
                    self.guessed.xgmi += 1;
                    speeds::XGMI
                };
                let capacity = speed * count;
                match cable.get("tclass") {
                    Some(class) if class.starts_with("0x068001") => {
                        self.cable(gpu.node, gpu.cpu, LinkKind::NvLink, capacity);
                    }
                    Some(class) if class.starts_with("0x0680") => {
                        let node = match switch {
                            Some(node) => node,
                            None => {
                                self.node(cable, "NVSwitch".into(), NodeKind::NvSwitch, None)?
                            }
                        };
                        switch = Some(node);
                        self.cable(gpu.node, node, LinkKind::NvLink, capacity);
                    }
                    _ => {
                        let to = self.target(cable)?;
                        self.link(gpu.node, to, LinkKind::NvLink, capacity, 0);
                    }
                }
            }
            for c2c in gpu.element.all("c2c") {
                let need =
                    |name| file.number(c2c, name, 0..=MEGA)?.ok_or_else(|| file.lacks(c2c, name));
                let (each, count) = (need("bw")?, need("count")?);
                if each.saturating_mul(count) > MEGA {
                    return Err(file.wrong(c2c, "a <c2c> of more than 1000 TB/s"));
                }
                if each * count > 0 {
                    let capacity = (each * count) as u64 * 1_000_000;
                    self.cable(gpu.node, gpu.cpu, LinkKind::C2c, capacity);
                }
            }
        }
        Ok((lowest, switch.is_some()))
    }
}

/// The PCI devices below `element`. Broadcom's switches of two levels forward at full speed between all
/// ports, so the devices of a second level count as those of the first.
fn fused(element: &Element) -> Vec<&Element> {
    let generation = broadcom(element, 0);
    let mut devices = Vec::new();
    for device in element.all("pci") {
        if generation.is_some() && broadcom(device, 1) == generation {
            devices.extend(device.all("pci"));
        } else {
            devices.push(device);
        }
    }
    devices
}

/// The PCI generation of a Broadcom switch that is of this level.
fn broadcom(element: &Element, level: u64) -> Option<u8> {
    let id = |name| u64::from_str_radix(element.get(name)?.strip_prefix("0x")?, 16).ok();
    let vendors = [id("vendor")?, id("device")?, id("subsystem_vendor")?];
    match (vendors, id("subsystem_device")? >> 12) {
        ([0x1000, 0xc010, 0x1000], 0xa) => Some(4),
        ([0x1000, 0xc030, 0x1000], own) if own == level => Some(5),
        _ => None,
    }
}
