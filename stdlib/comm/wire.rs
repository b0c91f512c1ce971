//! The measured link between hosts, and the times that algorithms take on it.

use roundelay_core::layout::Limits;
use roundelay_core::optimize::join;
use roundelay_core::rational::Rat;
use roundelay_simulate::{Machine, simulate};
use roundelay_topology::draft::Draft;
use roundelay_topology::{LinkKind, NodeId, NodeKind, Problem};

use super::call::Call;
use crate::{Algorithm, Costs, DType, Topology};

use std::sync::Arc;

/// Work beyond which a schedule is not laid out to be looked at.
const LIMITS: Limits = Limits { steps: 1 << 16, ops: 1 << 18 };

/// Bytes of the longer of the two calls that are timed.
pub(crate) const LONG: usize = 256 << 10;

/// The link of a host to the other hosts: the seconds that a message takes from host to host beside its bytes, and the
/// bytes a second each way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wire {
    pub(crate) latency: f64,
    pub(crate) bandwidth: f64,
}

impl Wire {
    /// Computes the link from the seconds of an AllReduce on `hosts` hosts, of one element and of [`LONG`] bytes. Of
    /// two hosts each sends the other all bytes; of m hosts, each of the two halves of an AllReduce sends (m - 1) / m
    /// of the bytes.
    pub(crate) fn of([short, long]: [f64; 2], hosts: usize) -> Self {
        let (hosts, steps) = (hosts as f64, (hosts as f64).log2().ceil());
        let (volume, steps) =
            if hosts > 2.0 { (2.0 * (hosts - 1.0) / hosts, 2.0 * steps) } else { (1.0, 1.0) };
        // Times that make no sense, for example because the machine has other work, give the bandwidth of a host's
        // memory.
        let bandwidth = volume * LONG as f64 / (long - short);
        let most = Costs::host().bandwidth;
        let bandwidth = if bandwidth > 0.0 { bandwidth.min(most) } else { most };
        Self { latency: (short / steps).max(0.0), bandwidth }
    }

    /// Makes the topology of the hosts: the ranks of each host at a switch, and a switch that joins these switches.
    fn topology(self, hosts: &[Vec<u32>]) -> Result<Topology, Problem> {
        let costs = Costs::host();
        let nanoseconds = |seconds: f64| (seconds * 1e9).round() as u64;
        let ranks: usize = hosts.iter().map(Vec::len).sum();
        let mut draft = Draft::new("hosts", ranks as u64, false)?;
        let between = draft.switch("network", NodeKind::Net, None);
        for (number, ranks) in (0..).zip(hosts) {
            let within = draft.switch(format!("host {number}"), NodeKind::Net, Some(number));
            let (rate, latency) = (costs.bandwidth as u64, nanoseconds(costs.latency / 2.0));
            for rank in ranks {
                draft.group(NodeId(*rank), number);
                draft.cable(NodeId(*rank), within, LinkKind::Net, Rat::whole(rate), latency)?;
            }
            let (rate, latency) = (self.bandwidth.max(1.0) as u64, nanoseconds(self.latency / 2.0));
            draft.cable(within, between, LinkKind::Net, Rat::whole(rate), latency)?;
        }
        draft.build().map(Topology::from)
    }

    /// Returns the algorithm of `candidates` that takes the least time for a call, by simulation; the first of equally
    /// fast ones, and the first candidate where none can be simulated.
    pub(crate) fn fastest(
        self,
        hosts: &[Vec<u32>],
        call: &Call,
        candidates: &[Box<dyn Algorithm>],
    ) -> usize {
        let nranks = hosts.iter().map(Vec::len).sum::<usize>() as u32;
        let Ok(hosts) = self.topology(hosts) else { return 0 };
        let machine = Machine::of_costs(Costs::host(), Arc::new(hosts));
        let bytes = call.count.saturating_mul(call.dtype.size() as u64);
        let time = |algorithm: &dyn Algorithm| {
            let schedule = algorithm.schedule_within(nranks, LIMITS).ok()?;
            let done = simulate(&join(&schedule), &machine, bytes, DType::U8, false).ok()?;
            // Times that differ by less than a nanosecond count as equal.
            Some((done.seconds * 1e9).round())
        };
        let times = candidates.iter().map(|algorithm| time(&**algorithm).unwrap_or(f64::INFINITY));
        let fastest = times.enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b));
        fastest.map_or(0, |(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_is_what_two_calls_say() {
        let most = Costs::host().bandwidth;
        for (times, hosts, [latency, bandwidth]) in [
            // 256 KiB by a link of 1 Gbit/s, after 30 us.
            ([30e-6, 30e-6 + LONG as f64 / 125e6], 2, [30e-6, 125e6]),
            // Four hosts: four steps, and 3/4 of the bytes twice.
            ([40e-6, 40e-6 + 1.5 * LONG as f64 / 1e9], 4, [10e-6, 1e9]),
            // The longer call was the quicker one, or one took no time that there is.
            ([2.0, 1.0], 2, [2.0, most]),
            ([f64::NAN, 1.0], 2, [0.0, most]),
        ] {
            let wire = Wire::of(times, hosts);
            let is = |found: f64, right: f64| (found - right).abs() <= right * 1e-6;
            assert!(is(wire.latency, latency) && is(wire.bandwidth, bandwidth), "{wire:?}");
        }
    }
}
