//! Trees: their edges and the order of children are read from the pulls of the ranks and the acks that allow them.

use std::collections::BTreeSet;

use roundelay_core::collective::Collective;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{OpKind, Schedule, SignalKind};
use roundelay_simulate::cost;

use super::pulls::{Pull, algorithm, proved, pulls, schedule, text};

const TREE: &str = include_str!("../../../stdlib/library/tree.coll");

/// A tree as a schedule walks it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Walked {
    up: Vec<Option<i64>>,
    children: Vec<Vec<i64>>,
}

impl Walked {
    fn root(&self) -> usize {
        let mut roots = (0..self.up.len()).filter(|r| self.up[*r].is_none());
        let root = roots.next().expect("a rank without a parent");
        assert_eq!(roots.next(), None, "one root");
        root
    }

    /// Steps from the root, rank by rank: every rank is below it, and parents and children know each other.
    fn levels(&self) -> Vec<usize> {
        let mut levels = vec![usize::MAX; self.up.len()];
        let mut open = vec![(self.root(), 0)];
        while let Some((rank, level)) = open.pop() {
            assert_eq!(levels[rank], usize::MAX, "rank {rank} has two parents");
            levels[rank] = level;
            for &child in &self.children[rank] {
                assert_eq!(self.up[child as usize], Some(rank as i64), "rank {child}");
                open.push((child as usize, level + 1));
            }
        }
        assert!(levels.iter().all(|level| *level != usize::MAX), "{self:?}");
        levels
    }

    fn depth(&self) -> usize {
        self.levels().into_iter().max().unwrap_or(0)
    }

    fn inner(&self) -> BTreeSet<usize> {
        (0..self.up.len()).filter(|r| !self.children[*r].is_empty()).collect()
    }

    /// Returns the step at which the last rank has the data if a rank sends to one child after another, in order.
    fn sends_in_a_row(&self) -> usize {
        let mut last = 0;
        let mut open = vec![(self.root(), 0)];
        while let Some((rank, at)) = open.pop() {
            last = last.max(at);
            open.extend((1..).zip(&self.children[rank]).map(|(i, c)| (*c as usize, at + i)));
        }
        last
    }
}

/// Returns the tree of each stream by its reductions: children, the last first, each with the whole of its slice.
fn reduced(schedule: &Schedule) -> Vec<Walked> {
    let n = schedule.nranks as usize;
    let all = pulls(schedule);
    let of_stream = |stream: usize| {
        let mut tree = Walked { up: vec![None; n], children: vec![Vec::new(); n] };
        for (rank, streams) in all.iter().enumerate() {
            let pulled = streams[stream].iter().filter(|pull| pull.reduces);
            let mut children: Vec<i64> = pulled.map(|pull| pull.from).collect();
            children.reverse();
            for &child in &children {
                assert_eq!(tree.up[child as usize].replace(rank as i64), None);
            }
            tree.children[rank] = children;
        }
        tree
    };
    (0..all[0].len()).map(of_stream).collect()
}

/// Returns the tree of each stream by its copies: a parent each, and children in the order of their admission for the
/// first slice.
fn copied(schedule: &Schedule) -> Vec<Walked> {
    let n = schedule.nranks as usize;
    let all = pulls(schedule);
    let streams = all[0].len();
    let mut trees = vec![Walked { up: vec![None; n], children: vec![Vec::new(); n] }; streams];
    for (rank, of_rank) in all.iter().enumerate() {
        for (tree, pulled) in trees.iter_mut().zip(of_rank) {
            tree.up[rank] = pulled.iter().find(|pull| !pull.reduces).map(|pull| pull.from);
        }
    }
    for stream in &schedule.streams {
        let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
        let tree = &mut trees[stream.index as usize];
        for op in ops.iter().filter(|op| op.kind == OpKind::Post) {
            let channel = schedule.channel(op);
            let to = i64::from(channel.to.0);
            let rank = stream.rank.index();
            // Up goes the word that a sum is ready.
            let down = tree.up[rank] != Some(to);
            if channel.kind == SignalKind::Ack && down && !tree.children[rank].contains(&to) {
                tree.children[rank].push(to);
            }
        }
    }
    trees
}

fn set<'a>(tree: &'a str, root: &'a str, slices: &'a str) -> [(&'a str, &'a str); 3] {
    [("tree", tree), ("root", root), ("slices", slices)]
}

fn ceil_log2(n: usize) -> usize {
    n.next_power_of_two().ilog2() as usize
}

/// The parents of each rank: the given function of its place behind the root.
fn parents(n: i64, root: i64, up: impl Fn(i64) -> i64) -> Vec<Option<i64>> {
    let place = |rank: i64| (rank - root).rem_euclid(n);
    (0..n).map(|r| (place(r) > 0).then(|| (up(place(r)) + root).rem_euclid(n))).collect()
}

#[test]
fn regular_trees_are_those_of_the_literature() {
    for n in 1..=64_i64 {
        for root in [0, n / 2, n - 1] {
            let kinds: [(&str, &dyn Fn(i64) -> i64); 4] = [
                ("binary", &|q| (q - 1) / 2),
                ("binomial", &|q| q - (q & -q)),
                ("chain", &|q| q - 1),
                ("star", &|_| 0),
            ];
            for (kind, up) in kinds {
                let (tree, root_text) = (format!("{kind}({root})"), root.to_string());
                let up = parents(n, root, up);
                let reduce = algorithm(TREE, "TreeReduce", &set(&tree, &root_text, "1"));
                let reduce = reduced(&schedule(&reduce, n as u32)).remove(0);
                assert_eq!(reduce.up, up, "{tree} of {n}");
                let cast = algorithm(TREE, "TreeBroadcast", &set(&tree, &root_text, "3"));
                let cast = copied(&schedule(&cast, n as u32)).remove(0);
                assert_eq!(
                    cast, reduce,
                    "{tree} of {n}: the same tree both ways, in the same order"
                );
                let both = algorithm(TREE, "TreeAllReduce", &[("tree", &tree), ("slices", "1")]);
                let both = schedule(&both, n as u32);
                assert_eq!((reduced(&both), copied(&both)), (vec![cast.clone()], vec![cast]));
            }
        }
    }
}

#[test]
fn a_binomial_tree_serves_larger_subtrees_first() {
    let reduce = algorithm(TREE, "TreeBroadcast", &[("root", "1")]);
    let tree = copied(&schedule(&reduce, 12)).remove(0);
    // From the root's place on: 8, 4, 2, 1.
    assert_eq!(tree.children[1], [9, 5, 3, 2]);
    assert_eq!(tree.children[9], [11, 10]);
    for n in 2..=128_u32 {
        for (name, collective) in
            [("TreeReduce", Collective::Reduce), ("TreeBroadcast", Collective::Broadcast)]
        {
            let form = cost::form_of("binomial tree", collective, n).expect("a form");
            let schedule = schedule(&algorithm(TREE, name, &[]), n);
            let tree = match collective {
                Collective::Reduce => reduced(&schedule).remove(0),
                _ => copied(&schedule).remove(0),
            };
            let messages = form.messages.value(n).expect("a small number");
            assert_eq!(Rat::whole(tree.sends_in_a_row() as u64), messages, "{name} at {n}");
            let volume = form.volume.value(n).expect("a small number");
            assert!((schedule.busiest_port() - volume.num() as f64).abs() < 1e-9, "{name} at {n}");
            if collective == Collective::Reduce {
                // A rank takes in all its children at once: there are as many steps as the tree is deep.
                let steps = proved(&algorithm(TREE, name, &[]), n).steps;
                assert_eq!(steps as usize, tree.depth(), "{name} at {n}");
            }
        }
    }
}

#[test]
fn a_binomial_tree_up_and_down_takes_what_its_form_says() {
    let form = cost::form_of("binomial tree", Collective::AllReduce, 8).expect("a form");
    let all = algorithm(TREE, "TreeAllReduce", &[("tree", "binomial(0)"), ("slices", "1")]);
    for n in 2..=128 {
        let schedule = schedule(&all, n);
        let sends = reduced(&schedule)[0].sends_in_a_row() + copied(&schedule)[0].sends_in_a_row();
        assert_eq!(Some(Rat::whole(sends as u64)), form.messages.value(n), "at {n}");
        assert_eq!(form.messages.value(n), form.volume.value(n), "each the whole buffer");
    }
}

/// (up, children) of each rank of both trees, as the literature has them.
type Vectors = &'static [[(i64, &'static [i64]); 2]];

const FOUR: Vectors = &[
    [(-1, &[2]), (1, &[])],
    [(2, &[]), (3, &[2, 0])],
    [(0, &[1, 3]), (1, &[])],
    [(2, &[]), (-1, &[1])],
];
const FIVE: Vectors = &[
    [(-1, &[4]), (1, &[3])],
    [(2, &[]), (-1, &[0])],
    [(4, &[1, 3]), (3, &[])],
    [(2, &[]), (0, &[2, 4])],
    [(0, &[2]), (3, &[])],
];
const SIX: Vectors = &[
    [(-1, &[4]), (1, &[])],
    [(2, &[]), (5, &[3, 0])],
    [(4, &[1, 3]), (3, &[])],
    [(2, &[]), (1, &[4, 2])],
    [(0, &[2, 5]), (3, &[])],
    [(4, &[]), (-1, &[1])],
];
const EIGHT: Vectors = &[
    [(-1, &[4]), (1, &[])],
    [(2, &[]), (3, &[2, 0])],
    [(4, &[1, 3]), (1, &[])],
    [(2, &[]), (7, &[5, 1])],
    [(0, &[2, 6]), (5, &[])],
    [(6, &[]), (3, &[6, 4])],
    [(4, &[5, 7]), (5, &[])],
    [(6, &[]), (-1, &[3])],
];

#[test]
fn the_double_binary_tree_is_that_of_nccl() {
    let both = algorithm(TREE, "DoubleBinaryTreeAllReduce", &[("slices", "1")]);
    for vectors in [FOUR, FIVE, SIX, EIGHT] {
        let schedule = schedule(&both, vectors.len() as u32);
        for trees in [reduced(&schedule), copied(&schedule)] {
            for (which, tree) in trees.iter().enumerate() {
                for (rank, vector) in vectors.iter().enumerate() {
                    let (up, children) = vector[which];
                    let found = (tree.up[rank].unwrap_or(-1), &tree.children[rank][..]);
                    assert_eq!(
                        found,
                        (up, children),
                        "tree {which}, rank {rank} of {}",
                        vectors.len()
                    );
                }
            }
        }
        // One tree alone, by its name.
        for (which, tree) in reduced(&schedule).into_iter().enumerate() {
            let name = format!("double_binary({which})");
            let alone = algorithm(TREE, "TreeAllReduce", &[("tree", &name), ("slices", "1")]);
            assert_eq!(reduced(&super::pulls::schedule(&alone, vectors.len() as u32)), [tree]);
        }
    }
}

#[test]
fn the_leaves_of_one_double_binary_tree_are_the_inner_ranks_of_the_other() {
    let all = algorithm(TREE, "DoubleBinaryTreeAllReduce", &[("slices", "1")]);
    for n in 2..=69_usize {
        let schedule = schedule(&all, n as u32);
        let trees = copied(&schedule);
        assert_eq!(trees, reduced(&schedule));
        let [first, second] = &trees[..] else { panic!("two trees") };
        assert_eq!([first.depth(), second.depth()], [ceil_log2(n); 2], "at {n}");
        let both: Vec<_> = first.inner().intersection(&second.inner()).copied().collect();
        assert_eq!(both, if n % 2 == 0 || n < 3 { vec![] } else { vec![0] }, "at {n}");
        // One tree alone cannot reach this: no port carries more than twice the buffer.
        assert!(schedule.busiest_port() <= 2.0 + 1e-9, "{} at {n}", schedule.busiest_port());
    }
}

#[test]
fn both_trees_lead_from_any_root() {
    for n in 2..=40_usize {
        for root in [0, 1, n / 2, n - 1] {
            let root_text = root.to_string();
            let set = [("root", &*root_text), ("slices", "1")];
            let cast = schedule(&algorithm(TREE, "DoubleBinaryTreeBroadcast", &set), n as u32);
            let reduce = schedule(&algorithm(TREE, "DoubleBinaryTreeReduce", &set), n as u32);
            let trees = copied(&cast);
            assert_eq!(trees, reduced(&reduce), "root {root} of {n}");
            let [first, second] = &trees[..] else { panic!("two trees") };
            assert_eq!([first.root(), second.root()], [root; 2]);
            assert_eq!(first.depth(), ceil_log2(n), "root {root} of {n}");
            assert!(second.depth() <= ceil_log2(n) + 1, "root {root} of {n}");
            let both: Vec<_> = first.inner().intersection(&second.inner()).copied().collect();
            assert_eq!(both, [root], "of {n}");
            // The root sends one half down each tree, or a half to two children where n is odd.
            let most = if n % 2 == 0 { 1.0 } else { 1.5 };
            assert!(cast.busiest_port() <= most + 1e-9, "{} at {n}", cast.busiest_port());
        }
    }
}

#[test]
fn slices_follow_each_other() {
    // A slice waits for no other, so slices cost no steps: the number of steps is the depth of the tree.
    for n in [2_u32, 3, 6, 7, 8, 15, 31, 33] {
        for slices in ["1", "2", "8"] {
            let chain = set("chain(0)", "0", slices);
            let steps = |name, set: &[(&str, &str)]| proved(&algorithm(TREE, name, set), n).steps;
            assert_eq!(steps("TreeBroadcast", &chain), n - 1);
            assert_eq!(steps("TreeReduce", &chain), n - 1);
            let heap = [("tree", "binary(0)"), ("slices", slices)];
            let deep = n.ilog2();
            assert_eq!(steps("TreeBroadcast", &heap), deep);
            assert_eq!(steps("TreeReduce", &heap), deep);
            assert_eq!(steps("TreeAllReduce", &heap), 2 * deep);
            let deep = ceil_log2(n as usize) as u32;
            let slices = [("slices", slices)];
            assert!(steps("DoubleBinaryTreeAllReduce", &slices) <= 2 * (deep + 1), "at {n}");
            assert!(steps("DoubleBinaryTreeReduce", &slices) <= deep + 1, "at {n}");
            assert!(steps("DoubleBinaryTreeBroadcast", &slices) <= deep + 1, "at {n}");
        }
    }
    // Each slice once, in order.
    let cast = schedule(&algorithm(TREE, "TreeBroadcast", &set("binary(2)", "2", "5")), 6);
    for (rank, streams) in (0..).zip(pulls(&cast)) {
        let five = Rat::whole(5);
        let up = [3, 4, -1, 2, 2, 3][rank];
        let pull = |s| Pull::piece(up, s, five, false);
        let expected: Vec<_> = if up < 0 { vec![] } else { (0..5).map(pull).collect() };
        assert_eq!(streams, [expected], "rank {rank}");
    }
}

#[test]
fn every_root_and_every_count_is_proved() {
    let each = [
        "TreeAllReduce",
        "TreeReduce",
        "TreeBroadcast",
        "DoubleBinaryTreeAllReduce",
        "DoubleBinaryTreeReduce",
        "DoubleBinaryTreeBroadcast",
    ];
    for name in each {
        for n in (1..=33).chain([48, 64, 100, 128]) {
            assert!(proved(&algorithm(TREE, name, &[]), n).in_place, "{name} at {n}");
        }
    }
    for n in 1..=9_u32 {
        for root in (0..n).map(|r| r.to_string()) {
            for slices in ["1", "3"] {
                let set = [("root", &*root), ("slices", slices)];
                for name in each.into_iter().filter(|name| !name.ends_with("AllReduce")) {
                    assert!(proved(&algorithm(TREE, name, &set), n).in_place, "{name} at {n}");
                }
            }
        }
    }
}

#[test]
fn any_tree_is_right() {
    // Park and Miller's generator: any trees will do, if they repeat each time.
    let mut seed = 48_271_u64;
    let mut draw = |below: usize| {
        seed = seed * 48_271 % 0x7fff_ffff;
        seed as usize % below
    };
    for trial in 0..60 {
        let n = 1 + draw(24);
        let mut order: Vec<usize> = (0..n).collect();
        (1..n).for_each(|i| order.swap(i, draw(i + 1)));
        let mut up = vec![-1; n];
        for i in 1..n {
            up[order[i]] = order[draw(i)] as i64;
        }
        let (tree, root) = (text(&up), order[0].to_string());
        let slices = ["1", "2", "5"][trial % 3];
        for name in ["TreeReduce", "TreeBroadcast"] {
            let algorithm = algorithm(TREE, name, &set(&tree, &root, slices));
            assert!(proved(&algorithm, n as u32).in_place, "{tree}");
            let schedule = schedule(&algorithm, n as u32);
            if slices == "1" {
                let walked =
                    if name == "TreeReduce" { reduced(&schedule) } else { copied(&schedule) };
                let found: Vec<_> = walked[0].up.iter().map(|up| up.unwrap_or(-1)).collect();
                assert_eq!(found, up);
            }
        }
        let all = algorithm(TREE, "TreeAllReduce", &[("tree", &tree), ("slices", slices)]);
        assert!(proved(&all, n as u32).in_place, "{tree}");
    }
}

/// Trees of groups of any sizes: up each to its first rank, over those by a heap, and down again.
const GROUPED: &str = "
algorithm Grouped(groups: Groups, last: Tree = Tree::chain(nranks - 1)) -> AllReduce {
    within groups.mine {
        TreeReduce(slices: 2) on (input, output);
    }
    if groups.position == 0 {
        within groups.across {
            TreeAllReduce() on (output);
        }
    }
    within groups.mine {
        let tree = Tree::double_binary(1, 0);
        require tree.root.rank == 0 && tree.root == peer(0), \"the first of the group\";
        TreeBroadcast(tree) on (output);
    }
}

algorithm Beyond(groups: Groups, tree: Tree = Tree::star(0)) -> AllReduce {
    copy(local.input, local.output);
    within groups.mine {
        for child in tree.children {
            peer(child).TxAck();
        }
    }
}";

#[test]
fn a_tree_of_a_group_is_one_of_its_ranks() {
    let all = [
        ("of(3)", 7),
        ("of(4)", 8),
        ("sizes(1, 5, 2)", 8),
        ("colors(2, 0, 1, 0, 2, 2, 0, 1, 0)", 9),
        ("balanced", 12),
        ("of(1)", 5),
    ];
    for (groups, n) in all {
        let proof = proved(&algorithm(GROUPED, "Grouped", &[("groups", groups)]), n);
        assert!(proof.in_place, "{groups}");
    }
    let grouped = algorithm(GROUPED, "Grouped", &[("groups", "colors(1, 0, 0, 1, 1, 0)")]);
    let found = pulls(&schedule(&grouped, 6));
    let from = |rank: usize| found[rank][0].iter().map(|pull| pull.from).collect::<Vec<_>>();
    // Groups 1 2 5 and 0 3 4. Rank 1, first of the first and root of all, pulls two slices of 2 and of 5, and then the
    // eight slices of 0.
    assert_eq!(from(1), [[2, 5, 2, 5].as_slice(), &[0; 8]].concat());
    assert_eq!(from(0), [[3, 4, 3, 4].as_slice(), &[1; 8]].concat());
    assert_eq!((from(2), from(5)), (vec![1], vec![1]));
    assert_eq!((from(3), from(4)), (vec![0], vec![0]));
    // A tree of all ranks has children that have no number here.
    let beyond = algorithm(GROUPED, "Beyond", &[("groups", "of(2)")]);
    let refused = beyond.schedule(4).expect_err("ranks of another group");
    assert!(refused[0].title.contains("rank 2 of all ranks is not in this group"), "{refused:?}");
}

#[test]
fn what_is_no_tree_of_the_root_is_refused() {
    for (name, set, why) in [
        ("TreeAllReduce", ("slices", "0"), "set slices to 1 or more"),
        ("TreeReduce", ("slices", "-1"), "set slices to 1 or more"),
        ("TreeBroadcast", ("slices", "0"), "set slices to 1 or more"),
        ("DoubleBinaryTreeAllReduce", ("slices", "0"), "set slices to 1 or more"),
        ("DoubleBinaryTreeReduce", ("slices", "0"), "set slices to 1 or more"),
        ("DoubleBinaryTreeBroadcast", ("slices", "0"), "set slices to 1 or more"),
        ("TreeReduce", ("tree", "chain(1)"), "the tree has another root"),
        ("TreeBroadcast", ("tree", "1,-1,1,1"), "the tree has another root"),
        ("TreeAllReduce", ("tree", "-1,0,0"), "names the parents of 3 ranks, and there are 4"),
        ("TreeAllReduce", ("tree", "-1,0,3,2"), "whose parents go around in a circle"),
        ("TreeAllReduce", ("tree", "star(4)"), "the root of the tree is rank 4"),
    ] {
        let refused = algorithm(TREE, name, &[set]).schedule(4).expect_err("a refusal");
        assert!(refused[0].title.contains(why), "{}", refused[0].title);
    }
    for (parameter, value) in [("tree", "heap(0)"), ("tree", "binary()"), ("tree", "star(0, 1)")] {
        let mut algorithm = algorithm(TREE, "TreeAllReduce", &[]);
        let refused = algorithm.set_text(parameter, value).expect_err("no tree");
        assert!(refused.contains("`binary(0)`"), "{refused}");
    }
}
