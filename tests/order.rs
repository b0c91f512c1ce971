//! Promises about the order of reductions and their roundings: the bits of results are those of the plain fold in the
//! promised order, at every place, count, rank and level; sums stay within the bound of the certificate; an algorithm
//! that breaks a promise is refused.

use roundelay::half::{bf16, f16};
use roundelay::library::{
    HalvingDoublingAllReduce, OrderedAllReduce, OrderedOneShotAllReduce, RingAllReduce,
    TreeAllReduce,
};
use roundelay::select::library;
use roundelay::{
    Algorithm as _, Call, Collective, Comm, DType, Element, Level, Options, OrderClass, Plan,
    Promises, ReduceOp,
};
use roundelay_core::check::Frontend;
use roundelay_core::ids::RankId;
use roundelay_core::layout::Configured;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Proved;
use roundelay_core::{prove, prove_source};
use roundelay_tests::compile;

/// A float narrower than f32, or f32 itself.
trait Float: Element {
    fn wide(self) -> f32;
    fn rounded(wide: f32) -> Self;
    fn bits(self) -> u32;
}

macro_rules! floats {
    ($($float:ty)*) => {$(
        impl Float for $float {
            fn wide(self) -> f32 {
                self.to_f32()
            }
            fn rounded(wide: f32) -> Self {
                Self::from_f32(wide)
            }
            fn bits(self) -> u32 {
                self.to_bits().into()
            }
        }
    )*};
}

floats! { f16 bf16 }

impl Float for f32 {
    fn wide(self) -> f32 {
        self
    }
    fn rounded(wide: f32) -> Self {
        wide
    }
    fn bits(self) -> u32 {
        self.to_bits()
    }
}

/// Returns a number of rank `rank`: sums of them round, and their orders differ.
fn contribution<T: Float>(rank: usize, at: usize) -> T {
    let mixed = (rank as u64 * 0x9e37_79b9 + at as u64 * 0x85eb_ca6b + 1)
        .wrapping_mul(0x2545_f491_4f6c_dd1d)
        >> 40;
    T::rounded((mixed as f32 / 4e6 - 2.0) * [1.0, 37.0, 0.01][(mixed % 3) as usize])
}

/// The sums whose bits depend on the order and on roundings.
const SUMS: [ReduceOp; 2] = [ReduceOp::Sum, ReduceOp::Avg];

/// The plain fold in the promised order: 0 op (1 op (2 op ...)), in f32, divided for an average, and one rounding.
fn plain<T: Float>(parts: &[T], op: ReduceOp) -> T {
    let (last, rest) = parts.split_last().expect("a rank");
    let sum = rest.iter().rev().fold(last.wide(), |sum, part| part.wide() + sum);
    T::rounded(if op == ReduceOp::Avg { sum / parts.len() as f32 } else { sum })
}

fn all_reduced<T: Float>(comm: &Comm, inputs: &[Vec<T>], op: ReduceOp) -> Vec<Vec<T>> {
    let mut buffers = inputs.to_vec();
    let mut lent: Vec<&mut [T]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
    comm.all_reduce(&mut lent, op).expect("a run");
    buffers
}

/// Every rank contributes one number, at every place: the result has the same bits at every place.
fn one_number_everywhere<T: Float>(nranks: usize, level: Level, op: ReduceOp) {
    let comm = Comm::with_options(nranks as u32, Options::new().level(level)).expect("ranks");
    let comm = comm.in_order(Promises::all());
    for count in (1..20).chain([97, 1000, 10_000]) {
        let parts: Vec<T> = (0..nranks).map(|rank| contribution(rank, 7)).collect();
        let inputs: Vec<Vec<T>> = parts.iter().map(|part| vec![*part; count]).collect();
        let wanted = plain(&parts, op).bits();
        for (rank, output) in all_reduced(&comm, &inputs, op).iter().enumerate() {
            let other = output.iter().position(|element| element.bits() != wanted);
            assert_eq!(other, None, "rank {rank} of {nranks}, {count} elements, {level} {op}");
        }
        let blocks: Vec<Vec<T>> = parts.iter().map(|part| vec![*part; count * nranks]).collect();
        let given: Vec<&[T]> = blocks.iter().map(Vec::as_slice).collect();
        let mut scattered = vec![vec![T::rounded(0.0); count]; nranks];
        let mut lent: Vec<&mut [T]> = scattered.iter_mut().map(Vec::as_mut_slice).collect();
        comm.reduce_scatter(&given, &mut lent, op).expect("a run");
        let same = scattered.iter().flatten().all(|element| element.bits() == wanted);
        assert!(same, "blocks of {nranks} ranks, {count} elements, {level}");
    }
}

#[test]
fn an_element_has_one_result_at_every_place_count_and_level() {
    for level in [Level::O0, Level::O1, Level::O2] {
        for nranks in [2, 3, 8, 11, 17] {
            one_number_everywhere::<bf16>(nranks, level, ReduceOp::Sum);
        }
        one_number_everywhere::<bf16>(3, level, ReduceOp::Avg);
        one_number_everywhere::<f16>(5, level, ReduceOp::Avg);
        one_number_everywhere::<f32>(9, level, ReduceOp::Sum);
    }
}

/// Different numbers at every place, and a ring whose partial sums are f32: the bits are those of the plain fold.
#[test]
fn results_are_those_of_the_plain_fold() {
    const COUNT: usize = 1003;
    for (nranks, op) in [2, 3, 4, 9, 16].into_iter().flat_map(|n| SUMS.map(|op| (n, op))) {
        let comm = Comm::new(nranks as u32).expect("ranks").in_order(Promises::all());
        let inputs: Vec<Vec<bf16>> =
            (0..nranks).map(|rank| (0..COUNT).map(|at| contribution(rank, at)).collect()).collect();
        for output in all_reduced(&comm, &inputs, op) {
            for (at, element) in output.iter().enumerate() {
                let parts: Vec<bf16> = inputs.iter().map(|input| input[at]).collect();
                assert_eq!(
                    element.bits(),
                    plain(&parts, op).bits(),
                    "{at} of {nranks} ranks, {op}"
                );
            }
        }
    }
}

/// An average lies among its contributions, so it needs no wider type than they do.
#[test]
fn an_average_of_large_numbers_is_no_infinity() {
    let comm = Comm::new(3).expect("ranks").in_order(Promises::all());
    let average = all_reduced(&comm, &vec![vec![f16::from_f32(60000.0); 5]; 3], ReduceOp::Avg);
    assert!(average.iter().flatten().all(|x| x.to_f32().to_bits() == 60000_f32.to_bits()));
    for (dtype, largest) in [(DType::F8E4M3, 0x7e_u8), (DType::F8E5M2, 0x7b)] {
        let call =
            Call { collective: Collective::AllReduce, root: 0, count: 5, dtype, op: ReduceOp::Avg };
        std::thread::scope(|threads| {
            for rank in 0..3 {
                let mut rank = comm.rank(rank).expect("one of three");
                threads.spawn(move || {
                    let mut bytes = [largest; 5];
                    rank.call_bytes_in_place(call, &mut bytes).expect("a run");
                    assert_eq!(bytes, [largest; 5], "{dtype}");
                });
            }
        });
    }
}

#[test]
fn one_shot_and_two_shots_have_one_order() {
    for nranks in [2, 3, 8, 13] {
        let [one, two] = [
            prove(&OrderedOneShotAllReduce::new(), nranks),
            prove(&OrderedAllReduce::new(), nranks),
        ]
        .map(|proved| proved.expect("right"));
        assert_eq!(one.proof().orders.differs(&two.proof().orders), None);
    }
}

/// Returns a sum of inputs that cancel, and the share of the sum of absolute values by which each result is off.
fn worst_error<T: Float>(plan: &Plan, seed: usize) -> f64 {
    let schedule = plan.schedule();
    let ranks: Vec<RankId> = (0..schedule.nranks).map(RankId).collect();
    let inputs: Vec<Vec<T>> = ranks
        .iter()
        .map(|rank| {
            let turned = |at| if rank.0 % 2 == 0 { at } else { at + 1 };
            let number = |at| {
                let part: T = contribution(rank.index() / 2 + seed, turned(at) / 2);
                // Pairs of ranks cancel but for some small numbers.
                let sign = if rank.0 % 2 == 0 { 1.0 } else { -1.0 };
                T::rounded(sign * part.wide() * [1.0, 1.0, 0.998][at % 3])
            };
            (0..plan.input_len(*rank)).map(number).collect()
        })
        .collect();
    let mut outputs: Vec<Vec<T>> =
        ranks.iter().map(|rank| vec![T::rounded(0.0); plan.output_len(*rank)]).collect();
    let given: Vec<&[T]> = inputs.iter().map(Vec::as_slice).collect();
    let mut lent: Vec<&mut [T]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    plan.run(&given, &mut lent).expect("a run");
    let mut worst = 0.0_f64;
    for (rank, output) in outputs.iter().enumerate() {
        for (at, element) in output.iter().enumerate() {
            let first = if schedule.collective == Collective::ReduceScatter {
                rank * output.len()
            } else {
                0
            };
            let parts = inputs.iter().map(|input| f64::from(input[first + at].wide()));
            // The numbers have few digits, so f64 is exact.
            let (exact, absolute) =
                parts.fold((0.0, 0.0), |(sum, all), part| (sum + part, all + part.abs()));
            if absolute > 0.0 {
                worst = worst.max((f64::from(element.wide()) - exact).abs() / absolute);
            }
        }
    }
    worst
}

#[test]
fn no_sum_is_farther_off_than_its_certificate_says() {
    let mut tight = [0.0_f64; 2];
    for algorithm in library().iter().filter(|algorithm| algorithm.collective().reduces()) {
        for nranks in [4, 8] {
            let Ok(proved) = prove(algorithm, nranks) else { continue };
            let reduction = proved.proof().reduction.as_ref().expect("it reduces");
            let order = reduction.in_every_mode();
            assert!(!proved.proof().scale_outputs, "{} divides at the end", algorithm.name());
            for level in [Level::O0, Level::O2] {
                let plan = |dtype| {
                    let options = Options::new().level(level);
                    Plan::for_options(&proved, 331, dtype, ReduceOp::Sum, options).expect("a plan")
                };
                for (dtype, worst) in [
                    (DType::Bf16, worst_error::<bf16>(&plan(DType::Bf16), 3)),
                    (DType::F16, worst_error::<f16>(&plan(DType::F16), 5)),
                    (DType::F32, worst_error::<f32>(&plan(DType::F32), 9)),
                ] {
                    let bound = order.error_bound(dtype);
                    let name = algorithm.name();
                    assert!(worst <= bound, "{name} at {nranks}, {dtype}: {worst} > {bound}");
                    let which = usize::from(order.roundings == 1);
                    if dtype == DType::Bf16 {
                        tight[which] = tight[which].max(worst / bound);
                    }
                }
            }
        }
    }
    // The bound is no number out of reach.
    assert!(tight[0] > 0.2 && tight[1] > 0.5, "{tight:?}");
}

/// Returns the codes of the errors of a page.
fn codes(text: &str, nranks: u32) -> Vec<String> {
    let source = Source::from_text("mutant.coll", text);
    let program = compile(&source, Frontend::File).unwrap_or_else(|all| panic!("{text}: {all:?}"));
    let [algorithm] = &program.algorithms[..] else { panic!("one algorithm: {text}") };
    let found = prove_source(&Configured::new(algorithm.clone(), &source), nranks).err();
    found.into_iter().flatten().map(|error| error.code.to_string()).collect()
}

/// The ordered algorithms, each changed at one place: each change breaks a promise, and is refused.
#[test]
fn a_broken_promise_is_refused() {
    let page = roundelay::library::SOURCES.iter().find(|(name, _)| *name == "ordered.coll");
    let (_, page) = page.expect("the library has it");
    let algorithms: Vec<&str> = page.split("\n\n/// ").skip(1).collect();
    let attributes = "#[order(all_ranks, all_elements, all_counts, rank_order)]\n";
    assert_eq!(algorithms.len(), 4);
    for algorithm in algorithms {
        let algorithm = format!("/// {algorithm}");
        assert_eq!(codes(&algorithm, 4), [""; 0], "{algorithm}");
        let mutants = [
            // Rounds after each reduce.
            (" as f32", "", "E0320"),
            // Begins with rank 0, and ends with rank nranks - 2.
            ("inbox[nranks - 1 - r]", "inbox[r - 1]", "E0317"),
        ];
        for (from, to, code) in mutants {
            assert!(algorithm.contains(from), "{algorithm}");
            let mutant = algorithm.replace(from, to);
            assert!(codes(&mutant, 4).iter().all(|found| found == code), "{mutant}");
            assert!(!codes(&mutant, 4).is_empty(), "{mutant}");
        }
        // Each rank begins with its own contribution: other blocks have another order.
        let turned = algorithm
            .replace("inbox[nranks - 1],", "inbox[rank],")
            .replace("inbox[nranks - 1 - r]", "inbox[(rank + r) % nranks]");
        let promised = turned.replace(attributes, "#[order(all_elements)]\n");
        assert_ne!(promised, algorithm);
        if !algorithm.contains("OrderedReduce(") {
            assert_eq!(codes(&promised, 4), ["E0317"], "{promised}");
        }
        // A second rounding, before the last contribution.
        let twice =
            algorithm.replace("for r in 1..nranks {\n", "for r in 1..nranks - 1 {\n").replace(
                "    copy(local.sum, local.output);",
                "    copy(local.sum, local.output);\n    reduce(local.inbox[0], local.output);",
            );
        if twice.contains("reduce(local.inbox[0], local.output)") {
            assert_eq!(codes(&twice, 4), ["E0320"], "{twice}");
        }
    }
}

/// A communicator runs algorithms that keep its promises alone, and one order at all sizes.
#[test]
fn communicators_keep_their_promises() {
    let counts = Promises::new().keeping(OrderClass::AllCounts);
    let run = |comm: Comm| {
        let mut buffers = vec![vec![1.0_f32; 9]; 8];
        let mut lent: Vec<&mut [f32]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
        comm.all_reduce(&mut lent, ReduceOp::Sum).map_err(|error| error.code().to_string())
    };
    let comm = || Comm::new(8).expect("ranks");
    assert_eq!(run(comm().using(RingAllReduce::new())), Ok(()));
    assert_eq!(run(comm().in_order(counts).using(RingAllReduce::new())), Err("E0317".to_owned()));
    // A tree has one order for every count, and so has halving and doubling: another one.
    assert_eq!(run(comm().in_order(counts).using(TreeAllReduce::new())), Ok(()));
    let two = comm()
        .in_order(counts)
        .using_up_to(1 << 10, TreeAllReduce::new())
        .using(HalvingDoublingAllReduce::new());
    assert_eq!(run(two), Err("E0317".to_owned()));
    // The library's choice for the other sizes is another order, too.
    let one = comm().in_order(counts).using_up_to(1 << 10, TreeAllReduce::new());
    assert_eq!(run(one), Err("E0317".to_owned()));
    let ordered = comm().in_order(counts).using_up_to(1 << 10, OrderedAllReduce::new());
    assert_eq!(run(ordered), Ok(()));
    let once = Promises::new().roundings(1);
    assert_eq!(run(comm().in_order(once).using(TreeAllReduce::new())), Err("E0320".to_owned()));
    assert_eq!(run(comm().in_order(Promises::all())), Ok(()));
}

/// Sums that nest otherwise are not what was promised.
#[test]
fn a_promised_order_is_not_nested_otherwise() {
    let options = Options::new().reassociate(true);
    let comm = Comm::with_options(5, options).expect("ranks").in_order(Promises::all());
    let inputs: Vec<Vec<f32>> =
        (0..5).map(|rank| (0..64).map(|at| contribution(rank, at)).collect()).collect();
    let output = &all_reduced(&comm, &inputs, ReduceOp::Sum)[0];
    for (at, element) in output.iter().enumerate() {
        let parts: Vec<f32> = inputs.iter().map(|input| input[at]).collect();
        assert_eq!(element.bits(), plain(&parts, ReduceOp::Sum).bits(), "{at}");
    }
}

/// The certificates of some algorithms, by hand.
#[test]
fn certificates_say_which_promises_hold() {
    let of = |name: &str, nranks: u32| -> String {
        let algorithm = library().iter().find(|known| known.name() == name).expect("the library's");
        let proved: Proved = prove(algorithm, nranks).expect("right");
        let order = proved.proof().reduction.as_ref().expect("it reduces").in_every_mode();
        Promises::from(order).to_string()
    };
    assert_eq!(of("RingAllReduce", 4), "all_ranks,every_run,roundings=3");
    assert_eq!(of("RingReduceScatter", 4), "all_ranks,all_counts,every_run,roundings=3");
    assert_eq!(of("TreeAllReduce", 8), "all_ranks,all_elements,all_counts,every_run,roundings=4");
    assert_eq!(
        of("HalvingDoublingAllReduce", 8),
        "all_ranks,all_elements,all_counts,every_run,roundings=3"
    );
    let all = "all_ranks,all_elements,all_counts,rank_order,every_run";
    assert_eq!(of("OneShotMeshAllReduce", 8), format!("{all},roundings=7"));
    for name in ["OrderedAllReduce", "OrderedReduceScatter", "OrderedReduce"] {
        assert_eq!(of(name, 8), format!("{all},roundings=1"));
    }
    assert_eq!(of("RingAllReduce", 2), format!("{all},roundings=1").replace(",rank_order", ""));
}
