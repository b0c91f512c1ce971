//! The constants that hold for a machine, and where they come from: given by the caller, published of its GPUs,
//! measured, or assumed. Every prediction takes its constants from here, so that it has one time for one run.

use std::sync::LazyLock;

use super::model::{Costs, Origin};
use roundelay_core::topology::Topology;
use roundelay_topology::{Fabric, LinkKind};

/// Constants that a caller gives in place of those of the machine, each of them optional.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GivenCosts {
    /// All constants.
    pub all: Option<Costs>,
    /// Seconds of a step, where the topology gives no latencies.
    pub latency: Option<f64>,
    /// Seconds of a further piece of a message.
    pub message: Option<f64>,
    /// Bytes a second between two ranks, where the topology gives no bandwidths.
    pub bandwidth: Option<f64>,
    /// Bytes a second that a rank reduces.
    pub reduce: Option<f64>,
    /// Bytes a second that a rank copies.
    pub copy: Option<f64>,
}

impl Costs {
    /// Returns the constants of the first `nranks` ranks of a topology: those that are given, else those published of
    /// its GPUs, else those of the host engine.
    ///
    /// ```
    /// use roundelay_simulate::cost::{Costs, GivenCosts, Origin};
    /// use roundelay_core::topology::Topology;
    ///
    /// let text: Topology = "crossbar(8, 450GB/s, gpus(sm=90))".parse()?;
    /// let costs = Costs::for_topology(Some(&text), 8, &GivenCosts::default());
    /// assert_eq!((costs.origin, costs.copy), (Origin::Published, 1675e9));
    /// # Ok::<(), roundelay_topology::Problem>(())
    /// ```
    pub fn for_topology(topology: Option<&Topology>, nranks: u32, given: &GivenCosts) -> Self {
        let of_gpus = || Self::of_gpus(topology?, nranks);
        let all = given.all.clone().or_else(of_gpus);
        let mut costs = all.unwrap_or_else(|| Self::host().clone());
        let mut names = Vec::new();
        for (name, value, constant) in [
            ("latency", given.latency, &mut costs.latency),
            ("piece", given.message, &mut costs.message),
            ("bandwidth", given.bandwidth, &mut costs.bandwidth),
            ("reduce", given.reduce, &mut costs.reduce),
            ("copy", given.copy, &mut costs.copy),
        ] {
            if let Some(value) = value {
                *constant = value;
                names.push(name);
            }
        }
        if !names.is_empty() {
            costs.name = format!("{}; given: {}", costs.name, names.join(", "));
        }
        costs
    }

    /// Returns the constants of the host engine, as `cargo xtask calibrate` measured them on one machine.
    pub fn host() -> &'static Self {
        static HOST: LazyLock<Costs> = LazyLock::new(|| {
            let read = Costs::parse("host.costs", include_str!("host.costs"));
            let name = "the host engine on one machine".to_owned();
            Costs { name, origin: Origin::Assumed, ..read.expect("a test reads the file") }
        });
        &HOST
    }

    /// Returns the constants by which messages alone take time, as in the literature: the latencies and bandwidths that
    /// the topology has, and no time for further pieces, reductions and copies. Where the topology has no bandwidths,
    /// theirs is to be given.
    pub fn of_messages() -> Self {
        Self {
            name: "messages alone take time".to_owned(),
            origin: Origin::Given,
            latency: 0.0,
            message: 0.0,
            bandwidth: 1.0,
            reduce: f64::INFINITY,
            copy: f64::INFINITY,
            cores: None,
        }
    }

    /// Returns the origin and the name of the constants, in words.
    pub fn source(&self) -> String {
        match self.origin {
            Origin::Given => format!("{}: {}", self.origin, self.name),
            origin => format!("{origin}, of {}", self.name),
        }
    }

    /// Returns the origin and the name of the constants without their values, for the title of a picture.
    pub fn title(&self) -> String {
        let end = self.name.find([':', ';']).unwrap_or(self.name.len());
        let (name, rest) = self.name.split_at(end);
        let given = rest.find("; given: ").map_or("", |at| &rest[at..]);
        match self.origin {
            Origin::Given => format!("{name}{given}"),
            origin => format!("constants {origin}, of {name}{given}"),
        }
    }

    /// Returns the bandwidth of the fastest link of a topology, in bytes a second, where a rank is assumed to copy more
    /// slowly: then the copies of another machine decide the time. Ranks that are cores copy as a processor does.
    pub fn outrun(&self, topology: &Fabric) -> Option<f64> {
        let are_cores = topology.links().iter().any(|link| link.kind == LinkKind::Memory);
        let fastest = topology.fastest_link().filter(|_| !are_cores);
        fastest.filter(|rate| self.origin == Origin::Assumed && *rate > self.copy)
    }
}
