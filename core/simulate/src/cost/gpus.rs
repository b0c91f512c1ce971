//! Constants of GPUs, as they are published: the bandwidths of data sheets for their memory, and the latency of
//! NCCL's model of time for a hop. The constants of a processor do not apply to a GPU.

use super::model::{Costs, Origin, has_latency};
use roundelay_base::ids::RankId;
use roundelay_topology::Fabric;
use roundelay_topology::paths::{self, PathType};
use roundelay_topology::{GpuModel, nccl};

/// A generation of GPUs: its number, the bandwidth of its memory in GB/s, and the product with that bandwidth.
type Memory = (u32, u64, &'static str);

/// By compute capability. Each is the peak bandwidth in the maker's data sheet of the product.
const CUDA: [Memory; 11] = [
    (121, 273, "GB10"),
    (120, 1792, "RTX PRO 6000 Blackwell"),
    (103, 8000, "B300"),
    (100, 8000, "B200"),
    (90, 3350, "H100 SXM"),
    (89, 864, "L40S"),
    (86, 600, "A10"),
    (80, 1555, "A100 40GB"),
    (75, 320, "T4"),
    (70, 900, "V100"),
    (60, 732, "P100"),
];
/// By the number of AMD's model.
const AMD: [Memory; 4] = [
    (0x908, 1229, "MI100"),
    (0x90a, 1638, "MI250X, one die"),
    (0x942, 5300, "MI300X"),
    (0x950, 8000, "MI350X"),
];

/// Returns the name of the model, and the bandwidth of its memory in GB/s with the product where it is known.
fn memory(model: GpuModel) -> (String, Option<(u64, &'static str)>) {
    let (name, number, known) = match model {
        GpuModel::Cuda(sm) => (format!("GPUs of sm {sm}"), Some(sm), &CUDA[..]),
        GpuModel::Amd(Some(model)) => (format!("GPUs of gfx{model:x}"), Some(model), &AMD[..]),
        GpuModel::Amd(None) => ("AMD's GPUs of unknown model".to_owned(), None, &AMD[..]),
    };
    let found = known.iter().find(|(of, ..)| Some(*of) == number);
    (name, found.map(|(_, gigabytes, product)| (*gigabytes, *product)))
}

/// Returns the nanoseconds of a hop of a ring with NCCL's Simple protocol, by its model of time, and the name of the
/// link.
const fn hop(kind: PathType) -> (u32, &'static str) {
    match kind {
        PathType::Loc | PathType::Nvl | PathType::Nvb | PathType::C2c => (3400, "NVLink"),
        PathType::Net | PathType::Pxn | PathType::Dis => (14_000, "the network"),
        _ => (5700, "PCI"),
    }
}

impl Costs {
    /// The constants that are published of the GPUs of a topology, for its first `nranks` ranks; `None` where its ranks
    /// are no GPUs of a known model. The latency of a hop is that of the worst path between two ranks, where the links
    /// have none. A reduction takes no time of its own: it reads its local operand while the other arrives over a link,
    /// which is slower than memory.
    ///
    /// ```
    /// use roundelay_simulate::cost::Costs;
    /// use roundelay_core::topology::Topology;
    ///
    /// let text: Topology = "full_mesh(8, 25GB/s, 2us)".parse()?;
    /// assert_eq!(Costs::of_gpus(&text, 8), None);
    /// # Ok::<(), roundelay_topology::Problem>(())
    /// ```
    pub fn of_gpus(topology: &Fabric, nranks: u32) -> Option<Self> {
        let gpus = topology.gpus()?;
        let (name, known) = memory(gpus.model);
        let (latency, link) = match (hop(worst(topology, nranks)?), gpus.model) {
            ((latency, "NVLink"), GpuModel::Amd(_)) => (latency, "xGMI"),
            (hop, _) => hop,
        };
        let capacity =
            topology.fastest_link().unwrap_or_else(|| nccl::link_rate(gpus.model) as f64);
        let waits = if has_latency(topology) {
            "the latencies of the links".to_owned()
        } else {
            format!("{} us a hop (NCCL's model, protocol Simple)", f64::from(latency) / 1e3)
        };
        let shared = match gpus.parts {
            0 | 1 => String::new(),
            parts => format!(" for {parts} ranks"),
        };
        let of_memory = match known {
            Some((gigabytes, product)) => {
                format!("memory of {gigabytes} GB/s{shared} (data sheet of {product})")
            }
            None => "memory of unknown bandwidth, so that copies take no time".to_owned(),
        };
        // Each byte is read and written.
        let copy = |(gigabytes, _)| gigabytes as f64 * 1e9 / 2.0 / f64::from(gpus.parts.max(1));
        Some(Self {
            name: format!(
                "{name} over {link}: {waits}, {of_memory}, reductions hidden behind the links"
            ),
            origin: Origin::Published,
            latency: f64::from(latency) / 1e9,
            message: 0.0,
            bandwidth: capacity,
            reduce: f64::INFINITY,
            copy: known.map_or(f64::INFINITY, copy),
            cores: None,
        })
    }
}

/// Returns the kind of the worst path between two of the first `nranks` ranks.
fn worst(topology: &Fabric, nranks: u32) -> Option<PathType> {
    let paths = |rank: RankId| {
        let paths = paths::to_ranks(topology, rank.into());
        paths.into_iter().take(nranks as usize).map(|path| path.kind).max()
    };
    // Constructed topologies have links of two kinds: where one rank needs the network, so does any.
    let from = if topology.has_kinds() { nranks as usize } else { 1 };
    topology.ranks().take(from).filter_map(paths).max()
}
