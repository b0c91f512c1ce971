//! Random orders, trees, groups and splits: proved, and run on data.

use proptest::prelude::*;
use proptest::sample::Index;
use roundelay::{Algorithm, Collective, Groups, Ring, Rings, Tree, Trees};
use roundelay_core::check::Frontend;
use roundelay_core::diagnostics::{Code, Diagnostic, Finding};
use roundelay_core::layout::Configured;
use roundelay_core::syntax::Source;
use roundelay_tests::compile;

use super::super::runs::{Kind, Proofs, assert_right};
use super::subjects::{self, Subject};
use super::values::{Told, Values};

/// The arguments of a run besides values.
#[derive(Clone, Copy, Debug)]
struct Point {
    count: u64,
    kind: Index,
    seed: u64,
}

fn point() -> impl Strategy<Value = Point> {
    (0..80_u64, any::<Index>(), any::<u64>()).prop_map(|(count, kind, seed)| Point {
        count,
        kind,
        seed,
    })
}

/// Proves the algorithm at that number of ranks and runs it, out of place and in place.
fn assert_runs(algorithm: &dyn Algorithm, nranks: u32, point: Point) {
    let mut proofs = Proofs::new(algorithm);
    for in_place in [false, true] {
        if algorithm.collective().has_in_place() || !in_place {
            let kind = Kind { in_place, ..*point.kind.get(&Kind::all()) };
            assert_right(&proofs.plan(nranks, point.count, kind), kind, point.seed);
        }
    }
}

/// Runs every algorithm of the library that has this parameter and admits that number of ranks.
fn assert_all_run(param: &str, values: &Values, nranks: u32, point: Point) {
    let all: Vec<Subject> =
        subjects::all().into_iter().filter(|s| s.params.contains(&param)).collect();
    assert!(!all.is_empty(), "no algorithm has a parameter `{param}`");
    for subject in all.into_iter().filter(|s| (s.admits)(nranks)) {
        let _told = Told(values);
        let algorithm = (subject.with)(values);
        // A move through a fifo has room for seven children, and a random tree may have more.
        let full = |all: Vec<Finding>| all[0].title.contains("has room for 7 children");
        if subject.name.starts_with("Nccl") && algorithm.schedule(nranks).is_err_and(full) {
            continue;
        }
        assert_runs(&*algorithm, nranks, point);
    }
}

fn order(n: i64) -> impl Strategy<Value = Vec<i64>> {
    Just((0..n).collect::<Vec<_>>()).prop_shuffle()
}

/// A tree: each rank of an order below any before it, and the first is the root.
fn parents(n: i64) -> impl Strategy<Value = (i64, Vec<i64>)> {
    (order(n), prop::collection::vec(any::<Index>(), n as usize)).prop_map(|(order, above)| {
        let mut parents = vec![-1; order.len()];
        for i in 1..order.len() {
            parents[order[i] as usize] = *above[i].get(&order[..i]);
        }
        (order[0], parents)
    })
}

/// Colors of `many` groups of one size each, ranks in any order; not all numbers are a color.
fn colors(many: i64, size: i64) -> impl Strategy<Value = Vec<i64>> {
    let places = Just((0..many * size).collect::<Vec<_>>()).prop_shuffle();
    places.prop_map(move |places| places.into_iter().map(|place| place % many * 3).collect())
}

/// Algorithms that bring blocks into another order, which only blocks of one length have: pieces of a region of any
/// length do not have one, and the call is refused.
const OF_EQUAL_BLOCKS: [&str; 2] = ["HierarchicalReduceScatter", "HierarchicalAllGather"];

/// Algorithms whose streams share scratch. Called on one piece after another they are refused, because the proof counts
/// the first write to scratch that held another piece as a write to all of it.
const OF_SHARED_SCRATCH: [&str; 2] = ["TreesReduceScatter", "DoubleBinaryTreeReduce"];

/// The algorithms of a collective that run in place too, for text.
fn named(collective: Collective, nranks: u32) -> Vec<&'static str> {
    let plain = Values::plain(nranks);
    let fits = |s: &Subject| {
        let algorithm = (s.with)(&plain);
        algorithm.collective() == collective && !algorithm.out_of_place() && (s.admits)(nranks)
    };
    subjects::all().into_iter().filter(fits).map(|subject| subject.name).collect()
}

/// Returns the calls on the piece i of both buffers: an AllReduce may be two calls.
fn call(collective: Collective, looped: bool, nranks: u32, at: Calls) -> String {
    use Collective::{AllGather, AllReduce, ReduceScatter};
    let pick = |collective, at: Index| {
        let mut all = named(collective, nranks);
        all.retain(|name| !OF_EQUAL_BLOCKS.contains(name));
        all.retain(|name| !looped || !OF_SHARED_SCRATCH.contains(name));
        *at.get(&all)
    };
    match collective {
        AllReduce if at.two => {
            let (scatter, gather) = (pick(ReduceScatter, at.first), pick(AllGather, at.second));
            format!("{scatter}() on (from[i], to[i]); {gather}() on (to[i]);")
        }
        AllReduce => format!("{}() on (from[i], to[i]);", pick(AllReduce, at.first)),
        rooted => format!("{}(root) on (from[i], to[i]);", pick(rooted, at.first)),
    }
}

/// Which algorithms run on a piece.
#[derive(Clone, Copy, Debug)]
struct Calls {
    two: bool,
    first: Index,
    second: Index,
}

fn calls() -> impl Strategy<Value = Calls> {
    let any = (any::<bool>(), any::<Index>(), any::<Index>());
    any.prop_map(|(two, first, second)| Calls { two, first, second })
}

/// A source that cuts both buffers by weight, and runs an algorithm of the library on each piece: `all` is the loop.
/// Where pieces are more than calls, a call runs on several of them.
fn split(
    collective: Collective,
    all: &str,
    weights: &[u64],
    nranks: u32,
    calls: &[Calls],
) -> String {
    let of_piece = |(k, at): (usize, &Calls)| {
        format!(
            "if i % {} == {k} {{ {} }}",
            calls.len(),
            call(collective, all == "for", nranks, *at)
        )
    };
    let body: Vec<String> = calls.iter().enumerate().map(of_piece).collect();
    format!(
        "algorithm Split(root: Rank = 0) -> {collective} {{
            view from = input.split({weights:?});
            view to = output.split({weights:?});
            {all} i in 0..{} {{
                {}
            }}
        }}",
        weights.len(),
        body.join("\n")
    )
}

/// Returns the algorithm of the text, if it is proved at that number of ranks; or the codes of its errors.
fn proved(text: &str, root: i64, nranks: u32) -> Result<Configured, Vec<Code>> {
    let source = Source::from_text("split", text);
    let said = |errors: Vec<Diagnostic>| -> Vec<Code> {
        let reports: Vec<_> = errors.iter().map(|e| e.report(&source)).collect();
        eprintln!("{text}\n{}", reports.join("\n"));
        errors.iter().map(|e| e.code).collect()
    };
    let program = compile(&source, Frontend::File).map_err(said)?;
    let algorithm = program.algorithms.into_iter().next().expect("one algorithm");
    let mut configured = Configured::new(algorithm, &source);
    configured.set_text("root", &root.to_string()).expect("a rank");
    roundelay_core::prove_source(&configured, nranks).map_err(said)?;
    Ok(configured)
}

/// Returns the algorithms that are refused with `code` when `body` calls them as `{scatter}` or `{gather}` of an
/// AllReduce, or as `{reduce}`, with the other half a ring.
fn refused(body: &str, code: Code, collectives: &[Collective]) -> Vec<&'static str> {
    let mut refused = Vec::new();
    for &collective in collectives {
        for name in named(collective, 8) {
            let calls = match collective {
                Collective::ReduceScatter => {
                    format!("{name}() on (from, to); RingAllGather() on (to);")
                }
                Collective::AllGather => {
                    format!("RingReduceScatter() on (from, to); {name}() on (to);")
                }
                _ => format!("{name}() on (from, to);"),
            };
            let outer = if collective.is_rooted() { collective } else { Collective::AllReduce };
            let body = body.replace("CALLS", &calls);
            let text = format!("algorithm Split(root: Rank = 0) -> {outer} {{ {body} }}");
            match proved(&text, 0, 8) {
                Err(codes) if codes[0] == code => refused.push(name),
                Err(codes) => assert!(OF_EQUAL_BLOCKS.contains(&name), "{name}: {codes:?}"),
                Ok(_) => {}
            }
        }
    }
    refused
}

#[test]
fn blocks_of_any_lengths_stay_in_order() {
    use Collective::{AllGather, AllReduce, Broadcast, Reduce, ReduceScatter};
    let thirds = "parallel i in 0..3 {
        view from = input.split(3)[i];
        view to = output.split(3)[i];
        CALLS
    }";
    let all = [AllReduce, ReduceScatter, AllGather, Broadcast, Reduce];
    assert_eq!(refused(thirds, Code::LengthMismatch, &all), OF_EQUAL_BLOCKS);
}

#[test]
fn streams_do_not_share_scratch_that_changes() {
    use Collective::{AllGather, AllReduce, Broadcast, Reduce, ReduceScatter};
    let all = [AllReduce, ReduceScatter, AllGather, Broadcast, Reduce];
    let in_turn = "for i in 0..2 {
        view from = input.split(2)[i];
        view to = output.split(2)[i];
        CALLS
    }";
    assert_eq!(refused(in_turn, Code::Race, &all), OF_SHARED_SCRATCH);
}

/// Its scratch held another piece before.
#[test]
fn a_call_on_nothing_after_a_call_on_something() {
    let text = "algorithm Split(root: Rank = 0) -> Reduce {
        for i in 0..3 {
            TreeReduce() on (input.split([0, 1, 0])[i], output.split([0, 1, 0])[i]);
        }
    }";
    let algorithm = proved(text, 0, 2);
    assert!(algorithm.is_ok(), "{:?}", algorithm.err());
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn rings_in_any_order(
        (nranks, ring, other, root) in (1..=16_i64).prop_flat_map(|n| (Just(n), order(n), order(n), 0..n)),
        (slices, more, loops, pieces, handshake) in (1..6_i64, 1..4_i64, 1..4_i64, 1..9_i64, any::<bool>()),
        point in point(),
    ) {
        let credits = slices + more;
        let fifo = Values { slices, credits, loops, pieces, handshake, ..Values::plain(nranks as u32) };
        let rings = Rings::of([Ring::from(ring.clone()), Ring::from(other)]);
        let values = Values { root, ring: Ring::from(ring), rings, ..fifo };
        assert_all_run("ring", &values, nranks as u32, point);
        assert_all_run("rings", &values, nranks as u32, point);
    }

    #[test]
    fn trees_of_any_shape(
        (nranks, (root, parents)) in (1..=16_i64).prop_flat_map(|n| (Just(n), parents(n))),
        slices in 1..6_i64,
        point in point(),
    ) {
        let values = Values { root, tree: Tree::parents(parents), slices, ..Values::plain(nranks as u32) };
        assert_all_run("tree", &values, nranks as u32, point);
    }

    #[test]
    fn several_trees_of_any_shape(
        (nranks, (root, one), (other_root, other)) in
            (1..=9_i64).prop_flat_map(|n| (Just(n), parents(n), parents(n))),
        (one_weight, other_weight) in (1..9_i64, 1..9_i64),
        slices in 1..6_i64,
        point in point(),
    ) {
        // The second tree turned to the root of the first.
        let n = nranks;
        let place = |rank: i64| (rank - root + other_root).rem_euclid(n);
        let turned = |parent: i64| if parent < 0 { -1 } else { (parent + root - other_root).rem_euclid(n) };
        let other = (0..n).map(|rank| turned(other[place(rank) as usize]));
        let weighted = [(Tree::parents(one), one_weight), (Tree::parents(other), other_weight)];
        let down = Trees::turned(weighted.clone().into_iter().rev());
        let (trees, turned) = (Trees::of(weighted.clone()), Trees::turned(weighted));
        let at_once = slices % 2 == 0;
        let values =
            Values { root, trees, turned, down, slices, at_once, ..Values::plain(nranks as u32) };
        assert_all_run("trees", &values, nranks as u32, point);
    }

    #[test]
    fn groups_of_any_ranks(
        (nranks, colors, root) in (1..=4_i64, 1..=4_i64)
            .prop_flat_map(|(many, size)| (Just(many * size), colors(many, size), 0..many * size)),
        (ring_inside, ring_across) in any::<(bool, bool)>(),
        slices in 1..4_i64,
        point in point(),
    ) {
        let groups = Groups::colors(colors);
        let values = Values { root, groups, slices, ring_inside, ring_across, ..Values::plain(nranks as u32) };
        assert_all_run("groups", &values, nranks as u32, point);
    }

    /// A piece of no weight is empty; one piece is everything.
    #[test]
    fn splits_of_any_weights(
        collective in prop::sample::select(vec![Collective::AllReduce, Collective::Broadcast, Collective::Reduce]),
        weights in prop::collection::vec(0..=5_u64, 1..=5).prop_filter("all are 0", |w| w.iter().sum::<u64>() > 0),
        (nranks, root) in (1..=9_i64).prop_flat_map(|n| (Just(n), 0..n)),
        calls in prop::collection::vec(calls(), 1..=3),
        point in point(),
    ) {
        for all in ["parallel", "for"] {
            let text = split(collective, all, &weights, nranks as u32, &calls);
            let algorithm = proved(&text, root, nranks as u32);
            prop_assert!(algorithm.is_ok(), "{text}\n{:?}", algorithm.err());
            let algorithm = algorithm.expect("asserted");
            assert_runs(&algorithm, nranks as u32, point);
        }
    }
}
