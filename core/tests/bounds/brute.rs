//! Random small graphs, switches and one-way links among them, against a look at every cut and partition.

use roundelay_core::collective::Collective;
use roundelay_core::ids::RankId;
use roundelay_core::rational::Rat;
use roundelay_core::topology::Topology;
use roundelay_topology::Fabric;
use roundelay_topology::bounds::{Bounds, Fraction};
use roundelay_topology::draft::Draft;
use roundelay_topology::{Link, LinkKind, NodeId, NodeKind};

use fastrand::Rng;

/// Returns a graph of at most seven nodes, or `None` where the dice give one in parts.
fn graph(random: &mut Rng) -> Option<Fabric> {
    let nranks = 2 + random.u64(..5);
    let switches = random.u64(..8 - nranks);
    let mut draft = Draft::new("random", nranks, true).unwrap();
    for s in 0..switches {
        draft.switch(format!("switch {s}"), NodeKind::NvSwitch, None);
    }
    let (nodes, sparse) = (nranks + switches, 1 + random.u64(..3));
    let symmetric = random.u64(..2) == 0;
    for from in 0..nodes {
        for to in 0..nodes {
            if from == to || (symmetric && from > to) || random.u64(..4) < sparse {
                continue;
            }
            let capacity = Rat::new(1 + random.u64(..6), 1 + random.u64(..3)).unwrap();
            let (from, to) = (NodeId(from as u32), NodeId(to as u32));
            let link = |from, to| Link { from, to, kind: LinkKind::NvLink, capacity, latency: 0 };
            draft.link(link(from, to)).unwrap();
            if symmetric {
                draft.link(link(to, from)).unwrap();
            }
        }
    }
    draft.build().ok()
}

fn is_symmetric(t: &Fabric) -> bool {
    t.reverse().links() == t.links()
}

/// Returns the bandwidth that leaves a set of nodes, in sixths of b.
fn leaves(t: &Fabric, side: u32) -> u128 {
    let inside = |node: NodeId| side >> node.0 & 1 == 1;
    let crossing = t.links().iter().filter(|l| inside(l.from) && !inside(l.to));
    crossing.map(|l| u128::from(l.capacity.num() * (6 / l.capacity.den()))).sum()
}

/// Every set of nodes, with how many ranks are in it.
fn sides(t: &Fabric) -> impl Iterator<Item = (u32, u128)> {
    let ranks = (1 << t.nranks()) - 1;
    (0..1_u32 << t.nodes().len()).map(move |side| (side, u128::from((side & ranks).count_ones())))
}

/// Returns the least bandwidth that leaves a set which holds the ranks of `group` and no other rank.
fn kappa(t: &Fabric, group: u32) -> u128 {
    let ranks = (1_u32 << t.nranks()) - 1;
    let fits = sides(t).filter(|(side, _)| side & ranks == group);
    fits.map(|(side, _)| leaves(t, side)).min().unwrap()
}

/// Every way to put ranks into groups.
fn partitions(n: u32) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    for rank in 0..n {
        let mut more = Vec::new();
        for groups in &all {
            for i in 0..groups.len() {
                let mut joined: Vec<u32> = groups.clone();
                joined[i] |= 1 << rank;
                more.push(joined);
            }
            more.push([&groups[..], &[1 << rank]].concat());
        }
        all = more;
    }
    all
}

fn worst(fractions: impl Iterator<Item = (u128, u128)>) -> Fraction {
    fractions.map(|(num, den)| Fraction::new(num * 6, den)).max().unwrap_or(Fraction::ZERO)
}

fn check(t: &Fabric, root: RankId) {
    let n = u128::from(t.nranks());
    let back = t.reverse();
    let found = Bounds::new(t, t.nranks(), root).unwrap();
    let is = |collective, expected: Fraction| {
        let got = found.bound(collective);
        assert_eq!(got.per_byte, expected, "{collective} by {} on {t:#?}", got.binding);
    };
    let gather = |t: &Fabric| {
        let some = sides(t).filter(|(_, inside)| (1..n).contains(inside));
        worst(some.map(|(side, inside)| (inside, n * leaves(t, side))))
    };
    is(Collective::AllGather, gather(t));
    is(Collective::ReduceScatter, gather(&back));

    let holds_root = |(side, inside): &(u32, u128)| side >> root.0 & 1 == 1 && *inside < n;
    let broadcast =
        |t: &Fabric| worst(sides(t).filter(holds_root).map(|(side, _)| (1, leaves(t, side))));
    is(Collective::Broadcast, broadcast(t));
    is(Collective::Reduce, broadcast(&back));
    let scatter = |t: &Fabric| {
        worst(sides(t).filter(holds_root).map(|(side, inside)| (n - inside, n * leaves(t, side))))
    };
    is(Collective::Scatter, scatter(t));
    is(Collective::Gather, scatter(&back));

    let full = (1_u32 << t.nranks()) - 1;
    let out: Vec<u128> =
        (0..=full).map(|g| if g == 0 || g == full { 0 } else { kappa(t, g) }).collect();
    let into = |group: u32| out[(full ^ group) as usize];
    let split = partitions(t.nranks()).into_iter().filter(|groups| groups.len() > 1);
    let all_reduce = split.flat_map(|groups| {
        let k = groups.len() as u128;
        let leave: u128 = groups.iter().map(|g| out[*g as usize]).sum();
        let enter: u128 = groups.iter().map(|g| into(*g)).sum();
        let alone = groups.into_iter().map(|g| (1, out[g as usize].min(into(g))));
        let alone: Vec<_> = alone.collect();
        [(2 * (k - 1), leave), (2 * (k - 1), enter)].into_iter().chain(alone)
    });
    is(Collective::AllReduce, worst(all_reduce));
    let (bound, equal) = (found.bound(Collective::AllReduce), found.equal_shards.per_byte);
    let phases = gather(t).plus(gather(&back));
    assert_eq!(equal, phases.max(bound.per_byte), "{t:?}");
    // Without nodes that only forward, the two phases reach their bounds.
    if t.nodes().len() as u32 == t.nranks() || is_symmetric(t) {
        assert_eq!(equal, phases, "{t:?}");
    }

    let across = sides(t).filter(|(_, inside)| (1..n).contains(inside));
    let cut = worst(across.map(|(side, inside)| (inside * (n - inside), n * leaves(t, side))));
    assert!(found.bound(Collective::AllToAll).per_byte >= cut);
}

#[test]
fn every_cut_of_random_graphs() {
    let mut random = Rng::with_seed(7);
    let mut tried = 0;
    while tried < 300 {
        let Some(topology) = graph(&mut random) else { continue };
        let root = RankId(random.u32(..topology.nranks()));
        check(&topology, root);
        tried += 1;
    }
}

/// A graph that rotations take to itself, or would if it were not for one link.
fn nearly_round(random: &mut Rng) -> Option<Fabric> {
    let (nranks, switches) =
        [(4, 0), (4, 1), (4, 2), (6, 0), (6, 1), (4, 3), (3, 3)][random.u64(..7) as usize];
    let mut draft = Draft::new("nearly round", nranks, true).unwrap();
    for s in 0..switches {
        draft.switch(format!("switch {s}"), NodeKind::NvSwitch, None);
    }
    let mut links = Vec::new();
    for distance in 1..nranks {
        let capacity = random.u64(..4);
        for from in 0..nranks {
            links.push((from, (from + distance) % nranks, capacity));
        }
    }
    for switch in nranks..nranks + switches {
        let (up, down) = (random.u64(..4), random.u64(..4));
        for rank in (0..nranks).filter(|rank| rank % switches == switch - nranks) {
            links.extend([(rank, switch, up), (switch, rank, down)]);
        }
    }
    let odd = random.u64(..2 * links.len() as u64) as usize;
    if let Some(link) = links.get_mut(odd) {
        link.2 = 5;
    }
    for (from, to, capacity) in links.into_iter().filter(|link| link.2 > 0) {
        let (from, to) = (NodeId(from as u32), NodeId(to as u32));
        let capacity = Rat::whole(capacity);
        draft.link(Link { from, to, kind: LinkKind::NvLink, capacity, latency: 0 }).unwrap();
    }
    draft.build().ok()
}

/// One rank stands for others only where they are truly alike.
#[test]
fn every_cut_of_nearly_round_graphs() {
    let mut random = Rng::with_seed(3);
    let mut tried = 0;
    while tried < 300 {
        let Some(topology) = nearly_round(&mut random) else { continue };
        check(&topology, RankId(random.u32(..topology.nranks())));
        tried += 1;
    }
}

/// Beyond the ranks for which all sets are tried: one rank sends at speed and receives at a crawl.
#[test]
fn what_enters_binds_in_large_graphs_too() {
    for slow_inwards in [true, false] {
        let mut draft = Draft::new("one way", 12, true).unwrap();
        let switch = draft.switch("switch", NodeKind::NvSwitch, None);
        for rank in (0..12).map(NodeId) {
            for (from, to, slow) in [(rank, switch, false), (switch, rank, true)] {
                let crawls = rank.0 == 5 && slow == slow_inwards;
                // Another odd rank, or all but the slow one would be alike and tried as a group.
                let speed = if rank.0 == 7 { 50 } else { 100 };
                let capacity = Rat::whole(if crawls { 1 } else { speed });
                let link = Link { from, to, kind: LinkKind::NvLink, capacity, latency: 0 };
                draft.link(link).unwrap();
            }
        }
        let found = Bounds::new(&draft.build().unwrap(), 12, RankId(0)).unwrap();
        assert_eq!(found.bound(Collective::AllToAll).per_byte, Fraction::new(11, 12));
        assert_eq!(found.bound(Collective::AllReduce).per_byte, Fraction::new(1, 1));
    }
}

/// With a cable less, nothing gets faster.
#[test]
fn a_cut_cable_never_lowers_a_bound() {
    let mut random = Rng::with_seed(11);
    for _ in 0..40 {
        let n = 3 + random.u64(..6);
        let mut text = format!("full_mesh({n})");
        let mut before =
            Bounds::new(&text.parse::<Topology>().unwrap(), n as u32, RankId(0)).unwrap();
        for _ in 0..6 {
            let (a, b) = (random.u64(..n), random.u64(..n));
            let cut = format!("{text} without ({a}, {b})");
            let Ok(topology) = cut.parse::<Topology>() else { continue };
            let after = Bounds::new(&topology, n as u32, RankId(0)).unwrap();
            for ((collective, less), (_, more)) in after.collectives.iter().zip(&before.collectives)
            {
                assert!(less.per_byte >= more.per_byte, "{collective} on {cut}");
            }
            assert!(after.rounds.all_ports >= before.rounds.all_ports);
            (text, before) = (cut, after);
        }
    }
}

#[test]
fn fractions_compare_without_overflow() {
    let huge = u128::MAX / 3;
    assert!(Fraction::new(huge, huge - 1) > Fraction::new(huge + 1, huge));
    assert!(Fraction::new(huge - 1, huge) < Fraction::new(huge, huge + 1));
    assert!(Fraction::new(1, huge) > Fraction::ZERO);
    assert_eq!(Fraction::new(2, 4), Fraction::new(1, 2));
    assert_eq!(Fraction::new(1, 6).plus(Fraction::new(1, 10)), Fraction::new(4, 15));
}

#[test]
fn runs_that_do_not_fit_are_refused() {
    let mesh: Topology = "full_mesh(4)".parse().unwrap();
    let code = |nranks, root| Bounds::new(&mesh, nranks, RankId(root)).unwrap_err().code.as_str();
    assert_eq!(code(5, 0), "E0604");
    assert_eq!(code(4, 4), "E0204");
    assert_eq!(code(0, 0), "E0204");
    // Two fractions whose common unit needs 64 bits and more.
    let mut draft = Draft::new("odd", 2, true).unwrap();
    for (from, den) in [(0, 4_294_967_291), (1, 4_294_967_279)] {
        let (from, to, kind) = (NodeId(from), NodeId(1 - from), LinkKind::NvLink);
        let capacity = Rat::new(1, den).unwrap();
        draft.link(Link { from, to, kind, capacity, latency: 0 }).unwrap();
    }
    assert_eq!(draft.build().unwrap_err().code.as_str(), "E0601");
}
