//! From the tree of a file to the graph of a machine, as NCCL builds it.
//!
//! Two walks: the first finds the GPUs, whose ranks number the first nodes; the second makes the other nodes and all
//! links. The capacities of links between two nodes are summed.

use std::collections::BTreeMap;

use super::core_ranks::{self, CoreRanks};
use super::element::{Element, integer};
use super::{Cpu, System, notes, places, ranks, speeds};
use crate::draft::Draft;
use crate::file::{File, show};
use crate::{Link, LinkKind, NodeId, NodeKind, Problem, Vendor};
use roundelay_base::rational::Rat;

/// The most CPUs of a host: each is linked to all others.
const CPUS: usize = 256;
/// The most nodes of a system.
const NODES: usize = 1 << 12;
/// The unknown speeds of PCI links that are named.
const WORDS: usize = 4;
/// The longest latency of a network port: an hour, in microseconds.
const SLOWEST: f64 = 3.6e9;

/// The assumptions that were made, and notes, in sentences.
#[derive(Default)]
pub struct Completed {
    /// Assumptions about facts that are not in the file.
    pub assumptions: Vec<String>,
    /// Oddities of the machine, without a full stop.
    pub notes: Vec<String>,
    /// The sources of facts, each with its facts.
    pub sources: Vec<[String; 2]>,
}

/// Returns the system that a complete tree describes.
///
/// # Errors
/// E0607 for a tree that contradicts itself, and the errors of a topology as a whole.
pub fn system(
    name: &str,
    file: File,
    mut root: Element,
    completed: Completed,
) -> Result<System, Problem> {
    let version = file.number(&root, "version", 1..=2)?;
    version.ok_or_else(|| file.lacks(&root, "version"))?;
    let ranks = ranks::number(file, &mut root)?;
    let mut reader = GraphReader {
        file,
        draft: Draft::new(name, ranks.len() as u64, false)?,
        nodes: ranks.len(),
        ranks: &ranks,
        hosts: Vec::new(),
        devices: BTreeMap::new(),
        links: BTreeMap::new(),
        gpus: Vec::new(),
        cores: CoreRanks::new(&root),
        ports: Vec::new(),
        first_cpus: Vec::new(),
        bridges: Vec::new(),
        guessed: Guessed::default(),
    };
    reader.cpus(&root)?;
    let cores = reader.cores.as_ref().map(|cores| cores.count);
    let found = cores.unwrap_or(reader.gpus.len());
    if found < ranks.len() {
        let lost = ranks.len() - found;
        let title = match cores {
            None => format!("{lost} GPUs that are not in a <pci> of their own below a <cpu>"),
            Some(_) => format!("{lost} cores that are not in a <cpu> or an <l3>"),
        };
        return Err(file.wrong(&root, title));
    }
    reader.bridges()?;
    let cables = reader.cables()?;
    let joined = reader.join_hosts(&root)?;
    let GraphReader { mut draft, links, guessed, .. } = reader;
    for ((from, to, kind), (capacity, latency)) in links {
        draft.link(Link { from, to, kind, capacity: Rat::whole(capacity), latency })?;
    }
    let cpu = |cpu: &Element| Cpu {
        arch: cpu.get("arch").map(str::to_owned),
        vendor: cpu.get("vendor").map(str::to_owned),
    };
    let cpus = root.all("cpu").map(cpu).collect();
    let joined = joined.into_iter().collect();
    let assumptions = [completed.assumptions, guessed.sentences(), joined].concat();
    let link = if cables.sm.is_some() { "NVLink" } else { "xGMI link" };
    let unlike = notes::unlike(&cables.counts, link, &ranks);
    let notes = [completed.notes, guessed.unknown_words(), unlike.into_iter().collect()].concat();
    let mut topology = draft.build()?;
    topology.gpus = cores.is_none().then(|| cables.gpus());
    Ok(System {
        topology,
        sm: cables.sm,
        nvswitch: cables.has_switch(),
        cpus,
        ranks,
        assumptions,
        sources: completed.sources,
        notes,
        root,
    })
}

/// The numbers of unknown facts that were guessed.
#[derive(Default)]
pub(super) struct Guessed {
    pci: usize,
    /// The speeds of PCI links that NCCL has no word for, with the number of devices.
    words: BTreeMap<String, usize>,
    cpus: usize,
    families: usize,
    pub(super) xgmi: usize,
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
        say(self.families, "CPUs of unknown family reach others as the oldest of their make");
        say(self.xgmi, "xGMI links of unknown GPUs are 24 GB/s");
        say(self.network, "Network ports of unknown speed are 10 Gb/s");
        sentences
    }

    /// Returns a note about speeds of PCI links that NCCL does not know.
    fn unknown_words(&self) -> Vec<String> {
        let note = |(word, count): (&String, &usize)| {
            let devices =
                if *count == 1 { "a PCI device" } else { &format!("{count} PCI devices") };
            format!(
                "NCCL does not know the link speed \"{}\" of {devices}, and takes 8 GT/s per lane; \
                it knows such as \"32 GT/s\" and \"32.0 GT/s PCIe\"",
                show(word)
            )
        };
        self.words.iter().take(WORDS).map(note).collect()
    }
}

/// The place of a device in the tree.
#[derive(Clone, Copy)]
pub(super) struct Attachment {
    pub(super) parent: NodeId,
    cpu: NodeId,
    pub(super) group: u32,
    /// The position of the host among the hosts of the file.
    pub(super) host: usize,
}

/// A GPU, or a part of a device that is a GPU.
pub(super) struct GraphGpu<'a> {
    pub(super) element: &'a Element,
    pub(super) node: NodeId,
    pub(super) cpu: NodeId,
    pub(super) host: usize,
    /// The bus id, as [`places::bus`] normalizes it.
    pub(super) bus: String,
    /// The number of GPUs of its device.
    pub(super) parts: u64,
    /// The node that joins the GPUs of its device; the GPU itself where it is the only one.
    pub(super) device: NodeId,
}

/// A port of a network card.
pub(super) struct NetworkPort {
    pub(super) node: NodeId,
    /// Bytes a second.
    pub(super) speed: u64,
    pub(super) host: usize,
    /// Whether its network reduces, as NCCL's `CollNet` has it.
    pub(super) collective: bool,
}

/// The graph of a machine, as far as its file has been read.
pub(super) struct GraphReader<'a> {
    pub(super) file: File<'a>,
    pub(super) draft: Draft,
    nodes: usize,
    /// The rank of the job of each GPU.
    ranks: &'a [u32],
    /// The hosts, as [`places::host`] normalizes them.
    pub(super) hosts: Vec<String>,
    /// The GPUs of a device, or its node, by bus id and host.
    devices: BTreeMap<(String, usize), Vec<NodeId>>,
    pub(super) links: BTreeMap<(NodeId, NodeId, LinkKind), (u64, u64)>,
    pub(super) gpus: Vec<GraphGpu<'a>>,
    /// The cores that are ranks, of a machine without GPUs.
    pub(super) cores: Option<CoreRanks>,
    /// The ports of network cards.
    pub(super) ports: Vec<NetworkPort>,
    /// The first CPU of each host.
    pub(super) first_cpus: Vec<NodeId>,
    /// Links between PCI switches, with their host; a link may name a switch that comes later in the file.
    bridges: Vec<(&'a Element, NodeId, usize)>,
    pub(super) guessed: Guessed,
}

impl<'a> GraphReader<'a> {
    pub(super) fn node(
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

    pub(super) fn link(
        &mut self,
        from: NodeId,
        to: NodeId,
        kind: LinkKind,
        capacity: u64,
        latency: u64,
    ) {
        let (sum, slowest) = self.links.entry((from, to, kind)).or_default();
        *sum = sum.saturating_add(capacity);
        *slowest = latency.max(*slowest);
    }

    pub(super) fn cable(&mut self, a: NodeId, b: NodeId, kind: LinkKind, capacity: u64) {
        self.link(a, b, kind, capacity, 0);
        self.link(b, a, kind, capacity, 0);
    }

    fn cpus(&mut self, root: &'a Element) -> Result<(), Problem> {
        for cpu in root.all("cpu") {
            let host = places::host(cpu);
            if !self.hosts.contains(&host) {
                self.hosts.push(host);
            }
        }
        let mut cpus: Vec<Vec<(&'a Element, i64, NodeId)>> = vec![Vec::new(); self.hosts.len()];
        for (group, cpu) in root.all("cpu").enumerate() {
            let numaid = self.file.number(cpu, "numaid", -1..=1 << 16)?;
            let numaid = numaid.ok_or_else(|| self.file.lacks(cpu, "numaid"))?;
            let host = places::host(cpu);
            let host = self.hosts.iter().position(|other| *other == host).unwrap_or(0);
            let others = &mut cpus[host];
            if others.iter().any(|(_, other, _)| *other == numaid) {
                return Err(self.file.wrong(cpu, format!("two CPUs of numaid {numaid}")));
            }
            if others.len() >= CPUS {
                return Err(self.file.wrong(cpu, format!("more than {CPUS} CPUs of one host")));
            }
            let group = group as u32;
            let name = self.named(format!("CPU {numaid}"), host);
            let node = self.node(cpu, name, NodeKind::Cpu, Some(group))?;
            if cpu.get("arch") == Some("x86_64") {
                match cpu.get("vendor") {
                    Some("GenuineIntel") => self.draft.vendor(node, Vendor::Intel),
                    Some("AuthenticAMD") => self.draft.vendor(node, Vendor::Amd),
                    _ => {}
                }
            }
            cpus[host].push((cpu, numaid, node));
            let place = Attachment { parent: node, cpu: node, group, host };
            self.below(cpu, place)?;
            self.cores(cpu, place)?;
        }
        self.first_cpus = cpus.iter().filter_map(|cpus| cpus.first()).map(|cpu| cpu.2).collect();
        for host in &cpus {
            for (cpu, _, from) in host.iter().filter(|_| host.len() > 1) {
                let known = speeds::between_cpus(self.file, cpu)?;
                self.guessed.cpus += usize::from(known.is_none());
                self.guessed.families += usize::from(known.is_some() && speeds::lacks_family(cpu));
                let distances = core_ranks::distances(self.file, cpu)?;
                for (at, (_, _, to)) in host.iter().enumerate().filter(|(_, (_, _, to))| to != from)
                {
                    let distance = distances.get(at).copied().unwrap_or(speeds::DISTANCE);
                    let speed = known.unwrap_or(speeds::CPUS) * speeds::DISTANCE / distance;
                    self.link(*from, *to, LinkKind::Sys, speed, 0);
                }
            }
        }
        Ok(())
    }

    /// Returns a name, with its host where there are several.
    pub(super) fn named(&self, name: String, host: usize) -> String {
        if self.hosts.len() > 1 { format!("{name} of host {host}") } else { name }
    }

    /// Adds the devices of a CPU or a PCI switch.
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
        let word = element.raw("link_speed");
        let (speed, known) = speeds::pci(word, width);
        let bridge = element.all("pci").next().is_some();
        let nodes = if let Some(gpu) = element.all("gpu").next() {
            if bridge {
                let parts = if element.all("gpu").nth(1).is_some() { "GPUs" } else { "GPU" };
                return Err(file.wrong(element, format!("devices below the {parts} {busid}")));
            }
            self.gpus(gpu, element, speed, place)?
        } else if let Some(nic) = element.all("nic").next().filter(|_| !bridge) {
            vec![self.nic(nic, Some(&busid), speed, place)?]
        } else if !bridge && ["0x03", "0x12", "0x02"].iter().any(|class| element.is_class(class)) {
            // NCCL ignores these too: a display, a card without a driver.
            return Ok(());
        } else {
            let name = self.named(format!("PCI {busid}"), place.host);
            let node = self.node(element, name, NodeKind::Pci, Some(place.group))?;
            self.cable(place.parent, node, LinkKind::Pci, speed);
            let links = element.all("pcilink").map(|link| (link, node, place.host));
            self.bridges.extend(links);
            self.below(element, Attachment { parent: node, ..place })?;
            vec![node]
        };
        self.guessed.pci += usize::from(!known);
        if let Some(word) = word.filter(|word| !known && !word.trim().is_empty()) {
            *self.guessed.words.entry(word.to_owned()).or_default() += 1;
        }
        match self.devices.insert((places::bus(&busid), place.host), nodes) {
            None => Ok(()),
            Some(_) => {
                let busid = element.get("busid").unwrap_or_default();
                Err(file.wrong(element, format!("two PCI devices have the busid {busid}")))
            }
        }
    }

    /// Returns the node of a GPU or core that is a rank.
    pub(super) fn rank(&self, element: &Element) -> Result<NodeId, Problem> {
        let rank = self.file.number(element, "rank", 0..=i64::from(u32::MAX))?;
        let rank = rank.and_then(|rank| self.ranks.binary_search(&(rank as u32)).ok());
        Ok(NodeId(rank.ok_or_else(|| self.file.lacks(element, "rank"))? as u32))
    }

    /// Adds the GPUs of a device, usually one. Several GPUs are parts of the device: they reach each other inside it,
    /// and a node of its own holds the links that they share.
    fn gpus(
        &mut self,
        first: &'a Element,
        device: &'a Element,
        speed: u64,
        place: Attachment,
    ) -> Result<Vec<NodeId>, Problem> {
        let parts = device.all("gpu").count() as u64;
        let bus = self.file.text(device, "busid")?.to_lowercase();
        let shared = match parts {
            1 => None,
            _ => {
                let name = self.named(format!("GPU {bus}"), place.host);
                let node = self.node(first, name, NodeKind::NvSwitch, Some(place.group))?;
                self.cable(place.parent, node, LinkKind::Pci, speed);
                Some(node)
            }
        };
        let mut nodes: Vec<NodeId> = Vec::new();
        for element in device.all("gpu") {
            let node = self.rank(element)?;
            self.draft.group(node, place.group);
            match shared {
                None => self.cable(place.parent, node, LinkKind::Pci, speed),
                Some(shared) => {
                    self.cable(shared, node, LinkKind::Pci, speeds::LOCAL);
                    for other in &nodes {
                        self.cable(*other, node, LinkKind::NvLink, speeds::LOCAL);
                    }
                }
            }
            let bus = places::bus(&bus);
            let Attachment { cpu, host, .. } = place;
            let device = shared.unwrap_or(node);
            self.gpus.push(GraphGpu { element, node, cpu, host, bus, parts, device });
            nodes.push(node);
        }
        Ok(nodes)
    }

    /// Adds a network card, and behind each of its ports the network.
    fn nic(
        &mut self,
        nic: &Element,
        busid: Option<&str>,
        speed: u64,
        place: Attachment,
    ) -> Result<NodeId, Problem> {
        let ports: Vec<_> = nic.all("net").collect();
        let named = ports.first().and_then(|net| net.get("name").or(net.get("dev"))).or(busid);
        let name = self.named(format!("NIC {}", named.unwrap_or("without ports")), place.host);
        let node = self.node(nic, name, NodeKind::Nic, Some(place.group))?;
        self.cable(place.parent, node, LinkKind::Pci, speed);
        for net in ports {
            let megabits = self.file.number(net, "speed", -1..=speeds::MEGA)?.unwrap_or(0);
            self.guessed.network += usize::from(megabits <= 0);
            let latency = self.latency(net)?;
            let name = format!("NET {}", net.get("name").or(net.get("dev")).unwrap_or("?"));
            let name = self.named(name, place.host);
            let port = self.node(net, name, NodeKind::Net, None)?;
            let capacity = speeds::network(megabits);
            self.link(node, port, LinkKind::Net, capacity, latency);
            self.link(port, node, LinkKind::Net, capacity, latency);
            let (host, collective) = (place.host, net.get("coll") == Some("1"));
            self.ports.push(NetworkPort { node: port, speed: capacity, host, collective });
        }
        Ok(node)
    }

    /// Reads a fraction of microseconds as nanoseconds.
    fn latency(&self, net: &Element) -> Result<u64, Problem> {
        let Some(text) = net.get("latency") else { return Ok(0) };
        match text.parse::<f64>() {
            Ok(us) if (0.0..=SLOWEST).contains(&us) => Ok((us * 1000.0).round() as u64),
            _ => Err(self.file.wrong(net, "the `latency` of a <net> is no time in microseconds")),
        }
    }

    /// Adds the direct links between PCI switches.
    fn bridges(&mut self) -> Result<(), Problem> {
        for (link, from, host) in std::mem::take(&mut self.bridges) {
            for to in self.target(link, host)?.into_iter().filter(|to| *to != from) {
                self.links.insert((from, to, LinkKind::Pci), (speeds::LOCAL, 0));
            }
        }
        Ok(())
    }

    /// Returns the device that a link names, on this host or the only one of its bus id in the file: its node, or the
    /// GPUs that are its parts.
    pub(super) fn target(&self, link: &Element, host: usize) -> Result<Vec<NodeId>, Problem> {
        let target = self.file.text(link, "target")?;
        let bus = places::bus(target);
        let alike = (bus.clone(), 0)..=(bus.clone(), usize::MAX);
        let only = || match self.devices.range(alike).collect::<Vec<_>>()[..] {
            [(_, only)] => Some(only),
            _ => None,
        };
        self.devices.get(&(bus.clone(), host)).or_else(only).cloned().ok_or_else(|| {
            let target = target.to_lowercase();
            let target: String = target.chars().take(40).filter(|c| !c.is_control()).collect();
            let title = format!("a <{}> to {target}, which is not in the file", link.tag);
            self.file.wrong(link, title)
        })
    }
}

/// Returns the PCI devices below `element`. Broadcom's switches of two levels forward at full speed between all
/// ports, so the devices of a second level count as devices of the first.
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

/// Returns the PCI generation of a Broadcom switch of this level.
fn broadcom(element: &Element, level: i64) -> Option<u8> {
    let id = |name| element.get(name).and_then(integer);
    let vendors = [id("vendor")?, id("device")?, id("subsystem_vendor")?];
    match (vendors, id("subsystem_device")? >> 12) {
        ([0x1000, 0xc010, 0x1000], 0xa) => Some(4),
        ([0x1000, 0xc030, 0x1000], own) if own == level => Some(5),
        _ => None,
    }
}
