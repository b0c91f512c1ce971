//! Bandwidths so uneven that trees can hardly be counted: a packing that is right, or a refusal.

use roundelay_topology::Fabric;
use std::collections::BTreeMap;

use roundelay_core::collective::Collective::{
    AllGather, AllReduce, Broadcast, Reduce, ReduceScatter,
};
use roundelay_core::ids::RankId;
use roundelay_core::rational::Rat;
use roundelay_synthesis::packing::{pack, pack_at_once};
use roundelay_topology::bounds::Fraction;
use roundelay_topology::draft::Draft;
use roundelay_topology::{Link, LinkKind, NodeId, NodeKind};

use fastrand::Rng;

/// Returns a number of 1 to `most`.
fn number(random: &mut Rng, most: u64) -> u64 {
    let high = random.u64(..1 << 31) << 31;
    1 + (high | random.u64(..1 << 31)) % most
}

/// Returns a topology of some ranks and switches whose links are equal both ways, with bandwidths of up to
/// 2^`bits`, which are no whole numbers; `None` where they are finer than a topology may have, or give one in parts.
fn uneven(random: &mut Rng, bits: u64) -> Option<Fabric> {
    let nranks = 2 + random.u64(..5);
    let switches = random.u64(..3);
    let mut draft = Draft::new("uneven", nranks, true).unwrap();
    for s in 0..switches {
        draft.switch(format!("switch {s}"), NodeKind::NvSwitch, None);
    }
    let den_bits = random.u64(..20);
    let den = number(random, 1 << den_bits);
    let most = den << bits.min(62 - den_bits);
    for (a, b) in (0..nranks + switches).flat_map(|a| (0..a).map(move |b| (a, b))) {
        if random.u64(..4) == 0 {
            continue;
        }
        let num = number(random, most);
        let capacity = Rat::new(num, den)?;
        for (from, to) in [(a, b), (b, a)] {
            let (from, to) = (NodeId(from as u32), NodeId(to as u32));
            draft.link(Link { from, to, kind: LinkKind::NvLink, capacity, latency: 0 }).ok()?;
        }
    }
    draft.build().ok()
}

/// Returns the least time of an AllReduce from its definition: of ranks in sets that do not overlap, each set has to send
/// its part of all sums but one, and to receive as many. The sets have all ranks; or any, if data goes up trees and then
/// down: then each set lacks the shares of the others, and they have at most the whole buffer.
fn least(topology: &Fabric, two_phases: bool) -> f64 {
    let n = topology.nranks() as usize;
    let all = 1_usize << topology.nodes().len();
    let mut into = vec![f64::INFINITY; 1 << n];
    for set in 0..all {
        let inside = |node: NodeId| set >> node.index() & 1 == 1;
        let links = topology.links().iter().filter(|l| inside(l.to) && !inside(l.from));
        let capacity = links.map(|link| link.capacity.num() as f64 / link.capacity.den() as f64);
        let ranks = set % (1 << n);
        into[ranks] = capacity.sum::<f64>().min(into[ranks]);
    }
    fn worst(rank: usize, sets: &mut Vec<usize>, into: &[f64], skips: bool) -> f64 {
        if 1 << rank == into.len() {
            let capacity: f64 = sets.iter().map(|set| into[*set]).sum();
            return if sets.len() < 2 { 0.0 } else { 2.0 * (sets.len() - 1) as f64 / capacity };
        }
        let mut most = if skips { worst(rank + 1, sets, into, skips) } else { 0.0 };
        for at in 0..sets.len() {
            sets[at] |= 1 << rank;
            most = worst(rank + 1, sets, into, skips).max(most);
            sets[at] -= 1 << rank;
        }
        sets.push(1 << rank);
        most = worst(rank + 1, sets, into, skips).max(most);
        sets.pop();
        most
    }
    worst(0, &mut Vec::new(), &into, two_phases)
}

fn run(seed: u64, times: u32) -> BTreeMap<String, u32> {
    let mut random = Rng::with_seed(seed);
    let mut answers = BTreeMap::new();
    for _ in 0..times {
        let bits = 1 + random.u64(..49);
        let Some(topology) = uneven(&mut random, bits) else { continue };
        let n = topology.nranks();
        let root = RankId(random.u32(..n));
        let trees = [None, Some(1 + random.u64(..4) as u32)][random.u64(..2) as usize];
        for collective in [AllGather, ReduceScatter, AllReduce, Broadcast, Reduce] {
            let answer = match pack(&topology, n, collective, root, trees) {
                Ok(packing) => {
                    let (time, bound) = (packing.per_byte, packing.bound);
                    let right = match (trees, collective) {
                        (None, AllReduce) => {
                            let near = |time: Fraction, least: f64| {
                                (time.value() / least - 1.0).abs() < 1e-9
                            };
                            let both = pack_at_once(&topology, n, None);
                            // Its numbers may be larger.
                            let at_once = both.is_err()
                                || both.is_ok_and(|both| {
                                    both.per_byte == bound && near(bound, least(&topology, false))
                                });
                            at_once && time >= bound && near(time, least(&topology, true))
                        }
                        (None, _) => time == bound,
                        (Some(_), _) => time >= bound,
                    };
                    let run = || format!("seed {seed}: {collective}, {trees:?} on {topology:?}");
                    assert!(right, "{time} for {bound}: {}", run());
                    "packed".to_owned()
                }
                Err(problem) => problem.to_string(),
            };
            *answers.entry(answer).or_default() += 1;
        }
    }
    println!("seed {seed}: {answers:?}");
    answers
}

#[test]
fn uneven_bandwidths_are_packed_or_refused() {
    let answers = run(1, 300);
    let refused = "the bandwidths are too uneven to count trees";
    assert!(answers.contains_key("packed") && answers.keys().any(|a| a.contains(refused)));
    assert!(answers.keys().all(|a| a == "packed" || a.contains(refused)), "{answers:?}");
}

#[test]
#[ignore = "long"]
fn many_uneven_bandwidths() {
    for seed in 2..22 {
        run(seed, 500);
    }
}
