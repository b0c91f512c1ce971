//! Algorithms for counts that are multiples of a number: right for those, and refused for others by every caller.

use std::sync::Arc;

use roundelay::{Algorithm, Level, Options, Plan};
use roundelay_core::diagnostics::Code;
use roundelay_core::verify::Proved;
use roundelay_kernels::shared_memory::{World, WorldPlan};
use roundelay_kernels::{Error, SpmdPlan};

use super::super::runs::{Kind, Proofs, assert_right};
use super::engines::{Memory, over_an_arena};

mod sources {
    roundelay::include_collective!("../../data/multiples.coll");
}
use sources::{PackedAllReduce, PackedByAll, PackedInPairs, PackedInParts, Several};

#[test]
fn counts_of_calls_and_groups_are_multiples_too() {
    let all: [(&dyn Algorithm, u64); 5] = [
        (&PackedAllReduce::new(), 6),
        (&PackedInParts::new(), 36),
        (&PackedInPairs::new(), 6),
        (&PackedByAll::new(), 18),
        (&Several::new(), 72),
    ];
    for (algorithm, multiple) in all {
        assert_eq!(algorithm.schedule(6).expect("a schedule").multiple, multiple);
    }
}

fn all() -> [Box<dyn Algorithm>; 4] {
    [
        Box::new(PackedAllReduce::new()),
        Box::new(PackedInParts::new()),
        Box::new(PackedInPairs::new()),
        Box::new(Several::new()),
    ]
}

/// Calls an algorithm where it has them, with counts that are `times` its number.
fn each(times: [u64; 3], mut call: impl FnMut(&Proved, Level, u64, Kind)) {
    let kinds = Kind::all();
    let mut turn = 0;
    for algorithm in all() {
        let mut proofs = Proofs::new(&*algorithm);
        for nranks in [1, 2, 3, 6] {
            if algorithm.schedule(nranks).is_err() {
                continue;
            }
            let proved = proofs.proved(nranks).clone();
            for level in [Level::O0, Level::O1, Level::O2] {
                for times in times {
                    let count = times * proved.schedule().multiple;
                    call(&proved, level, count, kinds[turn * 13 % kinds.len()]);
                    turn += 1;
                }
            }
        }
    }
    assert!(turn > 100, "{turn} calls");
}

#[test]
fn one_caller() {
    each([0, 1, 37], |proved, level, count, kind| {
        let plan =
            Plan::for_options(proved, count, kind.dtype, kind.op, Options::new().level(level));
        assert_right(&plan.expect("a plan of what is proved"), kind, count);
    });
}

/// Counts of one tile and of several, of which the last is short: tiles, too, are multiples.
#[test]
fn ranks_over_an_arena() {
    each([1, 5, 2411], |proved, level, count, kind| {
        let nranks = proved.schedule().nranks;
        let worlds = World::together(nranks, Options::new().level(level)).expect("worlds");
        let worlds: Vec<Arc<World>> = worlds.into_iter().map(Arc::new).collect();
        over_an_arena(&worlds, proved, (level, count, kind), Memory::Own, count);
    });
}

#[test]
fn other_counts_are_refused_by_whoever_runs_them() {
    let refused = |what: &str, error: Option<Error>| {
        let error = error.unwrap_or_else(|| panic!("{what} takes such a count"));
        assert_eq!(error.code(), Code::BadOption, "{what}: {error}");
        let why = "a count of 9, where every count is a multiple of 2 (the blocks that lie side by side are equally long)";
        assert!(error.to_string().starts_with(why), "{what}: {error}");
    };
    let proved = roundelay_core::prove(&PackedAllReduce::new(), 2).expect("it is right");
    let kind = Kind::all()[0];
    for level in [Level::O0, Level::O1, Level::O2] {
        let options = Options::new().level(level);
        let plan = Plan::for_options(&proved, 9, kind.dtype, kind.op, options);
        refused("a plan", plan.err());
        let worlds = World::together(2, options).expect("worlds");
        let world = Arc::new(worlds.into_iter().next().expect("two worlds"));
        refused("a world", WorldPlan::new(&world, &proved, 9, kind.dtype, kind.op).err());
    }
    let plan = SpmdPlan::new(&proved, 9, kind.dtype, kind.op, Options::new());
    refused("ranks that call by themselves", plan.err());
}
