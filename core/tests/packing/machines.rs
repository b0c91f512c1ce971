//! Machines that published schedules were measured on, in gigabytes a second.

use roundelay_core::rational::Rat;
use roundelay_topology::Fabric;
use roundelay_topology::draft::Draft;
use roundelay_topology::{Link, LinkKind, NodeId, NodeKind};

fn join(draft: &mut Draft, from: u32, to: u32, num: u64, den: u64) {
    let (from, to, capacity) = (NodeId(from), NodeId(to), Rat::new(num, den).unwrap());
    let link = Link { from, to, kind: LinkKind::NvLink, capacity, latency: 0 };
    draft.link(link).unwrap();
}

fn cable(draft: &mut Draft, a: u32, b: u32, num: u64, den: u64) {
    join(draft, a, b, num, den);
    join(draft, b, a, num, den);
}

fn start(name: &str, nranks: u32) -> Draft {
    Draft::new(name, nranks.into(), true).unwrap()
}

fn switch(draft: &mut Draft) -> u32 {
    draft.switch("switch", NodeKind::NvSwitch, None).0
}

/// The double and single cables of the eight cards of a DGX-1.
const DOUBLE: [(u32, u32); 8] = [(0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7)];
const SINGLE: [(u32, u32); 8] = [(0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6)];

/// `NDv2` machines: card 0 of each sends to others, and card 1 receives; two are joined directly, more by a switch.
pub(crate) fn ndv2(chassis: u32) -> Fabric {
    let mut draft = start("NDv2", 8 * chassis);
    for at in (0..chassis).map(|c| 8 * c) {
        for (a, b) in DOUBLE {
            cable(&mut draft, at + a, at + b, 50, 1);
        }
        for (a, b) in SINGLE {
            cable(&mut draft, at + a, at + b, 25, 1);
        }
    }
    if chassis == 2 {
        join(&mut draft, 0, 9, 25, 2);
        join(&mut draft, 8, 1, 25, 2);
    } else if chassis > 2 {
        let net = switch(&mut draft);
        for at in (0..chassis).map(|c| 8 * c) {
            join(&mut draft, at, net, 25, 2);
            join(&mut draft, net, at + 1, 25, 2);
        }
    }
    draft.build().unwrap()
}

/// A DGX-1 in links.
pub(crate) fn dgx1() -> Fabric {
    let mut draft = start("DGX-1", 8);
    for (a, b) in DOUBLE {
        cable(&mut draft, a, b, 2, 1);
    }
    for (a, b) in SINGLE {
        cable(&mut draft, a, b, 1, 1);
    }
    draft.build().unwrap()
}

/// Two DGX-2: each odd card of one sends to an even card of the other.
pub(crate) fn dgx2_pair() -> Fabric {
    let mut draft = start("DGX-2 x2", 32);
    for at in [0, 16] {
        let inside = switch(&mut draft);
        (at..at + 16).for_each(|rank| cable(&mut draft, rank, inside, 125, 1));
    }
    for odd in (1..16).step_by(2) {
        join(&mut draft, odd, 16 + odd - 1, 25, 2);
        join(&mut draft, 16 + odd, odd - 1, 25, 2);
    }
    draft.build().unwrap()
}

/// Machines of eight A100; odd and even cards have a network of their own.
pub(crate) fn a100(machines: u32) -> Fabric {
    let mut draft = start("A100", 8 * machines);
    let planes = (machines > 1).then(|| [switch(&mut draft), switch(&mut draft)]);
    for at in (0..machines).map(|m| 8 * m) {
        let inside = switch(&mut draft);
        for card in 0..8 {
            cable(&mut draft, at + card, inside, 300, 1);
            if let Some(planes) = planes {
                let nic = switch(&mut draft);
                cable(&mut draft, at + card, nic, 25, 1);
                cable(&mut draft, nic, planes[card as usize % 2], 25, 1);
            }
        }
    }
    draft.build().unwrap()
}

/// The cables of 16 dies of MI250, in links of 50 GB/s.
const XGMI: [(u32, u32, u64); 26] = [
    (0, 1, 4),
    (0, 4, 2),
    (0, 8, 1),
    (1, 5, 1),
    (1, 9, 1),
    (1, 10, 1),
    (2, 3, 4),
    (2, 6, 1),
    (2, 9, 1),
    (2, 10, 1),
    (3, 7, 2),
    (3, 11, 1),
    (4, 5, 4),
    (4, 6, 1),
    (5, 6, 1),
    (5, 7, 1),
    (6, 7, 4),
    (8, 9, 4),
    (8, 12, 2),
    (9, 13, 1),
    (10, 11, 4),
    (10, 14, 1),
    (11, 15, 2),
    (12, 13, 4),
    (12, 14, 1),
    (13, 14, 1),
];

/// Machines of 16 dies; each die has 16 GB/s to the network.
pub(crate) fn mi250(machines: u32) -> Fabric {
    let mut draft = start("MI250", 16 * machines);
    for at in (0..machines).map(|m| 16 * m) {
        for (a, b, links) in XGMI.into_iter().chain([(13, 15, 1), (14, 15, 4)]) {
            cable(&mut draft, at + a, at + b, 50 * links, 1);
        }
    }
    if machines > 1 {
        let net = switch(&mut draft);
        (0..16 * machines).for_each(|rank| cable(&mut draft, rank, net, 16, 1));
    }
    draft.build().unwrap()
}
