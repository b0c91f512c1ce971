//! The two frontends agree: the same text through the macro's flattener and through the file's lexer gives the
//! same tokens at the same places, the same tree, and the same schedules; so does expanded Rust.

use std::sync::Arc;

use proc_macro2::TokenStream;
use roundelay::library::TwistedRingAllReduce;
use roundelay::{Algorithm, Groups, Ring, Rings, Tree};
use roundelay_core::check::Frontend;
use roundelay_core::diagnostics::Finding;
use roundelay_core::program::Configured;
use roundelay_core::schedule::Schedule;
use roundelay_core::schedule::params::ParamValue;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::{parse, printer};
use roundelay_core::topology::shape::Shape;
use roundelay_tests::compile;
use roundelay_tests::{right_sources, root};

#[test]
fn the_same_tokens_places_and_tree() {
    for (path, text) in right_sources() {
        let file = Source::from_text("file", &text);
        let tokens: TokenStream = text.parse().expect("sources are Rust tokens");
        let (block, spans) = Source::from_macro("macro", tokens);
        assert_eq!(file.tokens(), block.tokens(), "{}", path.display());
        assert_eq!(file.places(), block.places(), "{}", path.display());
        assert_eq!(spans.len(), block.tokens().len());
        let (from_file, errors) = parse(&file);
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
        assert_eq!((from_file, errors), parse(&block), "{}", path.display());
    }
}

#[test]
fn printing_and_parsing_is_the_identity() {
    for (path, text) in right_sources() {
        let source = Source::from_text("file", &text);
        let (file, _) = parse(&source);
        let printed = printer::print(&file);
        let again = Source::from_text("printed", &printed);
        assert_eq!(printed, printer::print(&parse(&again).0), "{}", path.display());
        let formatted = printer::print_with_trivia(&file, &source);
        let mut before: Vec<_> = source.comments().iter().map(|c| c.text.clone()).collect();
        let formatted_source = Source::from_text("formatted", &formatted);
        let mut after: Vec<_> =
            formatted_source.comments().iter().map(|c| c.text.clone()).collect();
        before.sort();
        after.sort();
        assert_eq!(before, after, "{}: a comment is lost", path.display());
    }
}

fn walked(file: &str, name: &str) -> Configured {
    let text = std::fs::read_to_string(root().join("stdlib/library").join(file)).unwrap();
    let source = Source::from_text(file, &text);
    let program = compile(&source, Frontend::File).unwrap();
    let algorithm = program.algorithms.into_iter().find(|a| a.name == name).unwrap();
    Configured::new(algorithm, &source)
}

fn same(expanded: &dyn Algorithm, walked: &Configured, nranks: u32) {
    let summary = |result: Result<Schedule, Vec<Finding>>| {
        result.map_err(|all| all.into_iter().map(|f| (f.code, f.at, f.title)).collect::<Vec<_>>())
    };
    let mut left = summary(expanded.schedule(nranks));
    let mut right = summary(walked.schedule(nranks));
    // What a caller puts the run on is no attribute: `plan_on` of expanded Rust compares links by itself.
    if let (Ok(schedule), Some(_)) = (&mut right, walked.topology()) {
        (schedule.demands.topology, schedule.demands.rings) = (None, false);
    }
    // The same file, by another path.
    for schedule in [&mut left, &mut right].into_iter().flatten() {
        schedule.file = "".into();
    }
    // Not assert_eq: a schedule of 33 ranks is no message.
    assert!(left == right, "{} differs at nranks = {nranks}", expanded.name());
}

/// The listed algorithms of the library, expanded and by name.
macro_rules! expanded {
    ($($_family:ident { $($name:ident $_admits:ident [$($_param:ident)*])* })*) => {
        vec![$($((stringify!($name), Box::new(roundelay::library::$name::new()) as Box<dyn Algorithm>)),*),*]
    };
}

#[test]
fn expanded_rust_and_the_walk_lay_out_the_same_schedules() {
    let mut expanded = roundelay_tests::library!(expanded);
    for (file, text) in roundelay::library::SOURCES {
        let source = Source::from_text(*file, text);
        for algorithm in compile(&source, Frontend::File).expect("the library is right").algorithms
        {
            let name = algorithm.name.clone();
            let at = expanded.iter().position(|(known, _)| *known == name);
            let (_, expanded) = expanded.remove(at.unwrap_or_else(|| panic!("{name} is not here")));
            let walked = Configured::new(algorithm, &source);
            for nranks in 1..=33 {
                same(&*expanded, &walked, nranks);
            }
        }
    }
    assert_eq!(expanded.len(), 0, "no file of the library holds these");
}

#[test]
fn parameters_mean_the_same_to_both() {
    let mut ring = walked("twisted_ring.coll", "TwistedRingAllReduce");
    ring.set("ring", ParamValue::Ring(Ring::twisted())).unwrap();
    let expanded = TwistedRingAllReduce::new().ring(Ring::twisted());
    same(&expanded, &ring, 8);
    // Refused by both in the same words: the order is one of eight ranks.
    same(&expanded, &ring, 7);
    ring.set_text("ring", "1,2,3,4,5,6,0,7").unwrap();
    same(&TwistedRingAllReduce::new().ring([1, 2, 3, 4, 5, 6, 0, 7]), &ring, 8);
}

/// Every statement and built-in once.
mod constructs {
    roundelay::include_collective!("data/constructs.coll");
}

#[test]
fn every_construct_means_the_same_to_both() {
    let text = std::fs::read_to_string(root().join("tests/data/constructs.coll")).unwrap();
    let source = Source::from_text("data/constructs.coll", &text);
    let program = compile(&source, Frontend::File).unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(|e| e.report(&source)).collect::<Vec<_>>().join("\n"))
    });
    let mut walked = Configured::new(program.algorithms[0].clone(), &source);
    walked.set_text("s", "4096").unwrap();
    let mut laid_out = 0;
    for nranks in 1..=33 {
        let expanded = constructs::Constructs::new(4096);
        same(&expanded, &walked, nranks);
        laid_out += usize::from(expanded.schedule(nranks).is_ok());
        same(&expanded.clone().eager(true).order(vec![0, 1]).root(0), &with(&walked), nranks);
    }
    assert!(laid_out > 20, "most rank counts are laid out, not {laid_out}");
}

/// Algorithms that run others, of a file that is used among them.
mod composed {
    roundelay::include_collective!("data/composed.coll");
}

/// Algorithms that run others, in a block of the macro, which finds the files that it uses beside this one.
mod composed_here {
    roundelay::collective! {
        use "data/rails.coll";

        pub algorithm Twice() -> AllReduce {
            require nranks % 2 == 0 && nranks <= 6, "what pairs take";

            copy(local.input, local.output);
            PairsAllReduce(back: false) on (output);
        }
    }
}

#[test]
fn calls_mean_the_same_to_both() {
    let text = std::fs::read_to_string(root().join("tests/data/composed.coll")).unwrap();
    let source = Source::from_text("data/composed.coll", &text);
    let program = compile(&source, Frontend::File).unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(|e| e.report(&source)).collect::<Vec<_>>().join("\n"))
    });
    let walked = Configured::new(program.algorithms[0].clone(), &source);
    for nranks in 1..=8 {
        same(&composed::ComposedAllReduce::new(), &walked, nranks);
    }
    for nranks in [2, 4, 6] {
        let twice = composed_here::Twice::new();
        roundelay_core::prove(&twice, nranks).expect("a call of what is right");
        assert!(composed::ComposedAllReduce::new().schedule(nranks).is_ok());
    }
}

/// Algorithms for counts that are multiples of a number.
pub(crate) mod multiples {
    roundelay::include_collective!("data/multiples.coll");
}

#[test]
fn multiples_mean_the_same_to_both() {
    use multiples::{PackedAllReduce, PackedByAll, PackedInPairs, PackedInParts, Several};

    let text = std::fs::read_to_string(root().join("tests/data/multiples.coll")).unwrap();
    let source = Source::from_text("data/multiples.coll", &text);
    let program = compile(&source, Frontend::File).expect("a right source");
    let expanded: [(&dyn Algorithm, u64); 5] = [
        (&PackedAllReduce::new(), 6),
        (&PackedInParts::new(), 36),
        (&PackedInPairs::new(), 6),
        (&PackedByAll::new(), 18),
        (&Several::new(), 72),
    ];
    for (algorithm, (expanded, multiple)) in program.algorithms.into_iter().zip(expanded) {
        let walked = Configured::new(algorithm, &source);
        for nranks in 1..=8 {
            same(expanded, &walked, nranks);
        }
        assert_eq!(expanded.schedule(6).expect("a schedule").multiple, multiple);
    }
}

/// Every primitive, and every form of a fifo.
mod fifo {
    roundelay::include_collective!("data/fifo.coll");
}

#[test]
fn fifos_mean_the_same_to_both() {
    let text = std::fs::read_to_string(root().join("tests/data/fifo.coll")).unwrap();
    let source = Source::from_text("data/fifo.coll", &text);
    let program = compile(&source, Frontend::File).unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(|e| e.report(&source)).collect::<Vec<_>>().join("\n"))
    });
    let [primitives, exchange, two_ways] = &program.algorithms[..] else { panic!("three") };
    let exchange = Configured::new(exchange.clone(), &source);
    let two_ways = Configured::new(two_ways.clone(), &source);
    let mut laid_out = 0;
    for nranks in 1..=9 {
        same(&fifo::Exchange::new(), &exchange, nranks);
        same(&fifo::TwoWays::new(), &two_ways, nranks);
        // A slot, and no slice of it, is cut where `slices` is 1; both frontends refuse 0 and 7.
        for slices in [0, 1, 2, 3, 7] {
            let mut walked = Configured::new(primitives.clone(), &source);
            walked.set_text("slices", &slices.to_string()).unwrap();
            let expanded = fifo::Primitives::new(slices);
            same(&expanded, &walked, nranks);
            laid_out += usize::from(expanded.schedule(nranks).is_ok());
            walked.set_text("credits", "-1").unwrap();
            same(&expanded.credits(-1), &walked, nranks);
        }
    }
    assert_eq!(laid_out, 9 * 3);
}

/// The example that looks at its topology.
mod broken_mesh {
    roundelay::include_collective!("../examples/broken_mesh.coll");
}

#[test]
fn the_example_means_the_same_to_both() {
    use broken_mesh::{AllGatherAround, AllReduceAround, AllReduceOnRings};
    let text = std::fs::read_to_string(root().join("examples/broken_mesh.coll")).unwrap();
    let source = Source::from_text("../examples/broken_mesh.coll", &text);
    let program = compile(&source, Frontend::File).unwrap();
    let expanded: [&dyn Algorithm; 3] =
        [&AllReduceAround::new(), &AllReduceOnRings::new(), &AllGatherAround::new()];
    for (expanded, walked) in expanded.into_iter().zip(program.algorithms) {
        let walked = Configured::new(walked, &source);
        (1..=9).for_each(|nranks| same(expanded, &walked, nranks));
    }
}

/// Every constructor of topologies and rings, and every question to one.
mod topologies {
    roundelay::include_collective!("data/topologies.coll");
}

#[test]
fn topologies_mean_the_same_to_both() {
    let text = std::fs::read_to_string(root().join("tests/data/topologies.coll")).unwrap();
    let source = Source::from_text("data/topologies.coll", &text);
    let program = compile(&source, Frontend::File).unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(|e| e.report(&source)).collect::<Vec<_>>().join("\n"))
    });
    let mut walked = Configured::new(program.algorithms[0].clone(), &source);
    walked.set_text("k", "2").unwrap();
    let mesh = Arc::new(Shape::full_mesh(12).without(0, 3).without(0, 4).build().unwrap());
    let mut laid_out = 0;
    for nranks in 1..=13 {
        let expanded = topologies::Topologies::new(2);
        same(&expanded, &walked, nranks);
        laid_out += usize::from(expanded.schedule(nranks).is_ok());
        let mut given = walked.clone();
        given.place_on(mesh.clone());
        given.set_text("rings", "disjoint(topology, 1)").unwrap();
        let rings = Rings::disjoint(mesh.clone(), 1);
        same(&expanded.clone().topology(mesh.clone()).rings(rings), &given, nranks);
        given.set_text("ring", "around(full_mesh(9) without (4, 5))").unwrap();
        let other = Shape::full_mesh(9).without(4, 5).build().unwrap();
        let expanded = expanded.topology(mesh.clone()).rings(Rings::disjoint(mesh.clone(), 1));
        same(&expanded.ring(Ring::around(other)), &given, nranks);
    }
    assert!(laid_out > 8, "most rank counts are laid out, not {laid_out}");
}

/// Every constructor of trees and groups, and every question to one.
mod membership {
    roundelay::include_collective!("data/membership.coll");
}

#[test]
fn trees_and_groups_mean_the_same_to_both() {
    let text = std::fs::read_to_string(root().join("tests/data/membership.coll")).unwrap();
    let source = Source::from_text("data/membership.coll", &text);
    let program = compile(&source, Frontend::File).unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(|e| e.report(&source)).collect::<Vec<_>>().join("\n"))
    });
    let walked = Configured::new(program.algorithms[0].clone(), &source);
    let mesh = Arc::new(Shape::full_mesh(12).build().unwrap());
    let given: [(&str, Tree, &str, Groups); 10] = [
        ("binary(0)", Tree::binary(0), "of(3)", Groups::of(3)),
        ("binomial(1)", Tree::binomial(1), "balanced", Groups::balanced()),
        ("chain(1)", Tree::chain(1), "balanced()", Groups::balanced()),
        ("star(2)", Tree::star(2), "sizes(1, 3)", Groups::sizes([1, 3])),
        ("double_binary(0, 1)", Tree::double_binary(0, 1), "of(1)", Groups::of(1)),
        ("double_binary(1)", Tree::double_binary(1, None), "of(100)", Groups::of(100)),
        ("-1,0,0,1", Tree::from([-1, 0, 0, 1]), "colors(7,7,0,7)", Groups::colors([7, 7, 0, 7])),
        ("1, 2, -1, 2", Tree::from(vec![1, 2, -1, 2]), "sizes(4)", Groups::sizes([4])),
        ("binary(3)", Tree::binary(3), "islands(topology)", Groups::islands(mesh.clone())),
        ("star(0)", Tree::star(0), "rails(topology)", Groups::rails(mesh.clone())),
    ];
    let mut laid_out = 0;
    for (tree_text, tree, groups_text, groups) in given {
        let mut walked = walked.clone();
        walked.place_on(mesh.clone());
        walked.set_text("tree", tree_text).unwrap();
        walked.set_text("groups", groups_text).unwrap();
        let expanded = membership::Membership::new(tree.clone(), groups.clone());
        let expanded = expanded.topology(mesh.clone());
        for nranks in 1..=12 {
            same(&expanded, &walked, nranks);
            laid_out += usize::from(expanded.schedule(nranks).is_ok());
        }
        // The optional ones, given too.
        walked.set_text("up", tree_text).unwrap();
        walked.set_text("parts", groups_text).unwrap();
        same(&expanded.up(tree).parts(groups), &walked, 4);
    }
    assert!(laid_out > 50, "most rank counts are laid out, not {laid_out}");
}

/// Every attribute.
mod attributes {
    roundelay::include_collective!("data/attributes.coll");
}

#[test]
fn attributes_mean_the_same_to_both() {
    let text = std::fs::read_to_string(root().join("tests/data/attributes.coll")).unwrap();
    let source = Source::from_text("data/attributes.coll", &text);
    let program = compile(&source, Frontend::File).unwrap();
    let mut walked = Configured::new(program.algorithms[0].clone(), &source);
    let expanded = attributes::Attributes::new();
    for nranks in 1..=10 {
        same(&expanded, &walked, nranks);
    }
    let demands = expanded.schedule(5).unwrap().demands;
    let budgets: Vec<_> = demands.budgets.iter().map(|b| (b.resource.name(), b.most)).collect();
    assert_eq!(budgets, [("streams", 1), ("notifies", 2), ("scratch", 3), ("ports", 1)]);
    assert_eq!(demands.topology.unwrap().0.nranks(), 9);
    assert!(demands.deterministic.is_some());
    walked.set_text("k", "7").unwrap();
    // A budget below nothing.
    same(&expanded.k(7), &walked, 5);
}

fn with(walked: &Configured) -> Configured {
    let mut set = walked.clone();
    for (name, value) in [("eager", "true"), ("order", "0,1"), ("root", "0")] {
        set.set_text(name, value).unwrap();
    }
    set
}
