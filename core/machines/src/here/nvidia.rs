//! GPUs of NVIDIA's: found among the PCI devices, and known by their driver, or else by their numbers.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use roundelay_base::units::count;
use roundelay_topology::host::Root;
use roundelay_topology::nccl::element::{Element, integer};
use roundelay_topology::nccl::graph::Completed;
use roundelay_topology::nccl::places;

use super::pci::{DEVICES, Tree};
use super::{DriverGpu, source};

const VENDOR: &str = "0x10de";
/// The GPUs that the driver has, a folder each.
const DRIVER: &str = "proc/driver/nvidia/gpus";
/// The class of the other end of an `NVLink` that is not visible: an `NVSwitch`, for NCCL.
const SWITCH: &str = "0x068000";

/// The numbers of PCI devices of each CUDA capability, by the public list of PCI numbers.
const CHIPS: [(RangeInclusive<i64>, u32); 11] = [
    (0x15f0..=0x15ff, 60),
    (0x1d80..=0x1dff, 70),
    (0x1e00..=0x1fff, 75),
    (0x2080..=0x20ff, 80),
    (0x2180..=0x21ff, 75),
    (0x2200..=0x22ff, 86),
    (0x2300..=0x23ff, 90),
    (0x2400..=0x25ff, 86),
    (0x2600..=0x28ff, 89),
    (0x2900..=0x29ff, 100),
    (0x2b00..=0x2dff, 120),
];

/// Adds the GPUs, and returns their number. A GPU of an unknown kind is left a PCI device without a GPU, to be assumed.
pub(super) fn gpus(
    tree: &mut Tree,
    driver: Result<&[DriverGpu], &str>,
    facts: &mut Completed,
) -> usize {
    let root = tree.root;
    let is = |id: &str, file: &str, prefix: &str| {
        root.text(&format!("{DEVICES}/{id}/{file}")).is_some_and(|text| text.starts_with(prefix))
    };
    let mut all = root.list(DEVICES);
    all.retain(|id| is(id, "vendor", VENDOR) && is(id, "class", "0x03"));
    let held = root.list(DRIVER);
    if !held.is_empty() {
        all.retain(|id| held.iter().any(|other| places::bus(other) == places::bus(id)));
    }
    if all.is_empty() {
        return 0;
    }
    let told: BTreeMap<_, _> =
        driver.unwrap_or_default().iter().map(|gpu| (places::bus(&gpu.busid), gpu)).collect();
    let mut kinds = Vec::new();
    for id in &all {
        let own = root.text(&format!("{DEVICES}/{id}/device")).and_then(|text| integer(&text));
        let by_number = own.and_then(|own| CHIPS.iter().find(|(range, _)| range.contains(&own)));
        let told = told.get(&places::bus(id)).copied();
        kinds.push((told, told.map(|gpu| gpu.sm).or(by_number.map(|(_, sm)| *sm))));
    }
    let unknown = kinds.iter().any(|(_, sm)| sm.is_none());
    let peer = ["sys/module/nvidia_peermem", "sys/kernel/mm/memory_peers/nv_mem"];
    let gdr = if peer.iter().any(|path| root.real(path).is_some()) { "1" } else { "0" };
    let mut numbers = 0;
    for (dev, (id, (told, sm))) in all.iter().zip(kinds).enumerate() {
        let device = tree.device(id, "0x030200");
        let Some(sm) = sm.filter(|_| !unknown) else { continue };
        numbers += usize::from(told.is_none());
        let (dev, sm) = (dev.to_string(), sm.to_string());
        let mut gpu =
            Element::new("gpu", &[("dev", &*dev), ("sm", &*sm), ("rank", &*dev), ("gdr", gdr)]);
        gpu.children.extend(told.iter().flat_map(|gpu| links(root, gpu)));
        device.children.push(gpu);
    }
    match driver {
        Ok(gpus) if !gpus.is_empty() => {
            let what = "capability, NVLinks and chip-to-chip links of the GPUs";
            facts.sources.push(source("NVML", what));
        }
        Ok(_) => facts.notes.push("NVML was asked, and knows no GPU".to_owned()),
        Err(why) => {
            facts.notes.push(format!("NVML, which alone knows NVLinks, was not asked: {why}"));
        }
    }
    if numbers > 0 {
        let gpus = count(numbers, "GPU");
        let text = format!("The capability of {gpus} is that which their PCI numbers stand for.");
        facts.assumptions.push(text);
    }
    all.len()
}

/// Returns the links of a GPU as elements, equal ones together.
fn links(root: &Root, gpu: &DriverGpu) -> Vec<Element> {
    let mut nvlinks: BTreeMap<String, u32> = BTreeMap::new();
    for target in &gpu.nvlinks {
        *nvlinks.entry(target.to_lowercase()).or_default() += 1;
    }
    let nvlink = |(target, count): (String, u32)| {
        let class = root.text(&format!("{DEVICES}/{target}/class"));
        let of = [("target", &*target), ("count", &*count.to_string())];
        let mut link = Element::new("nvlink", &of);
        link.set("tclass", class.unwrap_or_else(|| SWITCH.to_owned()));
        link
    };
    let mut c2c: BTreeMap<u32, u32> = BTreeMap::new();
    for bandwidth in &gpu.c2c {
        *c2c.entry(*bandwidth).or_default() += 1;
    }
    let chip = |(bandwidth, count): (u32, u32)| {
        Element::new("c2c", &[("bw", &*bandwidth.to_string()), ("count", &*count.to_string())])
    };
    nvlinks.into_iter().map(nvlink).chain(c2c.into_iter().map(chip)).collect()
}
