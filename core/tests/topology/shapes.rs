//! Each constructor against its required layout, counted by hand.

use fastrand::Rng;
use roundelay_core::ids::RankId;
use roundelay_core::rational::Rat;
use roundelay_topology::Fabric;
use roundelay_topology::draft::Draft;
use roundelay_topology::{Link, LinkKind, NodeId, NodeKind};

use crate::topology::{ranks, read};

/// Ranks, switches, links in one direction.
fn size(text: &str) -> (u32, usize, usize) {
    let t = read(text);
    (t.nranks(), t.nodes().len() - t.nranks() as usize, t.links().len())
}

fn capacity(t: &Fabric, from: &str, to: &str) -> Rat {
    let id = |name: &str| {
        let at = t.nodes().iter().position(|n| n.name == name).expect(name);
        NodeId(at as u32)
    };
    let link = t.out(id(from)).iter().find(|l| l.to == id(to));
    link.unwrap_or_else(|| panic!("no link {from} -> {to}")).capacity
}

#[test]
fn sizes_are_those_of_the_textbook() {
    assert_eq!(size("full_mesh(8)"), (8, 0, 56));
    assert_eq!(size("full_mesh(8) without (0, 1)"), (8, 0, 54));
    assert_eq!(size("full_mesh(1)"), (1, 0, 0));
    assert_eq!(size("ring(1)"), (1, 0, 0));
    assert_eq!(size("ring(2)"), (2, 0, 2));
    assert_eq!(size("ring(3)"), (3, 0, 6));
    assert_eq!(size("ring(16)"), (16, 0, 32));
    assert_eq!(size("torus([4, 4])"), (16, 0, 64));
    // In a dimension of two the way round is the way there: one cable.
    assert_eq!(size("torus([2, 4])"), (8, 0, 8 * 2 + 8));
    assert_eq!(size("torus([1, 3, 1])"), (3, 0, 6));
    assert_eq!(size("torus([3, 3, 3])"), (27, 0, 27 * 6));
    assert_eq!(size("crossbar(8)"), (8, 1, 16));
    assert_eq!(size("spine_leaf(8, 8, 4)"), (64, 12, 64 * 2 + 32 * 2));
    assert_eq!(size("islands(2, 8)"), (16, 10, 64));
    assert_eq!(size("islands(1, 8)"), (8, 1, 16));
    assert_eq!(size("groups([8, 4])"), (12, 1, 56 + 12 + 24));
    assert_eq!(size("groups([4])"), (4, 0, 12));
}

#[test]
fn who_is_linked() {
    let mesh = read("full_mesh(8) without (0, 1)");
    assert!(!mesh.are_linked(RankId(0), RankId(1)) && !mesh.are_linked(RankId(1), RankId(0)));
    assert!(mesh.are_linked(RankId(0), RankId(2)) && !mesh.are_linked(RankId(2), RankId(2)));
    assert_eq!(mesh.neighbors(RankId(0)), ranks(&[2, 3, 4, 5, 6, 7]));
    assert_eq!(mesh.relays(RankId(0), RankId(1)), ranks(&[2, 3, 4, 5, 6, 7]));
    assert_eq!(mesh.relays(RankId(2), RankId(3)), ranks(&[0, 1, 4, 5, 6, 7]));

    // Switches pass data on, ranks do not.
    assert!(read("crossbar(8)").are_linked(RankId(0), RankId(7)));
    assert!(read("spine_leaf(2, 2, 1)").are_linked(RankId(0), RankId(3)));
    let islands = read("islands(2, 4)");
    assert_eq!(islands.neighbors(RankId(1)), ranks(&[0, 2, 3, 5]));
    assert_eq!(islands.relays(RankId(0), RankId(5)), ranks(&[1, 4]));
    assert_eq!(read("torus([3, 3])").neighbors(RankId(4)), ranks(&[1, 3, 5, 7]));
    assert_eq!(read("ring(5)").neighbors(RankId(0)), ranks(&[1, 4]));
    let groups = read("groups([2, 1])");
    assert_eq!(groups.neighbors(RankId(2)), ranks(&[0, 1]));
}

#[test]
fn which_links_are_missing() {
    let missing = |text: &str, nranks: u32| -> Vec<(u32, u32)> {
        read(text).missing(nranks).into_iter().map(|(a, b)| (a.0, b.0)).collect()
    };
    assert_eq!(missing("full_mesh(8)", 8), []);
    assert_eq!(missing("full_mesh(8) without (1, 0)", 8), [(0, 1), (1, 0)]);
    // Only links of the participating ranks count.
    assert_eq!(missing("full_mesh(8) without (1, 7)", 7), []);
    assert_eq!(missing("ring(4)", 4), [(0, 2), (1, 3), (2, 0), (3, 1)]);
    // Through switches all ranks are linked, through ranks none.
    assert_eq!(missing("groups([2, 1]) without (0, 1)", 3), []);
    assert_eq!(missing("islands(2, 2)", 4), [(0, 3), (1, 2), (2, 1), (3, 0)]);
    assert_eq!(missing("full_mesh(1)", 1), []);
}

#[test]
fn what_each_rank_should_own() {
    let shares = |text: &str, nranks: u32| read(text).shares(nranks);
    assert_eq!(shares("full_mesh(8)", 8), [1; 8]);
    assert_eq!(shares("full_mesh(1)", 1), [1]);
    assert_eq!(shares("full_mesh(8) without (0, 1)", 8), [6, 6, 7, 7, 7, 7, 7, 7]);
    assert_eq!(shares("full_mesh(8, 25GB/s) without (0, 1)", 8), [6, 6, 7, 7, 7, 7, 7, 7]);
    assert_eq!(shares("full_mesh(4) without (0, 1) without (0, 2)", 4), [1, 2, 2, 3]);
    // A link to a rank that takes no part carries nothing.
    assert_eq!(shares("full_mesh(4) without (0, 1)", 3), [1, 1, 2]);
    assert_eq!(shares("crossbar(5, 240GB/s)", 5), [1; 5]);
    assert_eq!(shares("groups([3, 1], 20GB/s, 1us, 10GB/s)", 4), [5, 5, 5, 1]);
    // 2 * 24_999_999_999 + 1 and 1 have no small common measure: the shares are thousandths, and no rank gets a share
    // of 0.
    assert_eq!(shares("groups([3, 1], 24999999999B/s, 1us, 1B/s)", 4), [1000, 1000, 1000, 1]);
    assert_eq!(shares("groups([3, 2], 23456789kB/s, 1us, 7kB/s)", 5), [1000, 1000, 1000, 500, 500]);
}

/// One-way links among switches, against a walk from every rank.
#[test]
fn who_is_linked_over_random_switches() {
    let mut random = Rng::with_seed(5);
    let mut tried = 0;
    while tried < 200 {
        let (nranks, switches) = (2 + random.u32(..5), 1 + random.u32(..6));
        let mut draft = Draft::new("random", nranks.into(), true).unwrap();
        for s in 0..switches {
            draft.switch(format!("switch {s}"), NodeKind::Net, None);
        }
        let nodes = nranks + switches;
        for from in 0..nodes {
            for to in (0..nodes).filter(|to| *to != from) {
                if random.u32(..3) == 0 {
                    let (from, to) = (NodeId(from), NodeId(to));
                    let (kind, capacity) = (LinkKind::Net, Rat::ONE);
                    draft.link(Link { from, to, kind, capacity, latency: 0 }).unwrap();
                }
            }
        }
        let Ok(t) = draft.build() else { continue };
        for from in t.ranks() {
            let (mut seen, mut open) = (vec![false; nodes as usize], vec![NodeId::from(from)]);
            while let Some(node) = open.pop() {
                for link in t.out(node) {
                    if !std::mem::replace(&mut seen[link.to.index()], true) && !t.is_rank(link.to) {
                        open.push(link.to);
                    }
                }
            }
            for to in t.ranks().filter(|to| *to != from) {
                assert_eq!(t.are_linked(from, to), seen[to.index()], "{from} -> {to} of {t:#?}");
            }
        }
        tried += 1;
    }
}

#[test]
fn capacities_follow_the_tiers() {
    let mesh = read("full_mesh(2, 25GB/s, 2us)");
    assert_eq!(capacity(&mesh, "0", "1"), Rat::whole(25_000_000_000));
    assert!(!mesh.is_relative() && mesh.links()[0].latency == 2000);
    let mesh = read("full_mesh(2)");
    assert_eq!(capacity(&mesh, "0", "1"), Rat::ONE);
    assert!(mesh.is_relative() && mesh.links()[0].latency == 0);
    assert!(read("full_mesh(2, 3us)").is_relative());

    let islands = read("islands(2, 2, 200GB/s, 1us, 25GB/s, 5us)");
    assert_eq!(capacity(&islands, "1", "island 0"), Rat::whole(200_000_000_000));
    assert_eq!(capacity(&islands, "rail 1", "3"), Rat::whole(25_000_000_000));
    let latencies: Vec<_> = islands.links().iter().map(|l| (l.kind, l.latency)).collect();
    assert!(latencies.contains(&(LinkKind::NvLink, 1000)));
    assert!(latencies.contains(&(LinkKind::Net, 5000)));

    // A tier without values of its own has the values of the tier before.
    let same = read("islands(2, 2, 200GB/s, 3us)");
    assert!(same.links().iter().all(|l| l.latency == 3000));
    assert_eq!(capacity(&same, "rail 0", "2"), Rat::whole(200_000_000_000));

    // 8 hosts of B under 4 spines: 2 B an uplink, a third of that at 3:1.
    let uplink = |text: &str| capacity(&read(text), "leaf 0", "spine 0");
    assert_eq!(uplink("spine_leaf(2, 8, 4)"), Rat::whole(2));
    assert_eq!(uplink("spine_leaf(2, 8, 4, 3)"), Rat::new(2, 3).unwrap());
    assert_eq!(uplink("spine_leaf(2, 8, 4, 10GB/s, 1us, 7GB/s)"), Rat::whole(7_000_000_000));
}

#[test]
fn turning_round_twice_changes_nothing() {
    for text in ["full_mesh(5) without (1, 3)", "spine_leaf(2, 3, 2)", "torus([2, 3])"] {
        let there = read(text);
        let back = there.reverse().reverse();
        assert_eq!(*there, back, "{text}");
    }
}

#[test]
fn a_way_there_and_none_back_is_no_connection() {
    let one_way = |links: &[(u32, u32)]| {
        let mut draft = Draft::new("one way", 3, true).unwrap();
        for (from, to) in links {
            let (from, to, kind) = (NodeId(*from), NodeId(*to), LinkKind::NvLink);
            draft.link(Link { from, to, kind, capacity: Rat::ONE, latency: 0 }).unwrap();
        }
        draft.build()
    };
    assert_eq!(one_way(&[(0, 1), (1, 2), (2, 0)]).map(|t| t.nranks()), Ok(3));
    let problem = one_way(&[(0, 1), (1, 0), (1, 2)]).unwrap_err();
    assert_eq!(problem.code.as_str(), "E0603");
    assert_eq!(problem.notes, ["a part: ranks 0, 1", "a part: rank 2"]);
}

#[test]
fn components_are_strong() {
    let t = read("full_mesh(3) without (0, 1)");
    assert_eq!(t.components(), [ranks(&[0, 1, 2])]);
}
