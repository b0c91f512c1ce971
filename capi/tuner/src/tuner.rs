//! The tuner of a communicator: NCCL's costs, with the levels of its trees as they are.
//!
//! NCCL's cost of an algorithm is a latency and the bytes over a bandwidth. In the latency of a tree over m nodes it
//! counts log2 m levels, rounded down: on 3, 5, 6, 7, 9 … nodes a level is missing. The plugin adds the hops of the
//! simulated schedule that NCCL does not count, each with NCCL's own latency. What is no hop between nodes stays as
//! NCCL has it: the bandwidths, which its search of channels and its measured factors give, and algorithms without a
//! tree over nodes.
//!
//! A result depends on what NCCL says when the communicator begins and on the table, never on earlier calls: all ranks
//! must decide alike.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::constants::Latencies;
use crate::interface::{
    ALGORITHMS, COLLECTIVES, CostTable, NVLS_TREE, PAT, PROTOCOLS, SIMPLE, TREE,
};
use crate::levels::{self, Levels};
use crate::nccl_log::NcclLog;
use crate::setting::Mode;

/// The facts of a communicator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Communicator {
    /// NCCL's number for it, if NCCL tells one.
    pub(crate) id: Option<u64>,
    pub(crate) ranks: usize,
    pub(crate) nodes: usize,
}

/// Microseconds that an algorithm takes in addition to NCCL's cost.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MissingHops {
    algorithm: usize,
    protocol: usize,
    microseconds: f64,
}

/// The tuner of a communicator.
pub(crate) struct Tuner {
    mode: Mode,
    nodes: usize,
    log: NcclLog,
    /// By the collective.
    missing: [Vec<MissingHops>; COLLECTIVES.len()],
    /// For each collective, the classes of sizes that were reported: class k is of 2^k bytes and more.
    reported: [AtomicU64; COLLECTIVES.len()],
}

impl Tuner {
    /// Makes the tuner of a communicator.
    ///
    /// # Errors
    /// A communicator that makes no sense, or is too large to be simulated, in words.
    pub(crate) fn new(
        of: Communicator,
        mode: Mode,
        latencies: &Latencies,
        log: NcclLog,
    ) -> Result<Self, String> {
        let Communicator { ranks, nodes, .. } = of;
        if nodes == 0 || nodes > ranks {
            return Err(format!("NCCL tells {ranks} ranks on {nodes} nodes"));
        }
        let mut missing: [Vec<MissingHops>; COLLECTIVES.len()] = Default::default();
        if nodes > 1 {
            let few = u32::try_from(nodes).ok().filter(|nodes| *nodes <= levels::MOST);
            let few = few.ok_or_else(|| {
                format!("{nodes} nodes are more than are simulated: at most {}", levels::MOST)
            })?;
            let latencies = if nodes == ranks { latencies.exposed() } else { *latencies };
            let (real, counted) = (Levels::over(few)?, Levels::by_formula(few));
            let mut add = |collective: usize, algorithm, protocol, hops: f64, hop: f64| {
                let microseconds = hops * hop;
                if microseconds != 0.0 {
                    missing[collective].push(MissingHops { algorithm, protocol, microseconds });
                }
            };
            let hops = real.all_reduce - counted.all_reduce;
            for (protocol, hop) in latencies.tree.into_iter().enumerate() {
                add(4, TREE, protocol, hops, hop);
            }
            add(4, NVLS_TREE, SIMPLE, hops, latencies.nvls_tree);
            // Of a hop of these trees NCCL's formula counts this part.
            let part = latencies.pat / 3.5;
            add(2, PAT, SIMPLE, real.all_gather - counted.all_gather, part);
            add(3, PAT, SIMPLE, real.reduce_scatter - counted.reduce_scatter, part);
            let id = of.id.map_or_else(String::new, |id| format!(" {id:#x}"));
            log.say(&format!(
                "communicator{id}, {ranks} ranks on {nodes} nodes: trees take {} hops between nodes; NCCL counts {}",
                real.all_reduce, counted.all_reduce
            ));
        }
        Ok(Self { mode, nodes, log, missing, reported: Default::default() })
    }

    /// Adds the missing hops to the costs of a call, where NCCL offers the algorithm. A cost of 0 is an order to take
    /// the algorithm, and stays.
    pub(crate) fn decide(&self, collective: c_int, bytes: usize, table: CostTable<'_>) {
        let known = usize::try_from(collective).ok().filter(|known| *known < COLLECTIVES.len());
        let Some(collective) = known else { return };
        let CostTable(rows) = table;
        let mut own = [[-1.0; PROTOCOLS.len()]; CostTable::MOST];
        own[..rows.len()].copy_from_slice(rows);
        let mut before = own;
        for MissingHops { algorithm, protocol, microseconds } in &self.missing[collective] {
            let Some(row) = own[..rows.len()].get_mut(*algorithm) else { continue };
            let cost = f64::from(row[*protocol]) + microseconds;
            if row[*protocol] > 0.0 && (0.0..f64::from(f32::MAX)).contains(&cost) {
                row[*protocol] = cost as f32;
            }
        }
        if self.mode == Mode::On {
            rows.copy_from_slice(&own[..rows.len()]);
        }
        let class = bytes.checked_ilog2().unwrap_or(0);
        let bit = 1 << class;
        let reported = &self.reported[collective];
        // Mostly it is reported: then nothing is written that other threads read.
        if reported.load(Ordering::Relaxed) & bit == 0
            && reported.fetch_or(bit, Ordering::Relaxed) & bit == 0
        {
            let (before, own) = (CostTable(&mut before).best(), CostTable(&mut own).best());
            self.say(collective, class, before, own);
        }
    }

    /// Reports a decision.
    fn say(&self, collective: usize, class: u32, before: Option<Best>, own: Option<Best>) {
        let (Some(before), Some(own)) = (before, own) else { return };
        let name = COLLECTIVES[collective];
        let named = |(algorithm, protocol, cost): Best| {
            let algorithm = ALGORITHMS.get(algorithm).unwrap_or(&"an unknown algorithm");
            format!("{algorithm} by {} in {cost:.1} us", PROTOCOLS[protocol])
        };
        let alike = (before.0, before.1) == (own.0, own.1);
        let of = if alike { "as NCCL would" } else { "where NCCL would take" };
        let of = if alike { of.to_owned() } else { format!("{of} {}", named(before)) };
        let takes = if self.mode == Mode::On { "takes" } else { "would take" };
        self.log.say(&format!(
            "{name} of 2^{class} bytes and more on {} nodes {takes} {}, {of}",
            self.nodes,
            named(own)
        ));
    }
}

/// An algorithm, a protocol, and the cost of this pair.
type Best = (usize, usize, f32);
