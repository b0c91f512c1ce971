//! The machine that a run is simulated on: a topology, and the costs that it does not tell.

use std::sync::Arc;

use crate::cost::{Costs, has_latency};
use roundelay_base::diagnostics::Code;
use roundelay_base::ids::RankId;
use roundelay_core::topology::Topology;
use roundelay_topology::shape::Shape;
use roundelay_topology::{NodeId, Problem, Routing};

/// The time that signals take in a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignalCost {
    /// Signals take no time: they arrive when they are sent.
    #[default]
    Free,
    /// Signals take the latency of their path, as a message without bytes.
    Messages,
}

/// The condition under which a stream goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// Streams go by data, as where a card or a kernel moves data on request. A transfer begins when the waits above
    /// it are met and the data that it sends is final; it waits neither for the moves above it nor for its
    /// destination. Folds into one memory follow in the order of the program, and a stream does one at a time. A post
    /// leaves when all moves above it are done, and the stream goes on without it. A wait holds back the ops below
    /// it.
    #[default]
    ByData,
    /// A stream does one op after another, as the streams of a contest's executor do.
    InOrder,
}

/// The machine of a simulation: a topology, with the costs of everything that takes time.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The topology that joins the ranks.
    pub topology: Arc<Topology>,
    /// The bandwidth b of one link in one direction, in bytes a second, where the topology gives multiples of it.
    pub bandwidth: f64,
    /// Seconds that a message takes on a link, where the topology gives no latencies; on a machine with links of
    /// several kinds, the least time that a message takes on its whole path, and between GPUs the time on a path
    /// whose links have none.
    pub latency: f64,
    /// Bytes a second that a rank reduces; with `None` reductions take no time.
    pub reduce: Option<f64>,
    /// Bytes a second that a rank copies within its memory; with `None` copies take no time.
    pub copy: Option<f64>,
    /// Seconds that each piece of a message except the first costs before its bytes flow: pieces share one latency.
    pub piece: f64,
    /// The condition under which a stream goes on.
    pub streams: Streams,
    /// The time that signals take.
    pub signals: SignalCost,
    /// The choice of a path for messages where there are several.
    pub routing: Routing,
    /// Ranks that are slower, each with its factor: for the time of their reductions and copies, and for the latency
    /// and the time of bytes on each of their links.
    pub stragglers: Vec<(RankId, f64)>,
    /// Links that carry only a share of their bandwidth, in both directions, each with its share.
    pub degraded: Vec<((NodeId, NodeId), f64)>,
}

impl Machine {
    /// A machine of `topology` without further costs: B is 1 byte a second, links have the latencies that the
    /// topology gives, and only messages take time.
    pub fn new(topology: Arc<Topology>) -> Self {
        Self {
            topology,
            bandwidth: 1.0,
            latency: 0.0,
            reduce: None,
            copy: None,
            piece: 0.0,
            streams: Streams::default(),
            signals: SignalCost::Free,
            routing: Routing::Ecmp,
            stragglers: Vec::new(),
            degraded: Vec::new(),
        }
    }

    /// A machine of `topology` with the constants of `costs`: its links have the values of the topology, and B and L of
    /// the constants where it gives none.
    pub fn of_costs(costs: &Costs, topology: Arc<Topology>) -> Self {
        Self {
            bandwidth: costs.bandwidth,
            latency: costs.latency,
            reduce: Some(costs.reduce).filter(|rate| rate.is_finite()),
            copy: Some(costs.copy).filter(|rate| rate.is_finite()),
            piece: costs.message,
            ..Self::new(topology)
        }
    }

    /// A machine with the constants of `costs` where no topology is known: each of `nranks` ranks has one port of B each
    /// way, and every two ranks are L apart. `None` for more ranks than are simulated each by itself.
    pub fn of_ports(costs: &Costs, nranks: u32) -> Option<Self> {
        if nranks > Topology::PAIRS_LIMIT {
            return None;
        }
        let ports = Arc::new(Shape::crossbar(nranks).build().ok()?.into());
        // Two links, to the switch and from it.
        Some(Self { latency: costs.latency / 2.0, ..Self::of_costs(costs, ports) })
    }

    /// A machine with the constants of `costs`: on a topology, as [`Self::of_costs`] has it, or else on ports, as
    /// [`Self::of_ports`] does.
    pub fn for_ranks(costs: &Costs, topology: Option<&Arc<Topology>>, nranks: u32) -> Option<Self> {
        match topology {
            Some(topology) => Some(Self::of_costs(costs, topology.clone())),
            None => Self::of_ports(costs, nranks),
        }
    }

    /// Checks that the machine makes sense for a run of `nranks` ranks.
    ///
    /// # Errors
    /// E0604 for too few ranks, E0601 for a number that makes no sense, E0204 for a straggler and E0602 for a
    /// degraded link that do not exist.
    pub fn check(&self, nranks: u32) -> Result<(), Problem> {
        self.topology.holds(nranks)?;
        let rates = [Some(self.bandwidth), self.reduce, self.copy];
        if rates.into_iter().flatten().any(|rate| !(rate.is_finite() && rate > 0.0)) {
            return Err(Problem::new(Code::BadTopology, "a bandwidth that is not more than 0")
                .help("bandwidths are bytes a second"));
        }
        if !(self.latency.is_finite() && self.latency >= 0.0) {
            return Err(Problem::new(Code::BadTopology, "a latency that is not 0 or more"));
        }
        if !(self.piece.is_finite() && self.piece >= 0.0) {
            return Err(Problem::new(
                Code::BadTopology,
                "an overhead of a piece that is not 0 or more",
            )
            .help("it is a time, such as 495ns"));
        }
        for (rank, factor) in &self.stragglers {
            if rank.0 >= self.topology.nranks() {
                let title = format!("the straggler is rank {rank}, which does not exist");
                let ranks = format!("the ranks are 0..{}", self.topology.nranks());
                return Err(Problem::new(Code::RankOutOfRange, title).note(ranks));
            }
            if !(1.0..=1e6).contains(factor) {
                let title = format!("rank {rank} is slower by {factor}");
                return Err(Problem::new(Code::BadTopology, title)
                    .help("a straggler takes 1 to 1000000 times as long"));
            }
        }
        for &((a, b), share) in &self.degraded {
            let joins = |l: &&roundelay_topology::Link| {
                (l.from, l.to) == (a, b) || (l.from, l.to) == (b, a)
            };
            if self.topology.links().iter().find(joins).is_none() {
                let title = format!("no link joins {} and {}", self.named(a), self.named(b));
                return Err(Problem::new(Code::BadLink, title)
                    .help("`roundelay topo` lists the links of a topology"));
            }
            if !(1e-6..=1.0).contains(&share) {
                let ends = format!("{} and {}", self.named(a), self.named(b));
                let title = format!("the link of {ends} carries {share} of its bandwidth");
                return Err(Problem::new(Code::BadTopology, title)
                    .help("the share is more than 0.000001 and at most 1; `without` cuts a link"));
            }
        }
        Ok(())
    }

    fn named(&self, node: NodeId) -> String {
        let known = self.topology.nodes().get(node.index());
        known.map_or_else(|| format!("node {}", node.0), |node| node.name.clone())
    }

    /// Returns the factor by which a rank is slower.
    pub(super) fn slower(&self, rank: RankId) -> f64 {
        self.stragglers.iter().filter(|(r, _)| *r == rank).map(|(_, factor)| factor).product()
    }

    /// Returns the seconds that a message takes on its path; `links` is the sum over the path's links.
    pub(super) fn on_path(&self, links: f64, (from, to): (RankId, RankId)) -> f64 {
        let whole = || self.latency * self.slower(from) * self.slower(to);
        if self.topology.has_kinds() {
            links.max(whole())
        } else if self.topology.gpus().is_some() && links == 0.0 {
            whole()
        } else {
            links
        }
    }

    /// Returns the bytes a second and the seconds of each link in one direction.
    pub(super) fn links(&self) -> (Vec<f64>, Vec<f64>) {
        let unit = if self.topology.is_relative() { self.bandwidth } else { 1.0 };
        // The latency of a machine of GPUs is that of paths.
        let of_paths = self.topology.has_kinds() || self.topology.gpus().is_some();
        let given = of_paths || has_latency(&self.topology);
        let mut slower = vec![1.0; self.topology.nodes().len()];
        for (rank, factor) in &self.stragglers {
            slower[rank.index()] *= factor;
        }
        let link = |link: &roundelay_topology::Link| {
            let (from, to) = (link.from, link.to);
            let share: f64 = self
                .degraded
                .iter()
                .filter(|((a, b), _)| (*a, *b) == (from, to) || (*a, *b) == (to, from))
                .map(|(_, share)| share)
                .product();
            let slower = slower[from.index()] * slower[to.index()];
            let capacity = link.capacity.num() as f64 / link.capacity.den() as f64 * unit;
            let latency = if given { link.latency as f64 / 1e9 } else { self.latency };
            (capacity * share / slower, latency * slower)
        };
        self.topology.links().iter().map(link).unzip()
    }
}
