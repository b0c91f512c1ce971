//! The cores of a host with their threads, caches and memory nodes, and the part of them that each rank gets.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Root;

/// The most processors of a host.
const MOST: usize = 1 << 13;
const CPUS: &str = "sys/devices/system/cpu";
/// The folder of the memory nodes.
pub const NODES: &str = "sys/devices/system/node";

/// A core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// The numbers of its threads, as the system counts processors, in order.
    pub cpus: Vec<u32>,
    /// The first processor of those that share its L3 cache; `None` where the system tells of none.
    pub cache: Option<u32>,
    /// The number of its memory node.
    pub node: u32,
    /// The number of its package, which is a socket.
    pub package: u32,
}

/// The cores of a host, neighbors next to each other: by package, memory node, L3 cache and number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    cores: Vec<Core>,
}

impl Cores {
    /// Reads the cores that are online. What cannot be read is as on a plain machine: each processor is a core, without
    /// a common cache, on memory node 0 of package 0.
    pub fn read(root: &Root) -> Self {
        let node_of = nodes(root);
        let mut cores: BTreeMap<(u32, u32), Core> = BTreeMap::new();
        for cpu in online(root) {
            let folder = format!("{CPUS}/cpu{cpu}");
            let first = |file: &str| {
                let shared = numbers(&root.text(&format!("{folder}/{file}"))?)?;
                shared.first().copied().filter(|_| shared.binary_search(&cpu).is_ok())
            };
            let siblings = ["core_cpus_list", "thread_siblings_list"];
            let core = siblings.iter().find_map(|name| first(&format!("topology/{name}")));
            let package = root.text(&format!("{folder}/topology/physical_package_id"));
            let package = package.and_then(|text| text.parse().ok()).unwrap_or(0);
            let third = |index: &String| {
                let level = root.text(&format!("{folder}/cache/{index}/level"));
                level.filter(|level| level == "3")?;
                first(&format!("cache/{index}/shared_cpu_list"))
            };
            let cache = root.list(&format!("{folder}/cache")).iter().find_map(third);
            let node = node_of.get(&cpu).copied().unwrap_or(0);
            // Threads that say different nodes are no threads of one core.
            let key = (core.unwrap_or(cpu), node);
            let new = || Core { cpus: Vec::new(), cache, node, package };
            cores.entry(key).or_insert_with(new).cpus.push(cpu);
        }
        let mut cores: Vec<_> = cores.into_values().collect();
        cores.sort_by_key(|core| (core.package, core.node, core.cache, core.cpus[0]));
        Self { cores }
    }

    /// Keeps only these processors, which are in order.
    #[must_use]
    pub fn restrict(mut self, allowed: &[u32]) -> Self {
        for core in &mut self.cores {
            core.cpus.retain(|cpu| allowed.binary_search(cpu).is_ok());
        }
        self.cores.retain(|core| !core.cpus.is_empty());
        self
    }

    /// The cores in order.
    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    /// Returns the processors of rank `rank` of `nranks` ranks of this host: whole cores, next to each other, of as few
    /// caches as possible. The parts of all ranks are alike, and cover all cores; where there are fewer cores than
    /// ranks, neighboring ranks share one.
    pub fn share(&self, rank: u32, nranks: u32) -> Vec<u32> {
        let cores = &self.cores[self.range(rank, nranks)];
        let mut cpus: Vec<_> = cores.iter().flat_map(|core| core.cpus.iter().copied()).collect();
        cpus.sort_unstable();
        cpus
    }

    /// Returns one processor for rank `rank` of `nranks` ranks of this host: one of its [share](Self::share), and while
    /// there are as many threads as ranks, no other rank's.
    pub fn place(&self, rank: u32, nranks: u32) -> Option<u32> {
        let core = self.range(rank, nranks).start;
        let before = (0..rank).rev().take_while(|r| self.range(*r, nranks).start == core).count();
        let cpus = &self.cores.get(core)?.cpus;
        cpus.get(before % cpus.len()).copied()
    }

    fn range(&self, rank: u32, nranks: u32) -> Range<usize> {
        let (count, nranks) = (self.cores.len() as u64, u64::from(nranks.max(1)));
        let rank = u64::from(rank) % nranks;
        let first = rank * count / nranks;
        let end = ((rank + 1) * count / nranks).max(first + 1).min(count);
        first as usize..end as usize
    }
}

/// Returns the numbers of a list such as `0-3,8`, in order; `None` for another text, or for more processors than a host
/// has.
///
/// ```
/// use roundelay_topology::host::numbers;
///
/// assert_eq!(numbers("0-2,8\n"), Some(vec![0, 1, 2, 8]));
/// assert_eq!(numbers("0-4294967295"), None);
/// ```
pub fn numbers(list: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for range in list.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last as usize >= MOST || first > last {
            return None;
        }
        all.extend(first..=last);
    }
    all.sort_unstable();
    all.dedup();
    Some(all)
}

/// Returns numbers that are in order as a list such as `0-3,8`.
///
/// ```
/// assert_eq!(roundelay_topology::host::list(&[0, 1, 2, 8, 9]), "0-2,8-9");
/// ```
pub fn list(numbers: &[u32]) -> String {
    let ranges = numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let range = |range: &[u32]| match range {
        [first, .., last] => format!("{first}-{last}"),
        _ => range.iter().map(u32::to_string).collect(),
    };
    ranges.map(range).collect::<Vec<_>>().join(",")
}

/// Returns the processors that are online.
fn online(root: &Root) -> Vec<u32> {
    let listed = root.text(&format!("{CPUS}/online")).and_then(|text| numbers(&text));
    listed.unwrap_or_else(|| folder_numbers(root, CPUS, "cpu"))
}

/// Returns the memory node of each processor.
fn nodes(root: &Root) -> BTreeMap<u32, u32> {
    let cpus = |node: u32| {
        let list = root.text(&format!("{NODES}/node{node}/cpulist"));
        let cpus = list.and_then(|list| numbers(&list)).unwrap_or_default();
        cpus.into_iter().map(move |cpu| (cpu, node))
    };
    folder_numbers(root, NODES, "node").into_iter().flat_map(cpus).collect()
}

/// Returns the numbers behind `name` in the names of a folder, in order: those of memory nodes behind `node` in
/// [`NODES`].
pub fn folder_numbers(root: &Root, folder: &str, name: &str) -> Vec<u32> {
    let number = |entry: &String| entry.strip_prefix(name)?.parse().ok();
    let mut all: Vec<u32> = root.list(folder).iter().filter_map(number).collect();
    all.retain(|number| (*number as usize) < MOST);
    all.sort_unstable();
    all
}
