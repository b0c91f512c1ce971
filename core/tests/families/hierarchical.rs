//! Two levels: the traffic between islands is read from the schedules, for any groups; and composition nests.

use std::sync::Arc;

use roundelay_core::diagnostics::Code;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{OpKind, Schedule};

use super::pulls::{algorithm, proved, schedule, text};

const HIERARCHICAL: &str = include_str!("../../../stdlib/library/hierarchical.coll");

const REGULAR: [&str; 3] =
    ["HierarchicalAllReduce", "HierarchicalReduceScatter", "HierarchicalAllGather"];

fn balanced(nranks: u32) -> u32 {
    (1..=nranks)
        .find(|size| nranks.is_multiple_of(*size) && size * size >= nranks)
        .expect("a divisor")
}

/// Returns the data that each rank takes from, or gives to, ranks of another color, in units of the count, and the
/// number of ops.
fn across(schedule: &Schedule, colors: &[i64]) -> Vec<(Rat, usize)> {
    let mut all = vec![(Rat::ZERO, 0); colors.len()];
    for stream in &schedule.streams {
        for op in &schedule.ops[stream.first.index()..][..stream.len as usize] {
            if op.kind != OpKind::Move {
                continue;
            }
            for src in schedule.srcs(op) {
                if colors[src.rank.index()] != colors[stream.rank.index()] {
                    let region = schedule.region(*src);
                    let width = region.hi.minus(region.lo).expect("a region");
                    let (sum, ops) = &mut all[stream.rank.index()];
                    *sum = sum.plus(width).expect("a small fraction");
                    *ops += 1;
                }
            }
        }
    }
    all
}

/// Between islands go (m - 1) / (k m) of the data a phase, and ceil(log2 m) steps by NHR or m - 1 around a ring.
#[test]
fn the_traffic_between_islands() {
    for nranks in 2..=36 {
        let k = balanced(nranks);
        let m = nranks / k;
        let colors: Vec<_> = (0..nranks).map(|rank| i64::from(rank / k)).collect();
        for (name, phases, unit) in
            [(REGULAR[0], 2, 1), (REGULAR[1], 1, nranks), (REGULAR[2], 1, nranks)]
        {
            let share = u64::from(phases * unit * (m - 1));
            let share = Rat::new(share, u64::from(k * m)).expect("a fraction");
            for ring in ["false", "true"] {
                let set = [("ring_across", ring), ("ring_inside", ring)];
                let schedule = schedule(&algorithm(HIERARCHICAL, name, &set), nranks);
                for (rank, (taken, ops)) in across(&schedule, &colors).into_iter().enumerate() {
                    assert_eq!(taken, share, "{name} at {nranks}, rank {rank}");
                    if ring == "true" {
                        assert_eq!(ops, (phases * (m - 1)) as usize, "{name} at {nranks}");
                    }
                }
            }
        }
        for root in [0, nranks / 2, nranks - 1] {
            let set = [("root", &*root.to_string())];
            let broadcast = algorithm(HIERARCHICAL, "HierarchicalBroadcast", &set);
            let messages = across(&schedule(&broadcast, nranks), &colors);
            assert_eq!(messages.iter().map(|(_, ops)| ops).sum::<usize>(), (m - 1) as usize);
        }
    }
}

/// On a topology of several islands these are the groups, unless others are set; they have one size.
#[test]
fn groups_are_the_islands_of_the_topology() {
    let colors: Vec<i64> = (0..16).map(|rank| rank / 8).collect();
    let placed = |topology: &str, set: &[(&str, &str)]| {
        let mut placed = algorithm(HIERARCHICAL, REGULAR[0], set);
        placed.place_on(Arc::new(topology.parse().expect("a topology")));
        placed
    };
    let eighth = Rat::new(1, 8).expect("a fraction");
    for topology in ["islands(2, 8)", r#"machine("mi300x", 2)"#] {
        let own = schedule(&placed(topology, &[]), 16);
        assert!(across(&own, &colors).iter().all(|(taken, _)| *taken == eighth), "{topology}");
        let set = schedule(&placed(topology, &[("groups", "balanced")]), 16);
        assert!(across(&set, &colors).iter().all(|(taken, _)| *taken > eighth), "{topology}");
    }
    let one = schedule(&placed("full_mesh(16)", &[]), 16);
    let balanced = schedule(&algorithm(HIERARCHICAL, REGULAR[0], &[]), 16);
    assert_eq!(across(&one, &colors), across(&balanced, &colors));
    let uneven = placed("groups([9, 7])", &[]).schedule(16).expect_err("no rails");
    assert_eq!(uneven[0].code, Code::RankCountRefused);
    assert!(uneven[0].title.contains("set groups=balanced"), "{}", uneven[0].title);
}

/// Members of a group need not be neighbors, nor stand in order of rank.
#[test]
fn any_groups_of_one_size() {
    let mut random = fastrand::Rng::with_seed(1);
    for (k, m) in [(1, 5), (2, 2), (2, 5), (3, 2), (3, 3), (4, 3), (5, 1), (6, 2)] {
        let mut colors: Vec<i64> = (0..k * m).map(|i| (i % m) as i64).collect();
        random.shuffle(&mut colors);
        let groups = format!("colors({})", text(&colors));
        for name in REGULAR {
            proved(&algorithm(HIERARCHICAL, name, &[("groups", &groups)]), (k * m) as u32);
        }
        for root in 0..k * m {
            let set = [("groups", &*groups), ("root", &*root.to_string()), ("slices", "3")];
            proved(&algorithm(HIERARCHICAL, "HierarchicalBroadcast", &set), (k * m) as u32);
        }
    }
}

#[test]
fn islands_of_several_sizes_are_refused() {
    for name in REGULAR {
        let uneven = algorithm(HIERARCHICAL, name, &[("groups", "sizes(3,2)")]);
        let found = roundelay_core::prove_source(&uneven, 5).expect_err("no rails");
        assert!(
            found
                .iter()
                .all(|f| f.code.refuses() && f.title.contains("islands must have one size")),
            "{found:#?}"
        );
    }
}

/// Islands of islands of pairs: three levels of calls, each on regions of the level before.
#[test]
fn composition_nests_three_deep() {
    const NESTED: &str = "
algorithm Pairs() -> AllReduce {
    let groups = Groups::of(2);
    view mine = output.split(len(groups.mine))[groups.position];
    require groups.even, \"pairs\";
    within groups.mine { NhrReduceScatter() on (input, output); }
    within groups.across { RingAllReduce() on (mine); }
    within groups.mine { NhrAllGather() on (output); }
}
algorithm Boards(size: int = 4) -> AllReduce {
    let groups = Groups::of(size);
    require groups.even, \"boards of one size\";
    view mine = output.split(size)[groups.position];
    within groups.mine { HalvingDoublingReduceScatter() on (input, output); }
    within groups.across { Pairs() on (mine, mine); }
    within groups.mine { HalvingDoublingAllGather() on (output); }
}
algorithm Racks(size: int = 8) -> AllReduce {
    let groups = Groups::of(size);
    require groups.even, \"racks of one size\";
    copy(local.input, local.output);
    view mine = output.split([1, 2]);
    parallel way in 0..2 {
        within groups.mine { Boards() on (mine[way]); }
        within groups.across { TwistedRingAllReduce() on (mine[way]); }
    }
    within groups.mine { HierarchicalBroadcast(root: nranks - 1) on (output); }
}
";
    for nranks in [4, 8, 16, 24, 32, 48, 64] {
        if nranks % 8 == 0 {
            proved(&algorithm(NESTED, "Racks", &[]), nranks);
            proved(&algorithm(NESTED, "Boards", &[]), nranks);
        }
        proved(&algorithm(NESTED, "Pairs", &[]), nranks);
    }
    // The rails between boards of racks of three are groups of three, which pairs refuse.
    let refused = roundelay_core::prove_source(&algorithm(NESTED, "Boards", &[]), 12);
    let refused = refused.expect_err("three boards are no pairs");
    assert!(refused[0].code.refuses(), "{refused:#?}");
    assert!(refused[0].title.contains("Boards refuses nranks = 12: Pairs refuses nranks = 3"));
    // From inside a `within` of a called algorithm each caller is named once.
    let refused = roundelay_core::prove_source(&algorithm(NESTED, "Racks", &[("size", "12")]), 24);
    let title = &refused.expect_err("racks of three boards")[0].title;
    assert!(
        title.starts_with("Racks refuses nranks = 24: Boards refuses nranks = 12: Pairs"),
        "{title}"
    );
}
