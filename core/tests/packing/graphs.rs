//! Random graphs with switches and uneven links.

use roundelay_core::rational::Rat;
use roundelay_topology::Fabric;
use roundelay_topology::draft::Draft;
use roundelay_topology::{Link, LinkKind, NodeId, NodeKind};

use fastrand::Rng;

/// Returns a topology of up to 16 ranks and 6 switches whose links are equal both ways, or also one-way links, in
/// cycles or not; `None` where the dice give one in parts.
pub(crate) fn topology(random: &mut Rng) -> Option<Fabric> {
    let nranks = 2 + random.u64(..15);
    let switches = random.u64(..7);
    let mut draft = Draft::new("random", nranks, true).unwrap();
    for s in 0..switches {
        draft.switch(format!("switch {s}"), NodeKind::NvSwitch, None);
    }
    let nodes = nranks + switches;
    let (sparse, kind, speeds) = (1 + random.u64(..9), random.u64(..3), 1 + random.u64(..8));
    let mut capacity = vec![vec![0; nodes as usize]; nodes as usize];
    for from in 0..nodes as usize {
        for to in 0..from {
            if random.u64(..10) >= sparse {
                continue;
            }
            let speed = 1 + random.u64(..speeds);
            capacity[from][to] += speed;
            // Both ways are equal; or around in a triangle, which is even too; or any.
            match kind {
                0 => capacity[to][from] += speed,
                1 => {
                    let third = random.u64(..nodes) as usize;
                    if third == from || third == to {
                        capacity[to][from] += speed;
                    } else {
                        capacity[to][third] += speed;
                        capacity[third][from] += speed;
                    }
                }
                _ => capacity[to][from] += random.u64(..2 * speeds),
            }
        }
    }
    let den = 1 + random.u64(..4);
    for (from, row) in capacity.into_iter().enumerate() {
        for (to, speed) in row.into_iter().enumerate().filter(|(_, speed)| *speed > 0) {
            let (from, to, kind) = (NodeId(from as u32), NodeId(to as u32), LinkKind::NvLink);
            let capacity = Rat::new(speed, den).unwrap();
            draft.link(Link { from, to, kind, capacity, latency: 0 }).unwrap();
        }
    }
    draft.build().ok()
}

/// Whether every switch sends what it receives.
pub(crate) fn even(topology: &Fabric) -> bool {
    let switches = topology.nranks()..topology.nodes().len() as u32;
    let sum = |links: Vec<&Link>| -> u64 {
        links.into_iter().map(|l| l.capacity.num() * (12 / l.capacity.den())).sum()
    };
    switches.map(NodeId).all(|switch| {
        let into = topology.links().iter().filter(|l| l.to == switch);
        sum(topology.out(switch).iter().collect()) == sum(into.collect())
    })
}
