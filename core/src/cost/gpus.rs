//! Constants of GPUs, until they are measured: the bandwidths of data sheets for their memory, and the latency of
//! NCCL's model of time for a hop. The constants of a processor do not apply to a GPU.

use super::Costs;
use crate::topology::paths::{self, PathType};
use crate::topology::{Gpus, Topology};

/// A generation of GPUs: the lowest compute capability, the bandwidth of its memory in GB/s, and the product with
/// that bandwidth.
type Memory = (u32, u64, &'static str);

/// By compute capability, the newest first. Each is the peak bandwidth in the maker's data sheet of the product.
const CUDA: [Memory; 8] = [
    (120, 1792, "RTX PRO 6000 Blackwell"),
    (100, 8000, "B200"),
    (90, 3350, "H100 SXM"),
    (89, 864, "L40S"),
    (86, 600, "A10"),
    (80, 1555, "A100 40GB"),
    (75, 320, "T4"),
    (0, 900, "V100"),
];
/// One die of AMD's MI250X.
const AMD: Memory = (0, 1638, "MI250X, one die");

/// Returns the seconds of a hop of a ring with NCCL's Simple protocol, by its model of time, and the name of the
/// link.
const fn hop(kind: PathType) -> (f64, &'static str) {
    match kind {
        PathType::Loc | PathType::Nvl | PathType::Nvb | PathType::C2c => (3.4e-6, "NVLink"),
        PathType::Net | PathType::Pxn | PathType::Dis => (14e-6, "the network"),
        _ => (5.7e-6, "PCI"),
    }
}

impl Costs {
    /// The constants that are assumed for the GPUs of a machine, for its first `nranks` ranks; `None` where the
    /// topology is not that of a machine with GPUs. The latency of a hop is that of the worst path between two ranks.
    /// A reduction takes no time of its own: it reads its local operand while the other arrives over a link, which is
    /// slower than memory.
    ///
    /// ```
    /// use roundelay_core::cost::Costs;
    /// use roundelay_core::topology::Topology;
    ///
    /// let text: Topology = "full_mesh(8, 25GB/s, 2us)".parse()?;
    /// assert_eq!(Costs::of_gpus(&text, 8), None);
    /// # Ok::<(), roundelay_core::topology::Problem>(())
    /// ```
    pub fn of_gpus(topology: &Topology, nranks: u32) -> Option<Self> {
        let (memory, name) = match topology.gpus()? {
            Gpus::Cuda(sm) => {
                let known = CUDA.into_iter().find(|(least, ..)| *least <= sm);
                (known.unwrap_or(CUDA[CUDA.len() - 1]), format!("GPUs of sm {sm}"))
            }
            Gpus::Amd => (AMD, "AMD's GPUs".to_owned()),
        };
        let ranks = || topology.ranks().take(nranks as usize);
        let kinds = ranks().flat_map(|rank| {
            let paths = paths::to_ranks(topology, rank.into());
            paths.into_iter().take(nranks as usize).map(|path| path.kind)
        });
        let (latency, link) = hop(kinds.max()?);
        let capacity = topology.links().iter().map(|link| link.capacity).max()?;
        let (_, gigabytes, product) = memory;
        Some(Self {
            name: format!(
                "assumed of {name} over {link}: {} us a hop (NCCL's model, protocol Simple), memory of {gigabytes} GB/s \
                 (data sheet of {product}), reductions hidden behind the links",
                latency * 1e6
            ),
            latency,
            message: 0.0,
            bandwidth: capacity.num() as f64 / capacity.den() as f64,
            reduce: f64::INFINITY,
            // Each byte is read and written.
            copy: gigabytes as f64 * 1e9 / 2.0,
            cores: None,
        })
    }
}
