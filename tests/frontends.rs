//! The two frontends agree: a text through the macro's flattener and through the file's lexer gives equal tokens at
//! equal places, and equal trees. A struct that the macro made reads its source again: that gives the schedules of the
//! file, with equal places and values of parameters, and escapes have their values.

use std::sync::Arc;

use proc_macro2::TokenStream;
use roundelay::library::TwistedRingAllReduce;
use roundelay::{Algorithm, Groups, Ring, Rings, Topology, Tree, Trees};
use roundelay_core::check::Frontend;
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::layout::Configured;
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::{parse, printer};
use roundelay_core::values::params::ParamValue;
use roundelay_tests::compile;
use roundelay_tests::{right_sources, root};
use roundelay_topology::shape::Shape;

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

fn configured(path: &str, name: &str) -> Configured {
    let text = std::fs::read_to_string(root().join("tests").join(path)).unwrap();
    from_text(path, &text, name)
}

fn from_text(path: &str, text: &str, name: &str) -> Configured {
    let source = Source::from_text(path, text);
    let program = compile(&source, Frontend::File).unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(|e| e.report(&source)).collect::<Vec<_>>().join("\n"))
    });
    let algorithm = program.algorithms.into_iter().find(|a| a.name == name).unwrap();
    Configured::new(algorithm, &source)
}

/// Compares two expansions, with the places in the source, except for those of a block in this file.
fn same(expanded: &dyn Algorithm, walked: &Configured, nranks: u32) {
    let summary = |result: Result<Schedule, Vec<Finding>>| {
        result.map_err(|all| {
            let told = |f: Finding| (f.code, f.at, f.title, f.notes);
            all.into_iter().map(told).collect::<Vec<_>>()
        })
    };
    let mut left = summary(expanded.schedule(nranks));
    let mut right = summary(walked.schedule(nranks));
    // The topology that a caller sets for a run is no attribute: `plan_on` of a struct compares links by itself.
    if let (Ok(schedule), Some(_)) = (&mut right, walked.topology()) {
        (schedule.demands.topology, schedule.demands.rings) = (None, false);
    }
    if expanded.file() == file!() {
        for schedule in [&mut left, &mut right].into_iter().flatten() {
            (schedule.file, schedule.locations) = ("".into(), Vec::new());
        }
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
fn a_struct_reads_its_source_again() {
    let mut expanded = roundelay_tests::library!(expanded);
    for (file, text) in roundelay::library::SOURCES {
        let source = Source::from_text(*file, text);
        for algorithm in compile(&source, Frontend::File).expect("the library is right").algorithms
        {
            let name = algorithm.name.clone();
            let at = expanded.iter().position(|(known, _)| *known == name);
            let (_, expanded) = expanded.remove(at.unwrap_or_else(|| panic!("{name} is not here")));
            let walked = Configured::new(algorithm, &source);
            for nranks in [1, 2, 3, 8, 9] {
                same(&*expanded, &walked, nranks);
            }
        }
    }
    assert_eq!(expanded.len(), 0, "no file of the library holds these");
}

/// Every statement and built-in once.
mod constructs {
    roundelay::include_collective!("data/constructs.coll");
}

#[test]
fn numbers_lists_and_rings_mean_the_same_to_both() {
    let mut walked = configured("data/constructs.coll", "Constructs");
    walked.set_text("s", "4096").unwrap();
    let expanded = constructs::Constructs::new(4096);
    let mut set = walked.clone();
    for (name, value) in [("eager", "true"), ("order", "0,1"), ("root", "0")] {
        set.set_text(name, value).unwrap();
    }
    for nranks in 1..=5 {
        same(&expanded, &walked, nranks);
        same(&expanded.clone().eager(true).order(vec![0, 1]).root(0), &set, nranks);
        // No value is kept from one instance to the next.
        same(&expanded, &walked, nranks);
    }
    let text = std::fs::read_to_string(root().join("stdlib/library/twisted_ring.coll")).unwrap();
    let mut ring = from_text("twisted_ring.coll", &text, "TwistedRingAllReduce");
    ring.set("ring", ParamValue::Ring(Ring::twisted())).unwrap();
    let expanded = TwistedRingAllReduce::new().ring(Ring::twisted());
    same(&expanded, &ring, 8);
    // Both refuse it in equal words: the order is one of eight ranks.
    same(&expanded, &ring, 7);
    ring.set_text("ring", "1,2,3,4,5,6,0,7").unwrap();
    same(&TwistedRingAllReduce::new().ring([1, 2, 3, 4, 5, 6, 0, 7]), &ring, 8);
}

/// Algorithms that run others, of a file that is used among them.
mod composed {
    roundelay::include_collective!("data/composed.coll");
}

/// Algorithms that run others, in a block of the macro, which finds the files that it uses beside this one.
mod composed_here {
    roundelay::collective! {
        use "data/rails.coll";

        /// Also the name of an algorithm that `PairsAllReduce` calls.
        #[verify(off, reason = "it is a part of one")]
        pub algorithm Together() -> AllReduce {
            copy(local.input, local.output);
        }

        pub algorithm Twice(back: bool) -> AllReduce {
            require nranks % 2 == 0 && nranks <= 6, "what pairs take";

            Together() on (input, output);
            PairsAllReduce(back) on (output);
        }
    }
}

#[test]
fn calls_mean_the_same_to_both() {
    let walked = configured("data/composed.coll", "ComposedAllReduce");
    for nranks in 1..=8 {
        same(&composed::ComposedAllReduce::new(), &walked, nranks);
    }
    for nranks in [2, 4, 6] {
        for back in [false, true] {
            let twice = composed_here::Twice::new(back);
            roundelay_core::prove(&twice, nranks).expect("a call of what is right");
        }
        assert!(composed::ComposedAllReduce::new().schedule(nranks).is_ok());
    }
    // Each is told of where its author wrote it.
    let called = composed_here::Twice::new(true);
    let files: Vec<_> = called.callees().iter().map(|called| called.file).collect();
    assert_eq!(files, [file!(), "data/rails.coll", "data/rails.coll"]);
}

/// Escapes in every place, beside equal code without them.
mod escapes {
    pub(super) fn after(rank: i64, by: i64, nranks: i64) -> i64 {
        (rank + by).rem_euclid(nranks)
    }

    roundelay::collective! {
        /// Called with a number of the group's.
        #[verify(off, reason = "it is no AllGather")]
        pub algorithm Inner(far: int) -> AllGather {
            copy(local.input, local.output.block(rust { after(rank.get(), far.get(), nranks.get()) }));
        }

        #[verify(off, reason = "it is no AllGather")]
        pub algorithm Escaped(back: bool = false, order: [Rank] = [1, 0], parts: int = rust { 1 + 1 }) -> AllGather {
            step half(piece: int, from: peer) {
                let mine = rust { i64::from(from == local) };
                copy(local.input.split(parts)[piece * mine], local.output.block(rank).split(parts)[piece * mine]);
            }
            view first = output.block(0);
            scratch _room: rust { parts.get() as usize + 1 } like input;

            copy(local.input, local._room[rust { format!("{nranks:?}").len() } * 0]);
            for d in 0..rust { if back.get() { 1_u32 } else { 2 } } {
                half(d % 2, local);
                half(1, peer(rust { order.get()[1] }));
            }
            within [nranks - 1] {
                Inner(far: rust { rank.get() + 3 }) on (input, first);
                copy(local.input, local.first.split(1)[rust { rank.get() + nranks.get() - 1 }]);
            }
        }

        #[verify(off, reason = "it panics")]
        pub algorithm Panics() -> AllReduce {
            require rust { if rank.get() == 1 { panic!("the author's own words") } else { 1 } } > 0, "";
            copy(local.input, local.output);
        }

        #[verify(off, reason = "it is refused")]
        pub algorithm TooMuch() -> AllReduce {
            require rust { usize::MAX } > 0, "";
            copy(local.input, local.output);
        }
    }
}

const WITHOUT_ESCAPES: &str = "
algorithm Inner(far: int) -> AllGather {
    copy(local.input, local.output.block((rank + far) % nranks));
}

algorithm Escaped(back: bool = false, order: [Rank] = [1, 0], parts: int = 2) -> AllGather {
    step half(piece: int, from: peer) {
        let mine = if from == local { 1 } else { 0 };
        copy(local.input.split(parts)[piece * mine], local.output.block(rank).split(parts)[piece * mine]);
    }
    view first = output.block(0);
    scratch _room: parts + 1 like input;

    copy(local.input, local._room[0]);
    for d in 0..(if back { 1 } else { 2 }) {
        half(d % 2, local);
        half(1, peer(order[1]));
    }
    within [nranks - 1] {
        Inner(far: 3) on (input, first);
        copy(local.input, local.first.split(1)[0]);
    }
}";

#[test]
fn an_escape_has_the_values_of_its_place() {
    let plain = from_text("plain.coll", WITHOUT_ESCAPES, "Escaped");
    for nranks in 2..=5 {
        same(&escapes::Escaped::new(), &plain, nranks);
        let mut set = plain.clone();
        for (name, value) in [("back", "true"), ("order", "0,1"), ("parts", "3")] {
            set.set_text(name, value).unwrap();
        }
        same(&escapes::Escaped::new().back(true).order([0, 1]).parts(3), &set, nranks);
    }
    assert_eq!(escapes::Escaped::new().schedule(5).unwrap().scratch[0].slots, 3);
    // A value that does not fit is an error at the statement.
    let refused = escapes::TooMuch::new().schedule(2).unwrap_err();
    assert_eq!((refused[0].code, refused[0].at.0), (Code::BadArgument, 1), "{refused:?}");
}

#[test]
fn what_an_escape_panics_with_goes_through() {
    let panics = || escapes::Panics::new().schedule(2).map(|_| ());
    let words = std::panic::catch_unwind(panics).unwrap_err();
    assert_eq!(words.downcast_ref::<&str>(), Some(&"the author's own words"));
}

/// Every constructor of topologies and rings, and every question to one.
mod topologies {
    roundelay::include_collective!("data/topologies.coll");
}

#[test]
fn topologies_mean_the_same_to_both() {
    let mut walked = configured("data/topologies.coll", "Topologies");
    walked.set_text("k", "2").unwrap();
    let mesh: Arc<Topology> =
        Arc::new(Shape::full_mesh(12).without(0, 3).without(0, 4).build().unwrap().into());
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
        let other: Topology = Shape::full_mesh(9).without(4, 5).build().unwrap().into();
        let expanded = expanded.topology(mesh.clone()).rings(Rings::disjoint(mesh.clone(), 1));
        same(&expanded.ring(Ring::around(other)), &given, nranks);
    }
    assert!(laid_out > 8, "most rank counts are laid out, not {laid_out}");
}

/// Every constructor of a tree, of several trees and of groups, and every question to one.
mod membership {
    roundelay::include_collective!("data/membership.coll");
}

#[test]
fn trees_and_groups_mean_the_same_to_both() {
    let walked = configured("data/membership.coll", "Membership");
    let mesh: Arc<Topology> = Arc::new(Shape::full_mesh(12).build().unwrap().into());
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
        // Optional parameters, given too.
        walked.set_text("up", tree_text).unwrap();
        walked.set_text("parts", groups_text).unwrap();
        same(&expanded.up(tree).parts(groups), &walked, 4);
    }
    let several: [(&str, Trees); 6] = [
        ("binary", Trees::turned([(Tree::binary(0), 1)])),
        ("star()", Trees::turned([(Tree::star(0), 1)])),
        ("double_binary", Trees::double_binary(None)),
        ("double_binary(1)", Trees::double_binary(1)),
        ("-1,0,0,1*3; 1,-1,1,0", Trees::of([([-1, 0, 0, 1], 3), ([1, -1, 1, 0], 1)])),
        ("turned(1,-1,1,0 * 2)", Trees::turned([([1, -1, 1, 0], 2)])),
    ];
    for (text, trees) in several {
        let mut walked = walked.clone();
        walked.set_text("tree", "chain(0)").unwrap();
        walked.set_text("groups", "balanced").unwrap();
        walked.set_text("several", text).unwrap();
        let expanded = membership::Membership::new(Tree::chain(0), Groups::balanced());
        let expanded = expanded.several(trees);
        for nranks in 1..=5 {
            same(&expanded, &walked, nranks);
            laid_out += usize::from(expanded.schedule(nranks).is_ok());
        }
    }
    assert!(laid_out > 70, "most rank counts are laid out, not {laid_out}");
}

#[test]
fn attributes_become_demands() {
    let mut walked = configured("data/attributes.coll", "Attributes");
    let demands = walked.schedule(5).unwrap().demands;
    let budgets: Vec<_> = demands.budgets.iter().map(|b| (b.resource.name(), b.most)).collect();
    assert_eq!(budgets, [("streams", 1), ("notifies", 2), ("scratch", 3), ("ports", 1)]);
    assert_eq!(demands.topology.unwrap().0.nranks(), 9);
    assert!(!demands.order.is_empty());
    // A budget below nothing.
    walked.set_text("k", "7").unwrap();
    assert_eq!(walked.schedule(5).unwrap_err()[0].code, Code::BadArgument);
}

/// Every primitive, and every form of a fifo.
#[test]
fn fifos_take_the_sizes_that_they_can() {
    let mut walked = configured("data/fifo.coll", "Primitives");
    for (slices, fits) in [("0", false), ("1", true), ("2", true), ("3", true), ("7", false)] {
        walked.set_text("slices", slices).unwrap();
        for nranks in 1..=9 {
            assert_eq!(walked.schedule(nranks).is_ok(), fits, "{slices} slices, {nranks} ranks");
        }
    }
}
