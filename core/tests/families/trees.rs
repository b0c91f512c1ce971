//! Several weighted trees: the answers to their questions, and the share of the data that each tree carries.

use roundelay_core::layout::Algorithm as _;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::Schedule;

use super::pulls::{Pull, algorithm, proved, pulls, schedule};

const TREES: &str = include_str!("../../../stdlib/library/trees.coll");

/// Trees of four ranks: of root 0 with weights 3 and 2, of root 1 with weight 1.
const THREE: &str = "-1,0,0,1*3;1,-1,1,0;-1,3,0,0*2";

/// A program whose `require` statements compare the answers of trees with the right answers.
const ASKED: &str = "
algorithm Asked(trees: Trees) -> AllReduce {
    let weights = trees.weights;
    require len(trees) == 3 && len(weights) == 3, \"three trees\";
    require weights[0] == 3 && weights[1] == 1 && weights[2] == 2, \"in their order\";
    require trees[0].root.rank == 0 && trees[1].root.rank == 1 && trees[2].root.rank == 0, \"roots\";
    let mine = trees.weights_of(0);
    require len(mine) == 2 && mine[0] == 3 && mine[1] == 2, \"the weights of the trees of rank 0\";
    require len(trees.weights_of(1)) == 1 && len(trees.weights_of(2)) == 0, \"of other ranks\";
    require trees.position_of(0) == 0 && trees.position_of(1) == 0, \"the first of their roots\";
    require trees.position_of(2) == 1, \"the second of rank 0\";
    require trees[1].level == [1, 0, 1, 2][rank] && trees[1].depth == 2, \"a tree as all trees\";
    copy(local.input, local.output);
}

algorithm Inside(trees: Trees) -> AllReduce {
    within [2, 0] {
        let own = Trees::parents([-1, 0, 1, -1], [1, 4]);
        require own[0].root.rank == 0 && own[1].root == local || rank == 0, \"numbers of the group\";
        require own.weights_of(1)[0] == 4, \"of the second of the group\";
        TreesAllReduce(trees: own, slices: 1) on (input, output);
    }
    if rank % 2 == 1 {
        copy(local.input, local.output);
    }
    within [2, 0] {
        require len(trees.weights_of(0)) == 0 && len(trees.weights_of(1)) == 2, \"rank 0 is the second\";
    }
}

algorithm TurnedBack(all: Trees = Trees::turned([-1, 0, 0, 1], [3])) -> AllReduce {
    require len(all) == 4, \"a tree of each root\";
    for t in 0..4 {
        require all[t].root.rank == t && all.position_of(t) == 0, \"in the order of the roots\";
        require all.weights_of(t)[0] == 3, \"of one weight\";
        let place = (rank - t) % 4;
        if place == 3 {
            require all[t].parent.rank == (t + 1) % 4, \"the parent of the last is the second\";
        } else if place > 0 {
            require all[t].parent.rank == t, \"the others are below the root\";
        }
    }
    copy(local.input, local.output);
}

algorithm EvenTrees() -> AllReduce {
    let even = Trees::even(Trees::parents([-1, 0, 0, 1, 1, -1, 1, 0], [2, 3]));
    require len(even) == 5, \"a tree for each unit of weight\";
    require len(even.weights_of(0)) == 2 && len(even.weights_of(1)) == 3, \"of each root\";
    require even.weights[0] == 1 && even.weights[4] == 1, \"of weight 1\";
    require even[1].root.rank == 0 && even[2].root.rank == 1, \"in their order\";
    let turned = Trees::even(Trees::turned([-1, 0, 0, 1], [2]));
    require len(turned) == 8 && turned[7].root.rank == 3, \"twice the tree of each root\";
    copy(local.input, local.output);
}

algorithm Beyond(t: int, trees: Trees = Trees::star()) -> AllReduce {
    if t < 9 {
        require trees[t].depth == 1, \"a star\";
    } else {
        require trees.position_of(t) == 0, \"the first\";
    }
}";

#[test]
fn trees_answer_for_all_ranks_and_for_groups() {
    for (name, set) in
        [("Asked", &[("trees", THREE)] as &[_]), ("TurnedBack", &[]), ("EvenTrees", &[])]
    {
        schedule(&algorithm(ASKED, name, set), 4);
    }
    let inside = algorithm(ASKED, "Inside", &[("trees", THREE)]);
    let all = pulls(&schedule(&inside, 4));
    let from = |rank: usize| all[rank].iter().flatten().map(|pull| pull.from).collect::<Vec<_>>();
    // Rank 2 is the root of the first tree, and rank 0 that of the second.
    assert_eq!((from(2), from(0)), (vec![0, 0], vec![2, 2]));
    let data = |rank: usize| all[rank].iter().map(|of_tree| of_tree[0].data[0]).collect::<Vec<_>>();
    let at = |num| Rat::new(num, 5).expect("a small fraction");
    assert_eq!(data(2), [[at(0), at(1)], [at(1), at(5)]]);
    for t in ["4", "-1", "9", "10"] {
        let refused = algorithm(ASKED, "Beyond", &[("t", t)]).schedule(4).expect_err("a refusal");
        assert!(refused[0].title.contains("index"), "{}", refused[0].title);
    }
}

/// Returns the units of data that go along each tree: the pulls of all ranks on its stream.
fn carried(schedule: &Schedule) -> Vec<u64> {
    const GRAIN: u64 = 7 * 120;
    let all = pulls(schedule);
    let length = |[lo, hi]: &[Rat; 2]| {
        let grains = |at: &Rat| at.num() * GRAIN / at.den();
        grains(hi) - grains(lo)
    };
    let of_pull = |pull: &Pull| pull.data.iter().map(length).sum::<u64>();
    let of_tree = |t: usize| all.iter().flat_map(|streams| &streams[t]).map(of_pull).sum();
    let carried: Vec<u64> = (0..all[0].len()).map(of_tree).collect();
    let unit = carried.iter().copied().fold(0, gcd);
    carried.iter().map(|grains| grains / unit).collect()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[test]
fn each_tree_carries_data_by_its_weight() {
    let rooted = "-1,0,0,1*3;-1,3,0,0*1";
    let turned = "turned(-1,0,0,1*3;-1,3,0,0*1)";
    for slices in ["1", "7"] {
        for (name, trees, weights) in [
            ("TreesAllReduce", THREE, [3, 1, 2].as_slice()),
            ("TreesBroadcast", rooted, &[3, 1]),
            ("TreesReduce", rooted, &[3, 1]),
            ("TreesAllGather", turned, &[3, 1, 3, 1, 3, 1, 3, 1]),
            ("TreesReduceScatter", turned, &[3, 1, 3, 1, 3, 1, 3, 1]),
        ] {
            let set = [("trees", trees), ("slices", slices)];
            let algorithm = algorithm(TREES, name, &set);
            assert!(proved(&algorithm, 4).in_place, "{name}");
            assert_eq!(carried(&schedule(&algorithm, 4)), weights, "{name}, {slices} slices");
        }
    }
}

#[test]
fn every_default_is_right_for_every_number_of_ranks_and_root() {
    for n in 1..=13 {
        let steps = |name, set: &[_]| proved(&algorithm(TREES, name, set), n).steps;
        let deep = n.ilog2();
        assert_eq!(steps("TreesAllGather", &[]), deep);
        assert_eq!(steps("TreesReduceScatter", &[]), deep);
        assert_eq!(steps("TreesAllReduce", &[]), 2 * deep);
        for root in 0..n {
            let root = root.to_string();
            for name in ["TreesBroadcast", "TreesReduce"] {
                let set = [("root", &*root), ("slices", "2")];
                assert!(proved(&algorithm(TREES, name, &set), n).in_place);
            }
        }
    }
    for trees in ["binary", "binomial()", "chain", "star", "turned(-1,0,0,1,1)"] {
        for name in ["TreesAllGather", "TreesReduceScatter", "TreesAllReduce"] {
            assert!(proved(&algorithm(TREES, name, &[("trees", trees)]), 5).in_place);
        }
    }
}

/// Two trees of one form are different trees.
#[test]
fn a_double_tree_has_two_trees() {
    let double = algorithm(TREES, "TreesBroadcast", &[("trees", "double_binary(0)")]);
    let differs = |streams: &Vec<Vec<Pull>>| {
        let from = |t: usize| streams[t].iter().map(|pull| pull.from).collect::<Vec<_>>();
        from(0) != from(1)
    };
    assert!(pulls(&schedule(&double, 8)).iter().any(differs));
}

#[test]
fn wrong_lists_are_refused() {
    for (trees, why) in [
        ("Trees::parents([])", "there are no trees at all"),
        ("Trees::parents([-1, 0, 0])", "the list has 3 parents, which is no multiple of the 4"),
        ("Trees::parents([-1, 0, 0, 1], [1, 2])", "1 trees have 1 weights, and the list has 2"),
        ("Trees::even(Trees::turned([-1, 0, 0, 1], [0]))", "the weight of tree 0 is 0"),
        (
            "Trees::even(Trees::parents([-1, 0, 0, 1], [16777217]))",
            "the weights are 16777217 together, more than 16777216",
        ),
    ] {
        let text = format!(
            "algorithm Wrong() -> AllReduce {{
    let trees = {trees};
    require len(trees) > 0, \"they are used\";
    copy(local.input, local.output);
}}"
        );
        let refused = algorithm(&text, "Wrong", &[]).schedule(4).expect_err("a refusal");
        assert!(refused[0].title.contains(why), "{trees}: {}", refused[0].title);
    }
}

#[test]
fn what_are_no_trees_is_refused() {
    for (name, trees, why) in [
        ("TreesAllReduce", "-1,0,0,1;1,-1,1", "tree 1: the tree names the parents of 3 ranks"),
        ("TreesAllReduce", "-1,0,0,1;-1,0,3,2", "tree 1: the tree does not lead from its root"),
        ("TreesAllReduce", "-1,0,0,1;1,-1,1,0*0", "the weight of tree 1 is 0"),
        ("TreesAllGather", "turned(-1,0,0,1*-3)", "the weight of tree 0 is -3"),
        ("TreesAllReduce", "double_binary(4)", "the root of the tree is rank 4"),
        ("TreesBroadcast", "-1,0,0,1;1,-1,1,0", "the tree has another root"),
        ("TreesReduce", "binomial", "the tree has another root"),
    ] {
        let refused =
            algorithm(TREES, name, &[("trees", trees)]).schedule(4).expect_err("a refusal");
        assert!(refused[0].title.contains(why), "{}", refused[0].title);
    }
    let many = algorithm(TREES, "TreesAllReduce", &[]).schedule(1 << 13).expect_err("a limit");
    assert!(many[0].title.contains("more than 16777216"), "{}", many[0].title);
    for text in ["heap", "binomial(0)", "-1,0*x", "double_binary(0, 1)", "turned(binary)"] {
        let mut algorithm = algorithm(TREES, "TreesAllReduce", &[]);
        let refused = algorithm.set_text("trees", text).expect_err("no trees");
        assert!(refused.contains("`turned(-1,0,0,1)`"), "{refused}");
    }
    // Rank 2 is the root of no tree, and rank 1 of less than rank 0.
    let algorithm = algorithm(TREES, "TreesAllGather", &[("trees", "-1,0,0;1,-1,1")]);
    let found = roundelay_core::verify::verify(&schedule(&algorithm, 3)).expect_err("no proof");
    assert!(found[0].title.contains("is never written"), "{}", found[0].title);
}
