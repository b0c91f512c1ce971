//! The distance of an algorithm from the best possible one on a topology.

use crate::schedule::load::Load;
use crate::topology::Topology;
use crate::units::{count, short};
use crate::verify::Proved;
use roundelay_topology::bounds::{Bound, Rounds, Usable};

/// An algorithm's time by bandwidth alone, and the least of any.
#[derive(Clone, Debug)]
pub struct Optimum {
    pub(super) nranks: u32,
    /// The bound over the time; 1 is the best.
    pub(super) share: f64,
    /// Seconds a byte of S that the busiest link takes; times B where the topology is relative.
    pub(super) seconds_per_byte: f64,
    pub(super) busiest_link: Option<String>,
    pub(super) bound_seconds_per_byte: f64,
    pub(super) bound: String,
    pub(super) binding: String,
    /// The bound over all links at once, where the bound above is of the `NVLinks` alone.
    pub(super) all_links_seconds_per_byte: Option<f64>,
    /// Messages in the longest chain.
    pub(super) steps: u32,
    /// A message needs as many between the ranks farthest apart.
    pub(super) least_steps: u32,
    relative: bool,
}

impl Optimum {
    /// Returns `None` where there is no bound: the run does not fit the topology.
    pub fn new(proved: &Proved, topology: &Topology) -> Option<Self> {
        let schedule = proved.schedule();
        let load = Load::new(schedule, topology);
        let (nranks, collective) = (schedule.nranks, schedule.collective);
        let Usable { bound: Bound { per_byte, binding, .. }, all } =
            Usable::new(topology, nranks, collective, schedule.root).ok()?;
        let named = |link: usize| {
            let link = topology.links()[link];
            let name = |node: roundelay_topology::NodeId| &topology.nodes()[node.index()].name;
            format!("{} -> {}", name(link.from), name(link.to))
        };
        Some(Self {
            nranks,
            share: if load.seconds_per_byte > 0.0 {
                per_byte.value() / load.seconds_per_byte
            } else {
                1.0
            },
            seconds_per_byte: load.seconds_per_byte,
            busiest_link: load.busiest.map(named),
            bound_seconds_per_byte: per_byte.value(),
            bound: per_byte.to_string(),
            binding: binding.to_string(),
            all_links_seconds_per_byte: all.map(|all| all.per_byte.value()),
            steps: proved.proof().steps,
            least_steps: Rounds::new(topology, nranks).diameter,
            relative: topology.is_relative(),
        })
    }

    /// Returns lines for a terminal: the share of the bound, and the link that determines the algorithm's time.
    pub fn lines(&self) -> [String; 2] {
        let time = |seconds: f64| {
            if self.relative {
                format!("{seconds:.4} S/B")
            } else if seconds > 0.0 {
                format!("S / {} GB/s", short(1e-9 / seconds))
            } else {
                "0".to_owned()
            }
        };
        let over = match self.all_links_seconds_per_byte {
            None => String::new(),
            Some(all) => format!(
                " over NVLink; {} with the other links, which no runtime uses at once",
                time(all)
            ),
        };
        let reached = format!(
            "{:.1} % of the bandwidth bound at {} ranks: at best {} ({}){over}",
            100.0 * self.share,
            self.nranks,
            time(self.bound_seconds_per_byte),
            self.binding,
        );
        let link = match &self.busiest_link {
            Some(link) => format!("busiest link {link}: {}; ", time(self.seconds_per_byte)),
            None => String::new(),
        };
        let steps = count(self.steps as usize, "step");
        [reached, format!("{link}{steps}, at least {}", self.least_steps)]
    }
}
