//! The uses of a crate that depends on `roundelay` alone: every public item has a path, and every error can be matched
//! on. `cargo xtask test` compares the names here with those of the documentation.

#![allow(missing_docs)]
#![allow(clippy::float_cmp, reason = "sums of small integers are exact")]

mod device;
mod escapes;
mod executors;
mod surroundings;
mod worlds;

use std::str::FromStr as _;
use std::thread;
use std::time::Duration;

use roundelay::compiler::check::Frontend;
use roundelay::compiler::compile;
use roundelay::compiler::layout::Configured;
use roundelay::compiler::schedule::{OpKind, text};
use roundelay::compiler::syntax::Source;
use roundelay::library::{self, RingAllReduce, RingBroadcast};
use roundelay::select::{
    CostForm, Counts, GivenCosts, Numbers, Origin, Refused, Row, Time, rate, select_beside, size,
    time,
};
use roundelay::selection::{Entry, Selection, VARIABLE, Wrong};
use roundelay::verdict::{Asked, Every, Optimum, ProofFacts, ProvedCount, Verdict, Within, reason};
use roundelay::{
    Algorithm, Certificate, Check, Choice, Code, Collective, Comm, Costs, DType, Differ, Element,
    EngineError, Error, Finding, Groups, Level, Missing, NoSuchOp, NotPromises, Options,
    OrderClass, Plan, Problem, Promises, Proof, Proved, Rank, RankId, RankPlan, ReduceOp, Ring,
    Rings, Runs, Schedule, SpmdPlan, Stats, Stuck, ToPlan, Topology, Tree, Trees, Unproved,
    WrongData, collective, float8, half, include_collective, select, select_with, stay_in_place,
    stay_on_core,
};

include_collective!("../../examples/recursive_doubling.coll");

collective! {
    /// The root's neighbors hand its input on, both ways.
    algorithm BothWays(root: Rank = 0) -> Broadcast {
        if rank == root { copy(local.input, local.output); }
        for d in [1, nranks - 1] {
            let next = peer((root + d) % nranks);
            if rank == root && next.rank != root { next.TxDataSignal(); next.RxAck(); }
            if rank != root && rank == next.rank {
                peer(root).RxDataSignal();
                copy(peer(root).output, local.output);
                peer(root).TxAck();
            }
        }
        require nranks <= 2, "only neighbors of the root hear of it";
    }
}

collective! {
    /// No signal tells when it may be read.
    #[verify(off, reason = "a test of what a plan says")]
    algorithm Hasty() -> AllReduce {
        scratch theirs: like output;
        copy(peer((rank + 1) % nranks).input, local.theirs);
        copy(local.input, local.output);
        reduce(local.theirs, local.output);
    }
}

fn run<T: Element + PartialEq + std::fmt::Debug>(plan: &Plan, one: T, all: T) -> Stats {
    let ranks = 0..plan.schedule().nranks;
    let inputs: Vec<Vec<T>> = ranks.clone().map(|rank| vec![one; plan.input_len(rank)]).collect();
    let mut outputs: Vec<Vec<T>> = ranks.map(|rank| vec![one; plan.output_len(rank)]).collect();
    let reads: Vec<&[T]> = inputs.iter().map(Vec::as_slice).collect();
    let mut writes: Vec<&mut [T]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    let stats = plan.run(&reads, &mut writes).expect("it runs");
    assert!(outputs.iter().flatten().all(|element| *element == all));
    stats
}

#[test]
fn one_caller_runs_a_plan() -> Result<(), Error> {
    let options = Options::new().workers(2).level(Level::O1).deadline(Duration::from_secs(9));
    let plan = RingAllReduce::new().ring(Ring::order([0, 2, 1])).plan_with(
        3,
        100,
        DType::F16,
        ReduceOp::Sum,
        options,
    )?;
    let stats = run(&plan, half::f16::ONE, half::f16::from_f32(3.0));
    let plan_of_fp8 = RingAllReduce::new().plan(3, 5, DType::F8E4M3, ReduceOp::Sum)?;
    // The sum of three is beyond 448, the largest number.
    let of = float8::F8E4M3::from_f32;
    run(&plan_of_fp8, of(400.0), of(448.0));
    assert_eq!(stats.waited, Duration::ZERO);
    assert_eq!((plan.in_place_len(2), plan.input_len(RankId::from(2))), (100, 100));
    let (schedule, proof): (&Schedule, &Proof) = (plan.schedule(), plan.proof());
    assert!(schedule.ops.iter().any(|op| op.kind == OpKind::Move));
    assert!(proof.reduce_depth > 0 && !text::print(schedule).is_empty());
    let proved: Proved = roundelay::compiler::prove(&RecursiveDoubling::new(), 4).expect("right");
    run(&Plan::new(&proved, 10, DType::I32, ReduceOp::Max)?, 7, 7);
    let refused = RecursiveDoubling::new().plan(6, 3, DType::I32, ReduceOp::Sum);
    assert_eq!(refused.expect_err("no power of two").code(), Code::RankCountRefused);
    run(&BothWays::new().root(1).plan(2, 5, DType::U8, ReduceOp::Sum)?, 1_u8, 1);
    assert!(ReduceOp::Lor.takes(DType::U8) && !ReduceOp::Lor.takes(DType::F32));
    let none = RingAllReduce::new().plan(2, 5, DType::F32, ReduceOp::Lor);
    let Err(Error::Engine(EngineError::NoSuchOp(NoSuchOp { op, element }))) = none else {
        panic!("{none:?}")
    };
    assert_eq!((op, element), (ReduceOp::Lor, "f32"));
    Ok(())
}

#[test]
fn a_verdict_is_a_value() {
    let text = RecursiveDoubling::new().configured().source().to_owned();
    let source = Source::from_text("doubling.coll", &text);
    let program = compile(&source, Frontend::File).expect("the macro has compiled it");
    let algorithm = Configured::new(program.algorithms[0].clone(), &source);
    let counts = [3, 4];
    let asked = Asked { named: false, ..Asked::with_limits(&counts, Within::Plans) };
    let seen = |nranks: u32, every: &Every| assert!(nranks < 5 && !every.line().is_empty());
    let verdict: Verdict = Verdict::check(&algorithm, &source, &asked, seen);
    let (four, (three, refusal)): (&ProvedCount<ProofFacts>, _) =
        (&verdict.proved[0], &verdict.refused[0]);
    assert_eq!((four.nranks(), *three, verdict.is_right()), (4, 3, true));
    assert!(!reason(refusal).is_empty());
    assert!(four.facts.optimum.as_ref().map(Optimum::lines).is_none(), "there is no topology");
}

#[test]
fn each_rank_has_a_thread() -> Result<(), Error> {
    let plan: SpmdPlan = RecursiveDoubling::new().spmd_plan(2, 3, DType::F64, ReduceOp::Sum)?;
    thread::scope(|threads| {
        for rank in 0..plan.nranks() {
            let mine: RankPlan<'_> = plan.rank(rank).expect("one of two");
            let mine @ Runs { .. } = mine;
            threads.spawn(move || {
                match mine.id() {
                    0 => stay_on_core(0),
                    rank => stay_in_place(rank, 2),
                }
                let mut buffer = [1.5_f64; 3];
                mine.run_in_place(&mut buffer).expect("both call");
                assert_eq!(buffer, [3.0; 3]);
            });
        }
    });
    let certificate: Certificate = plan.certificate();
    assert_eq!((certificate.messages, certificate.ideal.least_steps), (2, 1));
    assert!(matches!(plan.rank(2), Err(EngineError::NoSuchRank { nranks: 2, rank: RankId(2) })));
    // A first call that checks itself; there is no fault to find.
    let options = Options::new().check_calls(Check::First);
    let alone =
        RecursiveDoubling::new().spmd_plan_with(1, 1, DType::F32, ReduceOp::Sum, options)?;
    match alone.rank(0)?.run_in_place(&mut [1.0_f32]) {
        Ok(()) => {}
        Err(EngineError::WrongData(wrong)) => {
            let WrongData { rank, element, .. } = *wrong;
            panic!("element {element} of rank {rank}");
        }
        Err(other) => panic!("{other}"),
    }
    Ok(())
}

#[test]
fn a_rank_that_does_not_come_is_named() -> Result<(), Error> {
    let options = Options::new().deadline(Duration::from_millis(50));
    let plan = RingAllReduce::new().spmd_plan_with(2, 4, DType::F32, ReduceOp::Sum, options)?;
    match plan.rank(0)?.run_in_place(&mut [0.0_f32; 4]) {
        Err(EngineError::Missing(missing)) => {
            let Missing { rank, missing, .. } = *missing;
            assert_eq!((rank, u32::from(missing)), (RankId(0), 1));
        }
        other => panic!("{other:?}"),
    }
    // The message of a wait that is never met.
    let told = |stuck: &Stuck| format!("{stuck}");
    let _: fn(&Stuck) -> String = told;
    Ok(())
}

#[test]
fn calls_that_differ_are_told_apart() -> Result<(), Error> {
    let comm = Comm::new(2)?;
    let call = |rank: u32, count: usize| {
        let mut mine: Rank<'_> = comm.rank(rank).expect("one of two");
        mine.all_reduce(&mut vec![1_i32; count], ReduceOp::Sum)
    };
    let both = thread::scope(|threads| {
        let ranks = [threads.spawn(|| call(0, 4)), threads.spawn(|| call(1, 5))];
        ranks.map(|rank| rank.join().expect("no panic"))
    });
    for result in both {
        let Err(Error::Engine(EngineError::CallsDiffer(differ))) = result else {
            panic!("{result:?}")
        };
        let Differ { number, ranks, .. } = *differ;
        assert_eq!((number, ranks.len()), (1, 2));
    }
    Ok(())
}

#[test]
fn a_communicator_runs_what_it_is_told_to() -> Result<(), Error> {
    let comm = Comm::new(4)?
        .using_up_to(64, RecursiveDoubling::new())
        .using(RingAllReduce::new())
        .using_rooted(|root| RingBroadcast::new().root(root));
    for count in [4, 16, 17, 1000] {
        let mut buffers: Vec<Vec<i32>> = (0..4).map(|rank| vec![rank; count]).collect();
        let mut slices: Vec<&mut [i32]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
        comm.all_reduce(&mut slices, ReduceOp::Sum)?;
        assert_eq!(buffers, vec![vec![6; count]; 4]);
    }
    let mut buffers = [[0_u8], [1], [2], [3]];
    let mut slices = buffers.each_mut().map(|buffer| &mut buffer[..]);
    comm.broadcast(&mut slices, 3)?;
    assert_eq!(buffers, [[3]; 4]);

    // An algorithm with a fixed root serves that root alone, and its first call with another root is refused.
    let fixed = Comm::new(2)?.using(RingBroadcast::new().root(1)).using(Hasty::new());
    let (mut a, mut b) = ([1.0_f32], [2.0]);
    fixed.broadcast(&mut [&mut a[..], &mut b], 1)?;
    let refused = fixed.broadcast(&mut [&mut a[..], &mut b], 0);
    assert!(matches!(refused, Err(Error::WrongRoot { root: 1, called: 0, .. })), "{refused:?}");
    let hasty = fixed.all_reduce(&mut [&mut a[..], &mut b], ReduceOp::Sum).unwrap_err();
    assert_eq!(hasty.code(), Code::RaceWithCaller);
    Ok(())
}

#[test]
fn an_error_reads_alike_however_it_is_printed() {
    let error = Hasty::new().plan(2, 1, DType::F32, ReduceOp::Sum).unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
    let Error::Unproved(unproved) = error else { panic!("{error}") };
    let Unproved { algorithm, nranks, findings, .. } = *unproved;
    let worst: &Finding = &findings[0];
    assert_eq!((algorithm.as_str(), nranks, worst.code.as_str()), ("Hasty", 2, "E0306"));
    let engine = RingAllReduce::new().plan(2, 1, DType::F32, ReduceOp::Sum).unwrap();
    let engine: EngineError = engine.run::<f64>(&[], &mut []).unwrap_err();
    assert_eq!(format!("{engine:?}"), engine.to_string());
}

#[test]
fn what_is_chosen_runs() -> Result<(), Error> {
    let broken = Topology::from_str("full_mesh(8) without (0, 1)")?;
    let problem: Problem = "full_mush(8)".parse::<Topology>().unwrap_err();
    assert!(matches!(Error::from(problem), Error::Topology(_)));
    let choice: Choice = select(Collective::AllReduce, 8, 4 << 10, Some(&broken));
    let best: &Row = choice.best().expect("some fit");
    let (counts, predicted): (&Counts, &Time) = (&best.counts, &best.time);
    assert!(counts.steps > 0 && predicted.seconds() > 0.0);
    let plan = choice.plan(1 << 10, DType::I32, ReduceOp::Sum)?;
    assert_eq!(plan.schedule().algorithm, best.algorithm);
    run(&plan, 1, 8);
    let refused: &Refused = &choice.refused[0];
    assert!(!refused.reason.is_empty() && !matches!(best.numbers, Numbers::Form(_)));
    // By name, too: the topology goes to the parameter that asks for one.
    run(&library::TwoShotAround::new().plan_on(&broken, 64, DType::I32, ReduceOp::Sum)?, 1, 8);
    let ring = RingAllReduce::new().plan_on(&broken, 64, DType::I32, ReduceOp::Sum);
    assert_eq!(ring.unwrap_err().code(), Code::MissingLink);
    let around = RingAllReduce::new().ring(Ring::around(std::sync::Arc::new(broken)));
    run(&around.plan(8, 64, DType::I32, ReduceOp::Sum)?, 1, 8);

    let costs: &Costs = Costs::host();
    let same = select_with(costs, Collective::AllReduce, 8, 4 << 10, None);
    assert!(same.to_string().contains(&size(4 << 10)));
    let library = roundelay::select::library();
    let ring = library.iter().find(|a| a.name() == "RingAllReduce").expect("the ring is there");
    let own = std::slice::from_ref(ring);
    let beside =
        select_beside((own, Promises::new()), costs, Collective::AllReduce, 8, 4 << 10, None);
    assert_eq!(beside.ranked.iter().filter(|row| row.own).count(), 1);
    assert!(time(1e-6) == "1 us" && rate(1e9) == "1 GB/s");
    let _: Option<&CostForm> = None;
    // Nothing of the library runs an AllReduce of no ranks.
    let none = select(Collective::AllReduce, 0, 1, None).plan(1, DType::I32, ReduceOp::Sum);
    assert!(matches!(none, Err(Error::NoneFits { nranks: 0, .. })), "{none:?}");
    Ok(())
}

#[test]
fn promises_are_values() -> Result<(), Error> {
    let promises: Promises = "all_counts,roundings=1".parse().expect("two promises");
    assert!(promises.has(OrderClass::AllCounts) && !promises.has(OrderClass::AllRanks));
    let wrong: Result<Promises, NotPromises> = "alphabetical".parse();
    assert!(wrong.unwrap_err().to_string().contains("all_elements"));
    let call = roundelay::Call {
        collective: Collective::AllReduce,
        root: 0,
        count: 9,
        dtype: DType::F32,
        op: ReduceOp::Sum,
    };
    let kept = Comm::new(4)?.in_order(promises).order_of(&call)?;
    assert_eq!(kept, Promises::all());
    assert!(Comm::new(4)?.certificate_of(&call)?.proved.contains(&"no deadlock"));
    let ring = Comm::new(4)?.in_order(promises).using(RingAllReduce::new()).order_of(&call);
    assert!([Code::OrderDiffers, Code::TooManyRoundings].contains(&ring.unwrap_err().code()));
    Ok(())
}

#[test]
fn a_selection_is_a_value() {
    assert_eq!(VARIABLE, "ROUNDELAY_SELECTION");
    let costs = Costs::for_topology(None, 8, &GivenCosts::default());
    assert!(costs == *Costs::host() && costs.origin == Origin::Assumed);
    let text = "AllReduce nranks 8 bytes 0..=64: RingAllReduce";
    let selection: Selection = Selection::parse(text).expect("one line");
    let found: Option<&Entry> = selection.find(Collective::AllReduce, 8, 64);
    assert_eq!(found.map(|entry| entry.algorithm.name()), Some("RingAllReduce"));
    assert!(selection.find(Collective::AllReduce, 8, 65).is_none());
    let wrong: Vec<Wrong> = Selection::parse("AllReduce: Ring").unwrap_err();
    assert_eq!(wrong[0].line, 1);
    assert!(Selection::of_process().expect("no file is named").is_none());
}

#[test]
fn parameters_are_values() -> Result<(), Error> {
    let rings: Rings = [vec![0, 1, 2, 3], vec![0, 2, 1, 3]].into_iter().collect();
    let multi = library::MultiRingAllReduce::new().rings(rings);
    run(&multi.plan(4, 9, DType::I64, ReduceOp::Sum)?, 1_i64, 4);
    let tree = library::TreeAllReduce::new().tree(Tree::parents([-1, 0, 0, 1]));
    run(&tree.plan(4, 9, DType::I64, ReduceOp::Sum)?, 1_i64, 4);
    let trees = Trees::of([([-1, 0, 0, 1], 3), ([1, -1, 1, 0], 1)]);
    let weighted = library::TreesAllReduce::new().trees(trees);
    run(&weighted.plan(4, 9, DType::I64, ReduceOp::Sum)?, 1_i64, 4);
    let islands = library::HierarchicalAllReduce::new().groups(Groups::of(2));
    run(&islands.plan(4, 9, DType::I64, ReduceOp::Sum)?, 1_i64, 4);
    assert!(library::SOURCES.iter().any(|(file, _)| *file == "ring.coll"));
    let all: Vec<&dyn Algorithm> = roundelay::select::library().iter().map(|a| a as _).collect();
    assert!(all.iter().any(|algorithm| algorithm.name() == "RingAllReduce"));
    Ok(())
}
