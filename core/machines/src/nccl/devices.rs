//! The tree of a machine of which only the joints of its GPUs are known: CPUs, PCI switches and GPUs that stand to each
//! other as the joints say.

use crate::file_words::Word;
use roundelay_base::diagnostics::Code;
use roundelay_topology::Problem;
use roundelay_topology::file::{File, show};
use roundelay_topology::nccl::element::Element;
use roundelay_topology::nccl::gpu_links::{Device, link, switch};

/// The class of a PCI switch, and of a GPU.
const CLASSES: [&str; 2] = ["0x060400", "0x030200"];

/// The way in which two GPUs are joined, the closest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Joint {
    /// A GPU and itself.
    Itself,
    /// By this number of `NVLinks`.
    NvLinks(u32),
    /// By one PCI switch.
    Pix,
    /// By several PCI switches.
    Pxb,
    /// By the host bridge of a CPU.
    Phb,
    /// Within a NUMA node.
    Node,
    /// Between NUMA nodes.
    Sys,
}

impl Joint {
    pub(super) const fn lanes(self) -> u32 {
        if let Self::NvLinks(count) = self { count } else { 0 }
    }

    /// Whether two GPUs share a CPU for certain.
    pub(super) const fn is_near(self) -> bool {
        matches!(self, Self::Pix | Self::Pxb | Self::Phb | Self::Node)
    }
}

/// The row of a GPU: its joints to all GPUs with the bytes at which they stand, and its NUMA affinity.
pub(super) struct Row<'a> {
    pub(super) joints: Vec<(Joint, usize)>,
    pub(super) numa: Option<&'a str>,
}

/// The places of the GPUs: the lowest GPU below the same PCI switch, below the same switch of switches, at the same CPU.
pub(super) struct Places {
    switches: Vec<usize>,
    upper: Vec<usize>,
    cpus: Vec<usize>,
    /// The numbers of the CPUs, by GPU.
    numaids: Vec<u32>,
}

impl Places {
    pub(super) fn new(rows: &[Row]) -> Self {
        let joint = |a: usize, b: usize| rows[a].joints[b].0;
        let alike = |a: usize, b: usize| match (rows[a].numa, rows[b].numa) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        let near = |a, b| joint(a, b).is_near() || joint(a, b).lanes() > 0 && alike(a, b);
        let count = rows.len();
        let cpus = classes(count, near);
        let known = |gpu: &usize| rows[*gpu].numa.and_then(|numa| numa.parse::<u16>().ok());
        let first: Vec<usize> = (0..count).filter(|gpu| cpus[*gpu] == *gpu).collect();
        let mut given: Vec<u32> = first.iter().filter_map(known).map(u32::from).collect();
        let order = given.clone();
        given.sort_unstable();
        given.dedup();
        let number = |cpu: &usize| {
            let position = first.iter().position(|first| first == cpu).unwrap_or(0);
            if given.len() == first.len() { order[position] } else { position as u32 }
        };
        Self {
            switches: classes(count, |a, b| joint(a, b) == Joint::Pix),
            upper: classes(count, |a, b| matches!(joint(a, b), Joint::Pix | Joint::Pxb)),
            numaids: cpus.iter().map(number).collect(),
            cpus,
        }
    }

    /// Checks that no two GPUs are closer than their joint says.
    pub(super) fn hold(&self, file: File, gpus: &[Word], rows: &[Row]) -> Result<(), Problem> {
        for (a, row) in rows.iter().enumerate() {
            for (b, (joint, at)) in row.joints.iter().enumerate().take(a) {
                let same = |classes: &[usize]| classes[a] == classes[b];
                let closer = match joint {
                    Joint::Pxb => same(&self.switches),
                    Joint::Phb | Joint::Node => same(&self.upper),
                    Joint::Sys => same(&self.cpus),
                    _ => false,
                };
                if closer {
                    let [one, other] = [a, b].map(|gpu| show(gpus[gpu].text));
                    let title =
                        format!("{one} and {other} are farther apart than the GPUs that join them");
                    return Err(file.problem(Code::BadTopology, *at, title));
                }
            }
        }
        Ok(())
    }
}

/// Returns for each of `count` things the lowest one that it is joined to, through others, too.
fn classes(count: usize, joined: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut lowest: Vec<usize> = (0..count).collect();
    for start in 0..count {
        if lowest[start] != start {
            continue;
        }
        let mut open = vec![start];
        while let Some(thing) = open.pop() {
            for (other, lowest) in lowest.iter_mut().enumerate().skip(start + 1) {
                if *lowest == other && joined(thing, other) {
                    *lowest = start;
                    open.push(other);
                }
            }
        }
    }
    lowest
}

/// Returns the tree, of GPUs of capability `sm`; `lanes` are their `NVLinks` to a switch, where there is one.
pub(super) fn tree(rows: &[Row], places: &Places, sm: u32, lanes: Option<u32>) -> Element {
    let count = rows.len();
    let gpu = |rank: usize| {
        let (id, number) = (busid(rank), rank.to_string());
        let sm = sm.to_string();
        let attributes = [("dev", &*number), ("sm", &sm), ("rank", &number), ("gdr", "1")];
        let mut gpu = Element::new("gpu", &attributes);
        match lanes {
            Some(lanes) => gpu.children.push(switch(&lanes.to_string())),
            None => {
                let joints = rows[rank].joints.iter().enumerate();
                let linked = joints.filter(|(_, (joint, _))| joint.lanes() > 0);
                gpu.children.extend(linked.map(|(to, (joint, _))| {
                    let class = CLASSES[1].to_owned();
                    let to = Device { host: String::new(), busid: busid(to), class };
                    link("nvlink", &to, joint.lanes())
                }));
            }
        }
        let mut device = Element::new("pci", &[("busid", &id), ("class", CLASSES[1])]);
        device.children.push(gpu);
        device
    };
    let members = |classes: &[usize], first: usize| {
        (0..count).filter(|gpu| classes[*gpu] == first).collect::<Vec<_>>()
    };
    // Behind the GPUs, each switch has the bus id of its lowest GPU.
    let pci = |id: usize| Element::new("pci", &[("busid", &busid(id)), ("class", CLASSES[0])]);
    let mut root = Element::new("system", &[("version", "1")]);
    for first in (0..count).filter(|gpu| places.cpus[*gpu] == *gpu) {
        let mut cpu = Element::new("cpu", &[("numaid", &places.numaids[first].to_string())]);
        let here = members(&places.cpus, first);
        for top in here.into_iter().filter(|gpu| places.upper[*gpu] == *gpu) {
            let below = members(&places.upper, top);
            if let [alone] = below[..] {
                cpu.children.push(gpu(alone));
                continue;
            }
            let heads = below.into_iter().filter(|gpu| places.switches[*gpu] == *gpu);
            let mut lower: Vec<Element> = heads
                .map(|head| {
                    let mut switch = pci(count + head);
                    switch.children.extend(members(&places.switches, head).into_iter().map(gpu));
                    switch
                })
                .collect();
            if let [_] = lower[..] {
                cpu.children.append(&mut lower);
            } else {
                let mut upper = pci(2 * count + top);
                upper.children = lower;
                cpu.children.push(upper);
            }
        }
        root.children.push(cpu);
    }
    root
}

/// Returns a bus id for the device of a number.
fn busid(number: usize) -> String {
    format!("0000:{:02x}:{:02x}.0", number / 32 + 1, number % 32)
}
