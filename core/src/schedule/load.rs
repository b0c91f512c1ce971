//! The load of a schedule on each link, and so the least time it could take on a topology: with full overlap, no
//! latency, and each link always busy.
//!
//! Data takes the shortest paths through switches; where there are several, equal parts take each (as ECMP does).

use std::collections::BTreeMap;

use crate::ids::RankId;
use crate::schedule::Schedule;
use roundelay_topology::routes::{Routes, Routing};
use roundelay_topology::{Fabric, NodeId};

/// The load of a schedule on the links of a topology.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// For each of [`Fabric::links`], the share of S that passes: S is nccl-tests' size in bytes.
    pub links: Vec<f64>,
    /// The seconds that the busiest link takes for a byte of S, times B where the topology is relative.
    pub seconds_per_byte: f64,
    /// The busiest link, an index into [`Fabric::links`]; `None` where no data passes.
    pub busiest: Option<usize>,
}

impl Load {
    /// Returns the load of `schedule`. Moves between ranks that are not linked are not counted: they are findings.
    pub fn new(schedule: &Schedule, topology: &Fabric) -> Self {
        let n = schedule.nranks;
        let units =
            schedule.collective.max_input_units(n).max(schedule.collective.max_output_units(n));
        let mut demand: BTreeMap<RankId, BTreeMap<RankId, f64>> = BTreeMap::new();
        for used in schedule.traffic() {
            if let Some(data) = used.units {
                let share = data.num() as f64 / data.den() as f64 / f64::from(units);
                *demand.entry(used.from).or_default().entry(used.to).or_default() += share;
            }
        }
        let mut links = vec![0.0; topology.links().len()];
        let mut routes = Routes::new(topology, Routing::Ecmp);
        for (from, to) in &demand {
            let amounts = to.iter().map(|(rank, share)| (NodeId::from(*rank), *share));
            routes.spread(NodeId::from(*from), amounts, |link, share| links[link] += share);
        }
        let time = |i: &usize| {
            let capacity = topology.links()[*i].capacity;
            links[*i] * capacity.den() as f64 / capacity.num() as f64
        };
        let busiest =
            (0..links.len()).filter(|i| links[*i] > 0.0).max_by(|a, b| time(a).total_cmp(&time(b)));
        let seconds_per_byte = busiest.as_ref().map_or(0.0, time);
        Self { links, seconds_per_byte, busiest }
    }
}
