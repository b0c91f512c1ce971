//! Tests of the checks before first calls, on every engine whose ranks call by themselves, with an engine around it that
//! changes an element of a result.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use roundelay_core::collective::Collective;
use roundelay_core::counts::{Block, Counts};
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::verify::Proved;

use crate::library::named;
use crate::lowering::{AnyRankPlan, Memory, RankCall, RankPart, Runs, UserBuffers};
use crate::network::{Channels, Hosts, HostsPlan, How, Levels, LevelsPlan};
use crate::shared_memory::{BlocksPlan, World, WorldPlan};
use crate::{Check, Error, Options, Plan, SpmdPlan};

const COUNT: u64 = 1000;

/// A rank whose engine changes a bit of one element in its next check.
struct Flips<P> {
    rank: P,
    /// One more than the element; 0 for none.
    element: AtomicU64,
    calls: AtomicU64,
}

impl<P: RankCall> RankCall for Flips<P> {
    fn part(&self) -> &RankPart {
        self.rank.part()
    }

    fn exchange(&self) -> Result<Box<AnyRankPlan>, Error> {
        self.rank.exchange()
    }

    fn memory(&self, like: *const u8, words: usize) -> Result<Memory<'_>, Error> {
        self.rank.memory(like, words)
    }

    unsafe fn make(&self, buffers: UserBuffers) -> Result<(), Error> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { self.rank.make(buffers)? };
        if let Some(element) = self.element.swap(0, Ordering::Relaxed).checked_sub(1) {
            assert!(element < self.rank.part().lens[1] as u64);
            // SAFETY: the output has this element, of 4 bytes.
            unsafe { *buffers.output.add(4 * element as usize) ^= 2 };
        }
        Ok(())
    }
}

fn kinds() -> Vec<(DType, ReduceOp)> {
    let of = |dtype: DType| ReduceOp::ALL.iter().map(move |op| (dtype, *op));
    DType::ALL.iter().copied().flat_map(of).filter(|(dtype, op)| op.takes(*dtype)).collect()
}

fn options(check: Check) -> Options {
    Options::new().deadline(Duration::from_secs(20)).check_calls(check)
}

/// Calls the plans of all ranks at once, on zeros; returns their results and the number of calls that each has made.
fn call<P: RankCall>(ranks: &[Runs<Flips<P>>], in_place: bool) -> Vec<(Result<(), Error>, u64)> {
    thread::scope(|threads| {
        let call = |rank: &Runs<Flips<P>>| {
            let [input, output] = rank.0.part().lens;
            let done = if in_place {
                rank.run_in_place(&mut vec![0_i32; input.max(output)])
            } else {
                rank.run(&vec![0_i32; input], &mut vec![0; output])
            };
            (done, rank.0.calls.load(Ordering::Relaxed))
        };
        let threads: Vec<_> = ranks.iter().map(|rank| threads.spawn(move || call(rank))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Has a wrong element found on one rank, and named alike by all; then the check passes, once.
fn found<P: RankCall>(ranks: Vec<P>, in_place: bool) {
    let zero = AtomicU64::default;
    let flips = |rank| Runs(Flips { rank, element: zero(), calls: zero() });
    let ranks: Vec<Runs<Flips<P>>> = ranks.into_iter().map(flips).collect();
    // The last rank that has an output.
    let bad = (0..ranks.len()).rfind(|at| ranks[*at].0.part().lens[1] > 0).expect("an output");
    let element = ranks[bad].0.part().lens[1] as u64 - 1;
    ranks[bad].0.element.store(element + 1, Ordering::Relaxed);
    let name = ranks[bad].0.part().call.name();
    for (done, calls) in call(&ranks, in_place) {
        let error = done.expect_err("the check finds it");
        let Error::WrongData(wrong) = &error else { panic!("{name}: {error}") };
        assert_eq!(
            (wrong.rank, wrong.element, wrong.number),
            (RankId(bad as u32), element, 1),
            "{error}"
        );
        assert_eq!(wrong.call, name);
        assert_eq!(calls, 1, "the call is not made");
    }
    for (turn, made) in [(1, 3), (2, 4)] {
        for (done, calls) in call(&ranks, in_place) {
            done.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(calls, made, "{name}: call {turn}");
        }
    }
}

/// Without the option, no call is added.
fn unchecked<P: RankCall>(ranks: Vec<P>) {
    let flips = |rank| Runs(Flips { rank, element: AtomicU64::new(0), calls: AtomicU64::new(0) });
    let ranks: Vec<_> = ranks.into_iter().map(flips).collect();
    for number in 1..3 {
        for (done, calls) in call(&ranks, false) {
            done.expect("a call");
            assert_eq!(calls, number);
        }
    }
}

/// Returns an algorithm for each collective.
fn proofs(nranks: u32) -> Vec<Proved> {
    let algorithms = [
        "RingAllReduce",
        "MeshReduceScatter",
        "MeshAllGather",
        "NhrBroadcast",
        "RingReduce",
        "MeshScatter",
        "MeshGather",
        "MeshAllToAll",
    ];
    let proofs: Vec<Proved> = algorithms.iter().map(|name| named(name, nranks)).collect();
    let collectives = proofs.iter().map(|proved| proved.schedule().collective);
    assert!(Collective::ALL.iter().all(|one| collectives.clone().any(|other| other == *one)));
    proofs
}

fn worlds(nranks: u32, check: Check) -> Vec<Arc<World>> {
    let worlds = World::together(nranks, options(check)).expect("worlds");
    worlds.into_iter().map(Arc::new).collect()
}

/// Hosts of two ranks and of one.
fn hosts() -> Vec<Arc<Hosts>> {
    let places = vec![vec![0, 2], vec![1]];
    let how = How { synchronous: false, patience: 3, most: 1000, fails_after: u64::MAX, seed: 1 };
    let channels = Channels::new(3, how);
    let mut all = Vec::new();
    for ranks in &places {
        let worlds = World::together(ranks.len() as u32, options(Check::First)).expect("worlds");
        for (world, rank) in worlds.into_iter().zip(ranks) {
            let carrier = channels[*rank as usize].clone();
            let hosts = Hosts::new(world, places.clone(), *rank, carrier).expect("a world");
            all.push(Arc::new(hosts));
        }
    }
    all.sort_by_key(|hosts| hosts.rank());
    all
}

#[test]
fn ranks_that_are_threads_find_wrong_data() {
    for proved in proofs(3) {
        for in_place in [false, proved.schedule().collective.has_in_place()] {
            for check in [Check::First, Check::Never] {
                let plan = SpmdPlan::new(&proved, COUNT, DType::I32, ReduceOp::Sum, options(check));
                let plan = Arc::new(plan.expect("a plan"));
                let ranks = (0..3).map(|rank| plan.clone().into_rank(RankId(rank)).expect("it").0);
                match check {
                    Check::First => found(ranks.collect(), in_place),
                    Check::Never => unchecked(ranks.collect()),
                }
            }
        }
    }
}

#[test]
fn ranks_that_are_processes_find_wrong_data() {
    for check in [Check::First, Check::Never] {
        let worlds = worlds(3, check);
        for proved in proofs(3) {
            for in_place in [false, proved.schedule().collective.has_in_place()] {
                let plan = |world: &Arc<World>| {
                    let plan = WorldPlan::new(world, &proved, COUNT, DType::I32, ReduceOp::Sum);
                    plan.expect("a plan").0
                };
                let ranks = worlds.iter().map(plan).collect();
                match check {
                    Check::First => found(ranks, in_place),
                    Check::Never => unchecked(ranks),
                }
            }
        }
    }
}

#[test]
fn ranks_of_several_hosts_find_wrong_data() {
    let hosts = hosts();
    for proved in proofs(3) {
        for in_place in [false, proved.schedule().collective.has_in_place()] {
            let plan = |hosts: &Arc<Hosts>| {
                let plan = HostsPlan::new(hosts, &proved, COUNT, DType::I32, ReduceOp::Sum);
                plan.expect("a plan").0
            };
            found(hosts.iter().map(plan).collect(), in_place);
        }
    }
    let two_levels = |hosts: &Arc<Hosts>| {
        let here = hosts.world().nranks();
        let levels = Levels {
            reduce: named("RingReduce", here),
            across: named("RingAllReduce", 2),
            broadcast: named("NhrBroadcast", here),
        };
        // Two parts.
        let plan = LevelsPlan::new(hosts, &levels, 100_000, DType::I32, ReduceOp::Sum);
        plan.expect("a plan").0
    };
    found(hosts.iter().map(two_levels).collect(), true);
}

/// Every type and op passes: known data are never rounded, also where an op divides.
#[test]
fn right_data_is_right_in_every_type() {
    for nranks in [1, 2, 3, 5] {
        let (proofs, worlds) = (proofs(nranks.max(2)), worlds(nranks.max(2), Check::First));
        for proved in proofs {
            let reduces = proved.schedule().collective.reduces();
            for (dtype, op) in kinds() {
                if !reduces && op != ReduceOp::Sum {
                    continue;
                }
                let run = |world: &Arc<World>| {
                    let plan = WorldPlan::new(world, &proved, 37, dtype, op).expect("a plan");
                    let [input, output] = plan.0.part().lens.map(|len| vec![0; len]);
                    let [input, mut output] = [input, output].map(|words: Vec<u64>| words);
                    let size = dtype.size();
                    let (from, to) = (crate::bytes_of(&input), crate::bytes_of_mut(&mut output));
                    let [inputs, outputs] = plan.0.part().lens.map(|len| len * size);
                    plan.run_bytes(&from[..inputs], &mut to[..outputs])
                };
                thread::scope(|threads| {
                    let all: Vec<_> =
                        worlds.iter().map(|world| threads.spawn(|| run(world))).collect();
                    for one in all {
                        one.join().expect("no panic").unwrap_or_else(|error| panic!("{error}"));
                    }
                });
            }
        }
    }
}

/// Plans for a vector of counts know its blocks.
#[test]
fn plans_for_a_vector_of_counts_find_wrong_data() {
    let vectors = [
        (Collective::AllGather, "MeshAllGather"),
        (Collective::ReduceScatter, "MeshReduceScatter"),
    ];
    let (hosts, worlds) = (hosts(), worlds(3, Check::First));
    for (collective, name) in vectors {
        let counts = Counts::new(collective, 3, &[5, 0, 7]).expect("counts");
        let proved = named(name, 3).for_counts(&counts).expect("blocks stay whole");
        let (dtype, op) = (DType::I32, ReduceOp::Sum);
        let plan = SpmdPlan::new(&proved, 1, dtype, op, options(Check::First)).expect("a plan");
        let plan = Arc::new(plan);
        let ranks = (0..3).map(|rank| plan.clone().into_rank(RankId(rank)).expect("it").0);
        found(ranks.collect(), false);
        let plan = |world| WorldPlan::new(world, &proved, 1, dtype, op).expect("a plan").0;
        found(worlds.iter().map(plan).collect(), false);
        let plan = |hosts| HostsPlan::new(hosts, &proved, 1, dtype, op).expect("a plan").0;
        found(hosts.iter().map(plan).collect(), false);
    }
}

/// A call with a count for each block is checked with its counts, wherever its blocks lie.
#[test]
fn calls_with_a_count_for_each_block_find_wrong_data() {
    let proved = named("MeshAllGather", 3);
    let counts = Counts::new(Collective::AllGather, 3, &[5, 0, 7]).expect("counts");
    let worlds = worlds(3, Check::First);
    let plans: Vec<BlocksPlan> = worlds
        .iter()
        .map(|world| BlocksPlan::new(world, &proved, DType::I32, ReduceOp::Sum).expect("a plan"))
        .collect();
    // Byte 4 of the output of rank 1 in its first call.
    worlds[1].inject(1, 0, || (), crate::shared_memory::Fault::Flip(4));
    for turn in 0..3 {
        thread::scope(|threads| {
            for (rank, plan) in (0..).map(RankId).zip(&plans) {
                let blocks = counts.of_rank(rank, RankId(0));
                threads.spawn(move || {
                    let len = Block::end(blocks.input()) as usize;
                    let mine = vec![rank.0 as i32 + 1; len];
                    let mut all = vec![0_i32; 12];
                    let (from, to) = (crate::bytes_of(&mine), crate::bytes_of_mut(&mut all));
                    let done = plan.run_bytes(&blocks, from, to);
                    if turn > 0 {
                        done.expect("a call");
                        assert_eq!(all, [1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3]);
                        return;
                    }
                    let error = done.expect_err("the check finds it");
                    let Error::WrongData(wrong) = &error else { panic!("{error}") };
                    assert_eq!((wrong.rank, wrong.element), (RankId(1), 1), "{error}");
                });
            }
        });
    }
}

/// One caller of all ranks.
#[test]
fn a_plan_for_all_ranks_is_checked_once() {
    for proved in proofs(3) {
        let plan =
            Plan::for_options(&proved, COUNT, DType::F32, ReduceOp::Avg, options(Check::First));
        let plan = plan.expect("a plan");
        let lens = |of: &dyn Fn(u32) -> usize| -> Vec<Vec<f32>> {
            (0..3).map(|rank| vec![1.0; of(rank)]).collect()
        };
        for _ in 0..2 {
            let inputs = lens(&|rank| plan.input_len(rank));
            let mut outputs = lens(&|rank| plan.output_len(rank));
            let inputs: Vec<&[f32]> = inputs.iter().map(|input| &input[..]).collect();
            let mut made: Vec<&mut [f32]> = outputs.iter_mut().map(|o| &mut o[..]).collect();
            plan.run(&inputs, &mut made).expect("a run");
            assert!(outputs.iter().flatten().all(|x| x.to_bits() == 1_f32.to_bits()));
        }
    }
}
