//! Groups: their members, by the ranks that a program finds there.

use roundelay_core::layout::Algorithm as _;
use roundelay_core::schedule::{OpKind, SignalKind};

use crate::sources::algorithms;

/// Each rank tells by posts the members of its group and the ranks that stand across, and by slots the number of the
/// group.
const ASK: &str = "
algorithm Ask(groups: Groups) -> AllReduce {
    scratch slot: 64 like input;
    let me = groups.mine[groups.position];
    require me == rank && groups[groups.index][groups.position] == rank, \"I stand where I am said to stand\";
    require groups.across[min(groups.index, len(groups.across) - 1)] <= nranks, \"a rank\";
    for r in groups.mine {
        if r != rank {
            peer(r).TxAck();
        }
    }
    for r in groups.across {
        if r != rank {
            peer(r).TxDataSignal();
        }
    }
    copy(local.input, local.slot[groups.index]);
    copy(local.input, local.slot[groups.position]);
    if groups.even {
        copy(local.input, local.output);
    }
}";

/// The findings of a rank: the other members of its group and the ranks that stand across; its group's number, its
/// place there, and whether all groups are of one size.
type Found = (Vec<u32>, Vec<u32>, u64, u64, bool);

fn ask(groups: &str, topology: Option<&str>, nranks: u32) -> Result<Vec<Found>, String> {
    let mut algorithm = algorithms("ask.coll", ASK).remove(0);
    if let Some(topology) = topology {
        algorithm.place_on(std::sync::Arc::new(topology.parse().expect("a topology")));
    }
    algorithm.set_text("groups", groups)?;
    let schedule = algorithm.schedule(nranks).map_err(|found| found[0].title.clone())?;
    let of_rank = |rank: usize| {
        let stream = &schedule.streams[rank];
        let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
        let posts = |kind| {
            let all = ops.iter().filter(|op| op.kind == OpKind::Post);
            let channels = all.map(|op| schedule.channel(op));
            channels.filter(|c| c.kind == kind).map(|c| c.to.0).collect::<Vec<_>>()
        };
        let moves: Vec<_> = ops.iter().filter(|op| op.kind == OpKind::Move).collect();
        let slot = |i: usize| u64::from(schedule.region(schedule.dsts(moves[i])[0]).slot);
        let (mine, across) = (posts(SignalKind::Ack), posts(SignalKind::Data));
        (mine, across, slot(0), slot(1), moves.len() == 3)
    };
    Ok((0..nranks as usize).map(of_rank).collect())
}

/// Returns the groups, assembled from the findings of their members.
fn members(groups: &str, topology: Option<&str>, nranks: u32) -> Vec<Vec<u32>> {
    let found = ask(groups, topology, nranks).unwrap_or_else(|why| panic!("{groups}: {why}"));
    let count = found.iter().map(|f| f.2 + 1).max().unwrap_or(0);
    let mut all = vec![Vec::new(); count as usize];
    for (rank, (mine, _, index, position, _)) in (0..).zip(&found) {
        let mut whole = mine.clone();
        whole.insert(*position as usize, rank);
        let group: &mut Vec<u32> = &mut all[*index as usize];
        if group.is_empty() {
            *group = whole;
        } else {
            assert_eq!(*group, whole, "{groups}: rank {rank} sees its group as the others do");
        }
    }
    for (rank, (_, across, _, position, even)) in (0..).zip(&found) {
        let there = all.iter().filter_map(|group| group.get(*position as usize));
        let others: Vec<u32> = there.copied().filter(|r| *r != rank).collect();
        assert_eq!(*across, others, "{groups}: across from rank {rank}");
        assert_eq!(*even, all.iter().all(|group| group.len() == all[0].len()), "{groups}");
    }
    all
}

#[test]
fn groups_are_made_of_sizes_and_colors() {
    assert_eq!(members("of(2)", None, 5), [vec![0, 1], vec![2, 3], vec![4]]);
    assert_eq!(members("of(9)", None, 3), [[0, 1, 2]]);
    assert_eq!(members("of(9223372036854775807)", None, 2), [[0, 1]]);
    assert_eq!(members("sizes(1, 3)", None, 4), [vec![0], vec![1, 2, 3]]);
    assert_eq!(members("colors(7, 0, 7, 3, 0)", None, 5), [vec![1, 4], vec![3], vec![0, 2]]);
}

#[test]
fn balanced_groups_are_nearly_as_many_as_they_are_large() {
    // By hand: the smallest divisor that is at least the square root.
    for (n, size) in
        [(1, 1), (2, 2), (4, 2), (6, 3), (7, 7), (8, 4), (9, 3), (12, 4), (16, 4), (30, 6)]
    {
        let found = members("balanced", None, n);
        assert!(found.iter().all(|group| group.len() == size), "{found:?}");
        assert_eq!(found.concat(), (0..n).collect::<Vec<_>>());
        assert_eq!(found, members("balanced()", None, n));
    }
}

/// Islands where there are several, and else groups of one size.
#[test]
fn natural_groups_are_those_of_the_topology() {
    for (topology, n, groups) in [
        (None, 8, "balanced"),
        (Some("full_mesh(8)"), 8, "balanced"),
        (Some("islands(2, 3)"), 6, "islands(topology)"),
        (Some("islands(2, 3)"), 4, "islands(topology)"),
        (Some("groups([5, 3])"), 8, "islands(topology)"),
        (Some(r#"machine("dgx-1", 2)"#), 16, "islands(topology)"),
    ] {
        for natural in ["natural", "natural()"] {
            assert_eq!(members(natural, topology, n), members(groups, topology, n), "{topology:?}");
        }
    }
}

#[test]
fn islands_end_where_the_network_begins() {
    let halves: &[Vec<u32>] = &[vec![0, 1, 2], vec![3, 4, 5]];
    for (topology, islands, rails) in [
        ("islands(2, 3)", halves, vec![vec![0, 3], vec![1, 4], vec![2, 5]]),
        ("groups([3, 3])", halves, vec![vec![0, 3], vec![1, 4], vec![2, 5]]),
        ("spine_leaf(2, 3, 2)", halves, vec![vec![0, 3], vec![1, 4], vec![2, 5]]),
        (
            "groups([4, 1, 1])",
            &[vec![0, 1, 2, 3], vec![4], vec![5]],
            vec![vec![0, 4, 5], vec![1], vec![2], vec![3]],
        ),
        // Of eight ranks the first six take part.
        (
            "islands(2, 4)",
            &[vec![0, 1, 2, 3], vec![4, 5]],
            vec![vec![0, 4], vec![1, 5], vec![2], vec![3]],
        ),
        ("full_mesh(6)", &[(0..6).collect()], (0..6).map(|r| vec![r]).collect()),
        ("ring(6)", &[(0..6).collect()], (0..6).map(|r| vec![r]).collect()),
        ("crossbar(6)", &[(0..6).collect()], (0..6).map(|r| vec![r]).collect()),
    ] {
        assert_eq!(members("islands(topology)", Some(topology), 6), islands, "{topology}");
        assert_eq!(members("rails(topology)", Some(topology), 6), rails, "{topology}");
        assert_eq!(members(&format!("islands({topology})"), None, 6), islands, "{topology}");
    }
}

#[test]
fn what_makes_no_groups_says_why() {
    for (groups, why) in [
        ("of(0)", "groups of 0 ranks"),
        ("sizes(2, 1)", "the groups hold 3 ranks together, and there are 4"),
        ("sizes(9223372036854775807, 9223372036854775807)", "9223372036854775807 ranks together"),
        ("sizes(5, -1)", "a group of -1 ranks"),
        ("sizes()", "the groups hold 0 ranks together"),
        ("colors(0, 0, 0)", "3 ranks have a color, and there are 4"),
        ("colors(0, 0, -1, 0)", "the color of rank 2 is -1"),
        ("islands(ring(3))", "the run has 4"),
        ("of(2, 2)", "`of(4)`"),
        ("halves", "`of(4)`"),
        ("balanced(2)", "`of(4)`"),
        ("islands(topology)", "none was given"),
    ] {
        let refused = ask(groups, None, 4).expect_err(groups);
        assert!(refused.contains(why), "{groups}: {refused}");
    }
}
