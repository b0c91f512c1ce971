//! LL and LL128: whatever is passed on arrives as it is, from and to any element, when flags come again, too.

use std::time::Duration;

use fastrand::Rng;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_export::cuda::Protocol;

use crate::device::numbers::{any_element, fold, same};
use crate::device::shim::{Buffers, Executable, Job};

const TEXT: &str = include_str!("lines.cu");
const LINED: [Protocol; 2] = [Protocol::Ll, Protocol::Ll128];
const CREDITS: usize = 3;
/// Elements of the longest pass: each of three parts has lines.
const LONGEST: usize = 700;
/// Flags of 32 bits come again.
const WRAP: i64 = 1 << 32;

/// One pass of the chain.
struct Round {
    len: usize,
    from: usize,
    to: usize,
}

struct Chain {
    protocol: Protocol,
    dtype: DType,
    op: ReduceOp,
    /// The second rank folds its own data into what it received, and keeps the result.
    folds: bool,
    keeps: bool,
    divisor: u32,
    rounds: Vec<Round>,
    inputs: Vec<Vec<u8>>,
}

impl Chain {
    fn new(
        protocol: Protocol,
        (dtype, op): (DType, ReduceOp),
        role: u64,
        lengths: &[usize],
        random: &mut Rng,
    ) -> Self {
        let room = LONGEST + 16;
        let mut to = 0;
        let rounds = lengths.iter().map(|&len| {
            let round = Round { len, from: random.usize(..16), to: to + random.usize(..3) };
            to = round.to + len;
            round
        });
        let rounds = rounds.collect();
        let mut input = || {
            let mut input = vec![0; room * dtype.size()];
            input.chunks_exact_mut(dtype.size()).for_each(|to| any_element(dtype, random, to));
            input
        };
        let inputs = (0..3).map(|_| input()).collect();
        let divisor = if op == ReduceOp::Avg { 7 } else { 0 };
        let (folds, keeps) = (role & 1 != 0, role & 2 != 0);
        Self { protocol, dtype, op, folds, keeps, divisor, rounds, inputs }
    }

    fn program(&self, sanitize: bool) -> Executable {
        let defines = [
            format!("ROUNDELAY_PROTOCOL={:?}", self.protocol),
            format!("ROUNDELAY_ELEMENT={}", self.dtype.name()),
            format!("ROUNDELAY_OP={:?}", self.op),
            format!("ROLE={}", u64::from(self.folds) | u64::from(self.keeps) << 1),
        ];
        Executable::new(TEXT, &defines.each_ref().map(String::as_str), sanitize)
    }

    fn job(&self, parts: usize, threads: usize, first_flag: i64, stale: i64) -> Job {
        let size = self.dtype.size();
        let (unit, data) = self.protocol.unit();
        let slot = ((LONGEST * size).div_ceil(data as usize) + 2) * unit as usize;
        let header = [0, 3, 3, 12, self.rounds.len() as i64, CREDITS as i64, slot as i64];
        let mut facts = header.to_vec();
        facts.extend([first_flag, i64::from(self.divisor), stale, 0, 0]);
        facts.extend((0..3).flat_map(|rank| [rank, 0, 0, 0]));
        facts.extend(self.rounds.iter().flat_map(|r| [r.len, r.from, r.to].map(|n| n as i64)));
        let output_bytes = self.output_len() * size;
        let ranks = self.inputs.iter().cloned();
        let ranks = ranks.map(|input| Buffers { input, output_bytes, shared: None }).collect();
        let scratch_bytes = CREDITS * slot;
        let sizes = Job { parts, threads, element: size, channels: 3, ..Job::default() };
        Job { scratch_bytes, groups: 3, facts, ranks, ..sizes }
    }

    fn output_len(&self) -> usize {
        self.rounds.iter().map(|round| round.to + round.len).max().unwrap_or(0)
    }

    /// The outputs of all ranks.
    fn expected(&self) -> Vec<Vec<u8>> {
        let size = self.dtype.size();
        let mut outputs = vec![vec![0xa5; self.output_len() * size]; 3];
        for round in &self.rounds {
            let own = |rank: usize| &self.inputs[rank][round.from * size..][..round.len * size];
            let received = own(0);
            let srcs = if self.folds { vec![own(1), received] } else { vec![received] };
            let kept = fold((self.dtype, self.op), false, &srcs, self.divisor);
            let folded = || fold((self.dtype, self.op), false, &[own(2), &kept], 0);
            let last = if self.folds { kept.clone() } else { folded() };
            let to = round.to * size..(round.to + round.len) * size;
            if self.keeps {
                outputs[1][to.clone()].copy_from_slice(&kept);
            }
            outputs[2][to].copy_from_slice(&last);
        }
        outputs
    }

    fn check(&self, program: &Executable, job: &Job) {
        let outcome =
            program.run(job).unwrap_or_else(|e| panic!("{:?} {}: {e}", self.dtype, self.op));
        assert_eq!(outcome.gave_up, None, "{:?}", outcome.waiting);
        let size = self.dtype.size();
        for (rank, want) in self.expected().iter().enumerate() {
            let both = outcome.outputs[rank].chunks(size).zip(want.chunks(size));
            for (element, (got, want)) in both.enumerate() {
                assert!(
                    same(self.dtype, got, want),
                    "{:?} {}: element {element} of rank {rank} is {got:x?}, not {want:x?}",
                    self.dtype,
                    self.op
                );
            }
        }
    }
}

#[test]
fn every_role_passes_on_what_it_should() {
    let cases = [
        (DType::U8, ReduceOp::Sum, 3),
        (DType::F16, ReduceOp::Sum, 1),
        (DType::Bf16, ReduceOp::Max, 0),
        (DType::F32, ReduceOp::Avg, 2),
        (DType::F64, ReduceOp::Prod, 3),
        (DType::I64, ReduceOp::Avg, 3),
        (DType::Bf16, ReduceOp::Avg, 3),
        (DType::F8E5M2, ReduceOp::Min, 1),
    ];
    let wide = [0, 3, 4, 6].map(|case| (Protocol::Ll128, cases[case]));
    for (protocol, (dtype, op, role)) in
        cases.map(|case| (Protocol::Ll, case)).into_iter().chain(wide)
    {
        let mut random = Rng::with_seed(role);
        let lengths: Vec<usize> =
            (0..40).map(|len| if len < 20 { len } else { random.usize(..=LONGEST) }).collect();
        let chain = Chain::new(protocol, (dtype, op), role, &lengths, &mut random);
        let program = chain.program(false);
        for (parts, threads) in [(1, 1), (1, 4), (3, 2)] {
            chain.check(&program, &chain.job(parts, threads, 1, 0));
            let delayed = chain.job(parts, threads, 1, 0);
            chain.check(&program, &Job { delays: Some(1), ..delayed });
        }
    }
}

#[test]
fn a_flag_that_comes_again_is_no_news() {
    // Some short passes before the wrap, a long one behind it, whose flag old lines have.
    let lengths = [3, 5, 2, 7, 1, 4, LONGEST, LONGEST, LONGEST];
    for protocol in LINED {
        let sums = (DType::I32, ReduceOp::Sum);
        let chain = Chain::new(protocol, sums, 3, &lengths, &mut Rng::with_seed(5));
        let program = chain.program(false);
        for (stale, (parts, threads)) in
            (0..=2).flat_map(|stale| [(stale, (1, 2)), (stale, (2, 2))])
        {
            // The seventh flag has 32 bits of 0, and each of the last three has a slot for itself.
            let job = chain.job(parts, threads, WRAP - 6, stale);
            for seed in 0..4 {
                chain.check(&program, &Job { delays: Some(seed), ..job.clone() });
            }
        }
    }
}

#[test]
fn lines_do_not_race_with_the_memory_around_them() {
    let lengths = [10, 300, 0, LONGEST, 17, 40, LONGEST];
    for protocol in LINED {
        let sums = (DType::F16, ReduceOp::Sum);
        let chain = Chain::new(protocol, sums, 3, &lengths, &mut Rng::with_seed(6));
        let program = chain.program(true);
        for (parts, threads) in [(1, 3), (2, 2)] {
            let job = chain.job(parts, threads, 1, 0);
            chain.check(&program, &Job { delays: Some(2), ..job });
        }
    }
}

#[test]
fn who_waits_for_lines_is_named() {
    let sums = (DType::F32, ReduceOp::Sum);
    let chain = Chain::new(Protocol::Ll128, sums, 3, &[9; 8], &mut Rng::with_seed(7));
    let program = chain.program(false);
    let job = chain.job(1, 2, 1, 0);
    let limit = Duration::from_secs(1);
    let outcome = program.run(&Job { stuck_rank: Some(0), poll_limit: limit, ..job }).unwrap();
    assert!(outcome.gave_up.is_some());
    // Rank 1 got ready, and waits for the first lines; rank 2 for what rank 1 would send.
    for waiting in &outcome.waiting[1..] {
        assert!(waiting.state > 0, "{waiting:?}");
        assert_eq!((waiting.expected, waiting.seen), (1, 0), "{waiting:?}");
    }
}
