//! The use of links and ports by a run.

use super::machine::Machine;
use roundelay_core::schedule::Schedule;
use roundelay_topology::NodeId;

/// The use of a link by a simulated run, in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// The node at which the link begins.
    pub from: NodeId,
    /// The node at which the link ends.
    pub to: NodeId,
    /// The bytes that passed; bytes across the host bridge of an Intel CPU on PCI count as 6/5, as NCCL counts them.
    pub bytes: f64,
    /// The bytes a second that the link can carry.
    pub capacity: f64,
    /// The share of the bytes that the link could have carried in the time of the run, from 0 to 1; 0 where the run
    /// took no time.
    pub used: f64,
}

/// The use of the links of a rank, summed, by a simulated run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PortUsage {
    /// The bytes that left the rank.
    pub sent: f64,
    /// The bytes that came to the rank.
    pub received: f64,
    /// The share of the bytes that its links could have carried away in the time of the run, from 0 to 1.
    pub sending: f64,
    /// The share of the bytes that its links could have brought in the time of the run, from 0 to 1.
    pub receiving: f64,
}

/// Returns `part` over `whole`, or 0 where `whole` is 0.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Returns the use of all links, and of the ranks that took part.
pub(super) fn usage(
    schedule: &Schedule,
    machine: &Machine,
    capacity: &[f64],
    carried: &[f64],
    seconds: f64,
) -> (Vec<Usage>, Vec<PortUsage>) {
    let links = machine.topology.links().iter().zip(capacity).zip(carried);
    let link = |((link, &capacity), &bytes): ((&roundelay_topology::Link, &f64), &f64)| Usage {
        from: link.from,
        to: link.to,
        bytes,
        capacity,
        used: share(bytes, capacity * seconds),
    };
    let links: Vec<Usage> = links.map(link).collect();
    let ranks = schedule.nranks as usize;
    // Bytes and capacity, away and towards.
    let mut sums = vec![[0.0; 4]; ranks];
    for link in &links {
        if let Some(from) = sums.get_mut(link.from.index()) {
            from[0] += link.bytes;
            from[1] += link.capacity;
        }
        if let Some(to) = sums.get_mut(link.to.index()) {
            to[2] += link.bytes;
            to[3] += link.capacity;
        }
    }
    let port = |[sent, away, received, towards]: [f64; 4]| PortUsage {
        sent,
        received,
        sending: share(sent, away * seconds),
        receiving: share(received, towards * seconds),
    };
    (links, sums.into_iter().map(port).collect())
}
