//! GPUs of AMD's, as the kernel's `kfd` tells them: their kind, and the xGMI links between them.

use std::collections::BTreeMap;

use roundelay_topology::host::Root;
use roundelay_topology::nccl::element::Element;
use roundelay_topology::nccl::graph::Completed;

use super::pci::Tree;
use super::source;

const NODES: &str = "sys/class/kfd/kfd/topology/nodes";
/// The type of a link that is xGMI.
const XGMI: u64 = 11;
/// The class of a GPU whose class cannot be read.
const CLASS: &str = "0x038000";
/// The most links that are listed between two GPUs.
const LINKS: u64 = 64;

/// A GPU of the kernel's list.
struct Gpu {
    node: String,
    busid: String,
    /// The partition of the card, whose GPUs are functions of one device.
    part: u64,
    gcn: String,
    units: u64,
}

/// Adds the GPUs, and returns their number.
pub(super) fn gpus(tree: &mut Tree, facts: &mut Completed) -> usize {
    let root = tree.root;
    let mut gpus: Vec<Gpu> =
        root.list(NODES).into_iter().filter_map(|node| gpu(root, node)).collect();
    gpus.sort_by(|a, b| (&a.busid, a.part, &a.node).cmp(&(&b.busid, b.part, &b.node)));
    gpus.dedup_by(|a, b| (&a.busid, a.part) == (&b.busid, b.part));
    let ids: BTreeMap<_, _> = gpus.iter().map(|gpu| (gpu.node.clone(), gpu.id())).collect();
    let mut joined = 0;
    for (dev, gpu) in gpus.iter().enumerate() {
        let (dev, units) = (dev.to_string(), gpu.units.to_string());
        let of =
            [("dev", &*dev), ("sm", &*units), ("gcn", &*gpu.gcn), ("rank", &*dev), ("gdr", "0")];
        let mut element = Element::new("gpu", &of);
        for link in root.list(&format!("{NODES}/{}/io_links", gpu.node)) {
            let of = properties(root, &format!("{NODES}/{}/io_links/{link}/properties", gpu.node));
            let target = of.get("node_to").and_then(|to| ids.get(&to.to_string()));
            let Some(target) = target.filter(|_| of.get("type") == Some(&XGMI)) else { continue };
            // The bandwidths are those of all links and of one.
            let [most, least] =
                ["max_bandwidth", "min_bandwidth"].map(|name| of.get(name).copied());
            let links = most.zip(least).and_then(|(most, least)| most.checked_div(least));
            let links = links.unwrap_or(1).clamp(1, LINKS).to_string();
            let of = [("target", &**target), ("count", &*links), ("tclass", CLASS)];
            element.children.push(Element::new("xgmi", &of));
            joined += 1;
        }
        tree.device(&gpu.id(), CLASS).children.push(element);
    }
    if !gpus.is_empty() {
        let what =
            if joined > 0 { "kinds and xGMI links of the GPUs" } else { "kinds of the GPUs" };
        facts.sources.push(source("/sys/class/kfd", what));
    }
    gpus.len()
}

impl Gpu {
    /// The address as HIP tells it: partitions are functions of the device.
    fn id(&self) -> String {
        match self.busid.rsplit_once('.') {
            Some((device, _)) if self.part > 0 => format!("{device}.{:x}", self.part & 0xf),
            _ => self.busid.clone(),
        }
    }
}

/// Returns the GPU of a node; `None` for a CPU, and where the properties cannot be read.
fn gpu(root: &Root, node: String) -> Option<Gpu> {
    let of = properties(root, &format!("{NODES}/{node}/properties"));
    let get = |name: &str| of.get(name).copied();
    let (version, place) = (get("gfx_target_version").filter(|v| *v > 0)?, get("location_id")?);
    let domain = get("domain").unwrap_or(0);
    let [bus, device, function] = [place >> 8 & 0xff, place >> 3 & 0x1f, place & 7];
    let busid = format!("{:04x}:{bus:02x}:{device:02x}.{function:x}", domain & 0xffff);
    // 90402 is gfx942, and 90010 is gfx90a.
    let [major, minor, step] = [version / 10_000, version / 100 % 100, version % 100];
    let gcn = format!("gfx{major}{minor:x}{step:x}");
    let units = get("simd_count").unwrap_or(0) / get("simd_per_cu").unwrap_or(4).max(1);
    Some(Gpu { node, busid, part: place >> 28 & 0xf, gcn, units: units.min(100_000) })
}

/// Reads lines of a name and a number.
fn properties(root: &Root, path: &str) -> BTreeMap<String, u64> {
    let text = root.text(path).unwrap_or_default();
    let line = |line: &str| {
        let (name, number) = line.split_once(' ')?;
        Some((name.to_owned(), number.trim().parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}
