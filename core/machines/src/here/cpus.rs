//! The cores of a machine without GPUs, with their caches and the distances of their memory nodes.

use std::collections::BTreeMap;

use roundelay_base::units::count;
use roundelay_topology::host::{Core, Cores, NODES, Root, folder_numbers};
use roundelay_topology::nccl::element::Element;
use roundelay_topology::nccl::graph::Completed;
use roundelay_topology::nccl::speeds;

use super::pci::Tree;
use super::source;

/// Adds the cores of a machine without GPUs, below their caches and memory nodes.
pub(super) fn add_cores(tree: &mut Tree, cores: &Cores, facts: &mut Completed) {
    let mut nodes: BTreeMap<u32, Vec<(usize, &Core)>> = BTreeMap::new();
    for (rank, core) in cores.cores().iter().enumerate() {
        nodes.entry(core.node).or_default().push((rank, core));
    }
    let all: Vec<_> = nodes.keys().copied().collect();
    let mut measured = true;
    for (node, cores) in &nodes {
        let distances = distances(tree.root, *node, &all);
        measured &= distances.is_some();
        let cpu = tree.cpu((*node).into());
        if let Some(distances) = distances {
            cpu.set("distance", distances);
        }
        let mut caches: Vec<(Option<u32>, Element)> = Vec::new();
        for (rank, core) in cores {
            let cpus: Vec<_> = core.cpus.iter().map(u32::to_string).collect();
            let of = [("cpus", &*cpus.join(",")), ("rank", &*rank.to_string())];
            let core_element = Element::new("core", &of);
            match caches.last_mut().filter(|(cache, _)| *cache == core.cache) {
                Some((_, element)) => element.children.push(core_element),
                None => {
                    let mut cache = Element::new("l3", &[]);
                    cache.children.push(core_element);
                    caches.push((core.cache, cache));
                }
            }
        }
        for (cache, element) in caches {
            match cache {
                Some(_) => cpu.children.push(element),
                None => cpu.children.extend(element.children),
            }
        }
    }
    if all.is_empty() {
        return;
    }
    facts.sources.push(source("/sys/devices/system/cpu, /proc/cpuinfo", summary(cores)));
    if all.len() > 1 && measured {
        let what = format!("distances of the {} memory nodes", all.len());
        facts.sources.push(source("/sys/devices/system/node", what));
    } else if all.len() > 1 {
        let usual = speeds::DISTANCE;
        let text = format!(
            "No file tells how far the memory nodes are apart: {usual}, as Linux takes it."
        );
        facts.assumptions.push(text);
    }
}

/// Returns the distances of a memory node to the nodes of `others`, in their order.
fn distances(root: &Root, node: u32, others: &[u32]) -> Option<String> {
    // The system lists a distance for each node that is online, with or without processors.
    let online = folder_numbers(root, NODES, "node");
    let text = root.text(&format!("{NODES}/node{node}/distance"))?;
    let words: Vec<_> = text.split_whitespace().collect();
    let at = |other: &u32| {
        let place = online.binary_search(other).ok()?;
        let distance = words.get(place)?.parse::<u8>().ok().filter(|distance| *distance >= 10)?;
        Some(distance.to_string())
    };
    Some(others.iter().map(at).collect::<Option<Vec<_>>>()?.join(" "))
}

/// Returns the numbers of cores, threads, caches, nodes and packages in words.
fn summary(cores: &Cores) -> String {
    let cores = cores.cores();
    let distinct = |of: &dyn Fn(&Core) -> Option<u32>| {
        let mut all: Vec<_> = cores.iter().filter_map(of).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    let threads = cores.iter().map(|core| core.cpus.len()).sum::<usize>();
    let own = format!("{} (a rank each)", count(cores.len(), "core"));
    let mut parts = vec![own, count(threads, "thread")];
    parts.push(match distinct(&|core| core.cache) {
        0 => "L3 caches not told".to_owned(),
        caches => count(caches, "L3 cache"),
    });
    parts.push(count(distinct(&|core| Some(core.node)), "memory node"));
    parts.push(count(distinct(&|core| Some(core.package)), "socket"));
    parts.join(", ")
}
