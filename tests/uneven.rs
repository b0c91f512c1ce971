//! Calls with a count for each block, against the definitions of the collectives, block by block.

use fastrand::Rng;
use roundelay::{
    Algorithm as _, Collective, DType, Level, Options, Plan, ReduceOp, ToPlan as _, library, select,
};
use roundelay_core::check::Frontend;
use roundelay_core::counts::Counts;
use roundelay_core::ids::{RankId, RegionId};
use roundelay_core::layout::Configured;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Buffer, Schedule};
use roundelay_core::syntax::Source;
use roundelay_core::uneven;
use roundelay_core::values::params::ParamValue;
use roundelay_core::verify::{Callers, Proved};
use roundelay_export::cuda::{Kernel, Protocol, Spec};
use roundelay_kernels::shared_memory::{self, WorldPlan};
use roundelay_tests::compile;

mod calls;

/// A vector of counts by its shape: `len` counts, none large enough to make a test slow.
fn vectors(len: usize) -> Vec<Vec<u64>> {
    let mut random = Rng::with_seed(len as u64);
    let mut random = |below: u64| random.u64(..below);
    let heavy = |at: usize| (0..len).map(|i| if i == at { 97 } else { 1 }).collect();
    let mut all = vec![
        vec![0; len],
        vec![1; len],
        heavy(0),
        heavy(len - 1),
        (0..len as u64).collect(),
        (0..len as u64).rev().map(|i| 3 * i + 1).collect(),
    ];
    for _ in 0..4 {
        all.push((0..len).map(|_| random(20)).collect());
        all.push((0..len).map(|_| if random(3) == 0 { random(60) } else { 0 }).collect());
    }
    all
}

/// An element of the block that a rank gives: of another value wherever one of the four numbers is another.
fn element(from: usize, to: usize, at: u64) -> i64 {
    (from as i64 * 31 + to as i64) * 1_000_000 + at as i64
}

/// The inputs and the outputs of all ranks, straight from the definition of a collective.
fn expected(
    collective: Collective,
    n: usize,
    root: usize,
    counts: &[u64],
) -> (Vec<Vec<i64>>, Vec<Vec<i64>>) {
    let block = |from: usize, to: usize, count: u64| -> Vec<i64> {
        (0..count).map(|at| element(from, to, at)).collect()
    };
    let ranks = 0..n;
    let all = |of: &dyn Fn(usize) -> Vec<i64>| -> Vec<i64> { ranks.clone().flat_map(of).collect() };
    let inputs = ranks.clone().map(|rank| match collective {
        Collective::AllGather | Collective::Gather => block(rank, 0, counts[rank]),
        Collective::ReduceScatter => all(&|to| block(rank, to, counts[to])),
        Collective::Scatter if rank == root => all(&|to| block(rank, to, counts[to])),
        Collective::Scatter => Vec::new(),
        _ => all(&|to| block(rank, to, counts[rank * n + to])),
    });
    let outputs = ranks.clone().map(|rank| match collective {
        Collective::AllGather => all(&|from| block(from, 0, counts[from])),
        Collective::Gather if rank == root => all(&|from| block(from, 0, counts[from])),
        Collective::Gather => Vec::new(),
        Collective::ReduceScatter => (0..counts[rank])
            .map(|at| ranks.clone().map(|from| element(from, rank, at)).sum())
            .collect(),
        Collective::Scatter => block(root, rank, counts[rank]),
        _ => all(&|from| block(from, rank, counts[from * n + rank])),
    });
    (inputs.collect(), outputs.collect())
}

/// Runs a vector of counts at every level, apart and in place.
fn holds(proved: &Proved, counts: &[u64]) {
    let schedule = proved.schedule();
    let (n, root) = (schedule.nranks as usize, schedule.root.index());
    let name = format!("{} at {n}, root {root}, {counts:?}", schedule.algorithm);
    let vector = Counts::new(schedule.collective, schedule.nranks, counts).expect(&name);
    let uneven = proved.for_counts(&vector).expect(&name);
    let (inputs, wanted) = expected(schedule.collective, n, root, counts);
    for level in [Level::O0, Level::O1, Level::O2] {
        let options = Options::default().level(level).workers(1);
        let plan = Plan::for_options(&uneven, 1, DType::I64, ReduceOp::Sum, options).expect(&name);
        let mut outputs: Vec<Vec<i64>> = wanted.iter().map(|out| vec![-1; out.len()]).collect();
        let reads: Vec<&[i64]> = inputs.iter().map(Vec::as_slice).collect();
        let mut writes: Vec<&mut [i64]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        plan.run(&reads, &mut writes).expect(&name);
        assert_eq!(outputs, wanted, "{name}, {level}");
        if !proved.proof().in_place {
            continue;
        }
        let ranks = || (0..n as u32).map(RankId);
        let mut buffers: Vec<Vec<i64>> =
            ranks().map(|rank| vec![-1; plan.in_place_len(rank)]).collect();
        let starts = |rank: RankId| {
            let before = |unit: u32, of: &dyn Fn(u32) -> u64| (0..unit).map(of).sum::<u64>();
            let (from, to) = schedule.collective.alias(rank, schedule.root).starts();
            let count = |unit: u32| counts[unit as usize];
            (before(from, &count) as usize, before(to, &count) as usize)
        };
        for (rank, buffer) in ranks().zip(&mut buffers) {
            let input = &inputs[rank.index()];
            buffer[starts(rank).0..][..input.len()].copy_from_slice(input);
        }
        let mut views: Vec<&mut [i64]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
        plan.run_in_place(&mut views).expect(&name);
        for (rank, buffer) in ranks().zip(&buffers) {
            let wanted = &wanted[rank.index()];
            assert_eq!(
                buffer[starts(rank).1..][..wanted.len()],
                wanted[..],
                "{name}, {level}, in place"
            );
        }
    }
}

/// The algorithms of the library that have blocks of ranks.
fn with_blocks() -> impl Iterator<Item = &'static Configured> {
    select::library().iter().filter(|algorithm| algorithm.collective().blocks(1).is_some())
}

#[test]
fn every_algorithm_serves_every_vector_or_says_why_not() {
    let mut refused = Vec::new();
    for algorithm in with_blocks() {
        for n in (1..=9).chain([12, 16, 17]) {
            for root in 0..if algorithm.collective().is_rooted() { n.min(3) } else { 1 } {
                let mut algorithm = algorithm.clone();
                if algorithm.collective().is_rooted() {
                    algorithm.set("root", ParamValue::Int(root.into())).expect("a root");
                }
                let Ok(schedule) = algorithm.schedule(n) else { continue };
                let proved =
                    Proved::new(schedule).unwrap_or_else(|_| panic!("{}", algorithm.name()));
                if let Err(found) = uneven::blocks(proved.schedule()) {
                    let code = found[0].code.as_str();
                    assert_eq!(code, "E0319");
                    refused.push(format!("{} at {n}: {}", algorithm.name(), found[0].title));
                    continue;
                }
                let blocks = algorithm.collective().blocks(n).expect("it has blocks");
                for counts in vectors(blocks as usize) {
                    holds(&proved, &counts);
                }
            }
        }
    }
    assert_eq!(refused, [""; 0], "the library serves a count for each block");
}

/// Ranks that call from threads of their own have the results of one caller.
#[test]
fn ranks_that_call_by_themselves_agree() {
    let counts = [5, 0, 130, 7];
    let (inputs, wanted) = expected(Collective::ReduceScatter, 4, 0, &counts);
    let options = Options::default();
    let plan = library::RingReduceScatter::new()
        .spmd_plan_of_blocks(4, &counts, DType::I64, ReduceOp::Sum, options)
        .expect("a plan");
    std::thread::scope(|threads| {
        for rank in 0..4 {
            let mine = plan.rank(rank).expect("a rank");
            let (input, wanted) = (&inputs[rank as usize], &wanted[rank as usize]);
            threads.spawn(move || {
                for _ in 0..20 {
                    let mut output = vec![0; wanted.len()];
                    mine.run(input, &mut output).expect("a run");
                    assert_eq!(output, *wanted);
                }
            });
        }
    });
}

#[test]
fn bad_vectors_are_refused_before_anything_moves() {
    let code = |counts: &[u64]| {
        let ring = library::RingAllGather::new();
        let options = Options::default();
        let plan = ring.plan_of_blocks(3, counts, DType::I64, ReduceOp::Sum, options);
        plan.map(drop).map_err(|why| why.code().as_str())
    };
    assert_eq!(code(&[1, 2]), Err("E0432"));
    assert_eq!(code(&[1, 2, 3, 4]), Err("E0432"));
    assert_eq!(code(&[u64::MAX, 1, 1]), Err("E0432"));
    assert_eq!(code(&[1 << 46, 1, 0]), Err("E0432"));
    assert_eq!(code(&[0, 0, 0]), Ok(()));
    let ring = library::RingAllReduce::new();
    let plan = ring.plan_of_blocks(3, &[1, 1, 1], DType::I64, ReduceOp::Sum, Options::default());
    assert_eq!(plan.map(drop).unwrap_err().code().as_str(), "E0432");
    let plan = library::RingAllGather::new()
        .plan_of_blocks(3, &[1, 0, 2], DType::I32, ReduceOp::Sum, Options::default())
        .expect("a plan");
    let mut outputs = [[0_i32; 3]; 3];
    let [a, b, c] = &mut outputs;
    let short = plan.run(&[&[7], &[1], &[8, 9]], &mut [a, b, c]);
    assert_eq!(short.unwrap_err().code().as_str(), "E0402");
    assert_eq!(outputs, [[0; 3]; 3]);
}

/// Changes one thing of a schedule: the place of an operand, the slot of a region for all ops, or the order of two ops.
fn mutate(schedule: &mut Schedule, random: &mut impl FnMut(usize) -> usize) {
    for _ in 0..=random(2) {
        match random(4) {
            0 | 1 if !schedule.operands.is_empty() => {
                let (at, region) =
                    (random(schedule.operands.len()), random(schedule.regions.len()));
                schedule.operands[at].region = RegionId(region as u32);
            }
            2 => {
                let at = random(schedule.regions.len().max(1));
                let Some(region) = schedule.regions.get_mut(at) else { continue };
                if let Buffer::Scratch(id) = region.buffer {
                    region.slot = random(schedule.scratch[id.index()].slots as usize) as u32;
                } else if let (Some(lo), Some(hi)) =
                    (region.lo.plus(Rat::whole(1)), region.hi.plus(Rat::whole(1)))
                {
                    (region.lo, region.hi) = (lo, hi);
                }
            }
            _ => {
                let at = random(schedule.ops.len().max(2) - 1);
                if at + 1 < schedule.ops.len() {
                    schedule.ops.swap(at, at + 1);
                }
            }
        }
    }
}

/// A mutant that is proved for equal counts, and said to serve every vector, is right for each of them.
#[test]
fn no_mutant_is_wrong_for_a_vector() {
    let mut random = Rng::with_seed(7);
    let mut random = |below: usize| random.usize(..below.max(1));
    let (mut mutants, mut served, mut refused) = (0, 0, 0);
    for algorithm in with_blocks() {
        for n in [2, 3, 4, 6] {
            let Ok(schedule) = algorithm.schedule(n) else { continue };
            for _ in 0..60 {
                let mut mutant = schedule.clone();
                mutate(&mut mutant, &mut random);
                mutants += 1;
                let Ok(proved) = Proved::new(mutant) else { continue };
                if uneven::blocks(proved.schedule()).is_err() {
                    refused += 1;
                    continue;
                }
                served += 1;
                let blocks = algorithm.collective().blocks(n).expect("it has blocks");
                for counts in vectors(blocks as usize) {
                    holds(&proved, &counts);
                }
            }
        }
    }
    println!("{mutants} mutants: {served} serve every vector, {refused} serve equal counts alone");
    assert!(mutants > 2000 && served > 100);
}

/// A place in the scratch `work` of a rank: its unit and its half.
type Place = (usize, usize, usize);

/// Returns a random AllGather that is right for equal counts: halves of blocks and whole blocks wander through places of
/// scratch, in phases between barriers, and each output takes its halves from anywhere that holds them.
fn wandering(n: usize, random: &mut impl FnMut(usize) -> usize) -> String {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;
    let mut held: BTreeMap<Place, usize> = BTreeMap::new();
    let mut text = String::from(
        "#[out_of_place]\nalgorithm Wandering() -> AllGather {\n    scratch work: like output;\n\
         \x20   view half = output.split(2 * nranks);\n    view own = input.split(2);\n\
         \x20   view place = work.split(2 * nranks);\n",
    );
    let barrier = "    for d in 1..nranks { peer((rank + d) % nranks).TxAck(); }\n\
                   \x20   for d in 1..nranks { peer((rank + d) % nranks).RxAck(); }\n";
    for _ in 0..2 + random(4) {
        let before = held.clone();
        let mut written: Vec<Place> = Vec::new();
        text.push_str(barrier);
        for rank in 0..n {
            let (unit, whole) = (random(n), random(2) == 0);
            let halves = if whole {
                0..2
            } else {
                let one = random(2);
                one..one + 1
            };
            // Both halves of a whole come from one place, which holds one block.
            let (place, block): (Option<(usize, usize)>, usize) = {
                let from = random(n);
                let place = (random(n), random(n));
                let there: Vec<_> = halves
                    .clone()
                    .map(|half| before.get(&(place.0, place.1, half)).copied())
                    .collect();
                match there[..] {
                    [Some(block)] if random(2) == 0 => (Some(place), block),
                    [Some(one), Some(other)] if one == other && random(2) == 0 => {
                        (Some(place), one)
                    }
                    _ => (None, from),
                }
            };
            if place == Some((rank, unit)) {
                continue;
            }
            let reads = |half: usize| place.map(|(of, unit)| (of, unit, half));
            let mine = |half: usize| (rank, unit, half);
            // A place that is read in this phase keeps its data.
            let busy = |place: Place| text.contains(&format!("/* reads {place:?} */"));
            if halves
                .clone()
                .any(|half| busy(mine(half)) || reads(half).is_some_and(|p| written.contains(&p)))
            {
                continue;
            }
            for half in halves {
                let source = match place {
                    Some((of, unit)) => format!("peer({of}).place[{}]", 2 * unit + half),
                    None => format!("peer({block}).own[{half}]"),
                };
                let marks = reads(half).map(|p| format!(" /* reads {p:?} */")).unwrap_or_default();
                let to = 2 * unit + half;
                let _ = writeln!(
                    text,
                    "    if rank == {rank} {{ copy({source}, local.place[{to}]); }}{marks}"
                );
                held.insert(mine(half), block);
                written.push(mine(half));
            }
        }
        text = text.replace("/* reads ", "/* read ");
    }
    text.push_str(barrier);
    for rank in 0..n {
        for block in 0..n {
            for half in 0..2 {
                let holders: Vec<Place> = held
                    .iter()
                    .filter(|(place, of)| place.2 == half && **of == block)
                    .map(|(p, _)| *p)
                    .collect();
                let source = match holders.len() {
                    0 => format!("peer({block}).own[{half}]"),
                    some => {
                        let (of, unit, half) = holders[random(some)];
                        format!("peer({of}).place[{}]", 2 * unit + half)
                    }
                };
                let to = 2 * block + half;
                let _ =
                    writeln!(text, "    if rank == {rank} {{ copy({source}, local.half[{to}]); }}");
            }
        }
    }
    text.push_str(barrier);
    text.push_str("}\n");
    text
}

/// A random program that is right for equal counts is served, and then right for every vector, or refused.
#[test]
fn blocks_that_wander_are_right_or_refused() {
    let mut random = Rng::with_seed(99);
    let mut random = |below: usize| random.usize(..below.max(1));
    let (mut served, mut refused, mut wrong) = (0, 0, 0);
    for _ in 0..400 {
        let n = 2 + random(3);
        let text = wandering(n, &mut random);
        let source = Source::from_text("wandering.coll", &text);
        let program = compile(&source, Frontend::File).unwrap_or_else(|e| panic!("{text}{e:?}"));
        let algorithm = Configured::new(program.algorithms[0].clone(), &source);
        let schedule = algorithm.schedule(n as u32).unwrap_or_else(|e| panic!("{text}{e:?}"));
        let Ok(proved) = Proved::new(schedule) else {
            wrong += 1;
            continue;
        };
        if uneven::blocks(proved.schedule()).is_err() {
            refused += 1;
            continue;
        }
        served += 1;
        for counts in vectors(n) {
            holds(&proved, &counts);
        }
    }
    println!("{served} serve every vector, {refused} serve equal counts alone, {wrong} are wrong");
    assert!(served > 30 && refused > 30 && wrong < 100, "{served} {refused} {wrong}");
}

/// Ranks of a world compare their vectors: where they differ, the call is void for all of them.
#[test]
fn ranks_with_other_vectors_are_refused() {
    let proved = roundelay_core::prove(&library::RingAllGather::new(), 2).expect("a ring");
    let of = |counts: &[u64]| {
        let counts = Counts::new(Collective::AllGather, 2, counts).expect("two counts");
        proved.for_counts(&counts).expect("every vector")
    };
    let worlds = shared_memory::World::together(2, Options::default()).expect("worlds");
    std::thread::scope(|threads| {
        for (rank, world) in worlds.into_iter().enumerate() {
            let of = &of;
            threads.spawn(move || {
                let world = std::sync::Arc::new(world);
                let plan = |counts: &[u64]| {
                    WorldPlan::new(&world, &of(counts), 1, DType::I64, ReduceOp::Sum)
                        .expect("a plan")
                };
                let (alike, other) = (plan(&[3, 1]), plan([&[2, 2], &[2, 3]][rank]));
                let mut output = [0; 4];
                let input = [[1_i64, 2, 3].as_slice(), &[4]][rank];
                alike.run(input, &mut output).expect("the vectors are equal");
                assert_eq!(output, [1, 2, 3, 4]);
                let (input, mut output) =
                    ([[5_i64, 6].as_slice(), &[7, 8, 9]][rank], vec![0; 4 + rank]);
                let refused = other.run(input, &mut output).expect_err("the vectors differ");
                assert_eq!(refused.code().as_str(), "E0414");
                assert!(output.iter().all(|element| *element == 0), "nothing moved");
                let mut output = [0; 4];
                let input = [[1_i64, 2, 3].as_slice(), &[4]][rank];
                alike.run(input, &mut output).expect("the world goes on");
            });
        }
    });
}

/// Loops of a kernel have one count: they are not made of a schedule for a vector.
#[test]
fn kernels_of_loops_refuse_a_count_for_each_block() {
    let ring = with_blocks().find(|known| known.name() == "RingAllGather").expect("a ring");
    let proved = Proved::new(ring.schedule(2).expect("a schedule")).expect("a proof");
    let counts = Counts::new(Collective::AllGather, 2, &[5, 1]).expect("two counts");
    let uneven = proved.for_counts(&counts).expect("every vector");
    let spec = Spec {
        element: DType::F32,
        op: ReduceOp::Sum,
        protocol: Protocol::Direct,
        vector: 16,
        callers: Callers::Each,
    };
    assert!(Kernel::of_loops(ring, &proved, spec).is_ok());
    let refused = Kernel::of_loops(ring, &uneven, spec).map(drop).expect_err("one count");
    assert_eq!(refused[0].code.as_str(), "E0423");
}
