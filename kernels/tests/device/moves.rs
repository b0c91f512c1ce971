//! Every dtype and op, from every place in a vector: what the host's loops give.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fastrand::Rng;
use roundelay_core::dtype::{DType, ReduceOp};

use crate::device::numbers::{any_element, fold, same};
use crate::device::shim::{Buffers, Executable, Job, takes_all};

const TEXT: &str = include_str!("moves.cu");
/// Sources and destinations that `moves.cu` has.
const SHAPES: [(usize, usize); 4] = [(1, 1), (2, 1), (3, 2), (8, 8)];
/// Those that it has with `ROUNDELAY_MORE_SHAPES`, which is for sums alone, as each takes a compiler's time.
const MORE_SHAPES: [(usize, usize); 12] = [
    (1, 1),
    (1, 2),
    (2, 1),
    (3, 1),
    (4, 1),
    (5, 1),
    (6, 1),
    (7, 1),
    (8, 1),
    (1, 3),
    (3, 2),
    (8, 8),
];
/// Elements of the input, and of the output.
const ROOM: usize = 12_000;
/// What the shim fills buffers with.
const FILL: u8 = 0xa5;

/// An operand of a move: the output or the input, from an element on.
#[derive(Clone, Copy, Debug)]
struct Operand {
    output: bool,
    element: usize,
}

#[derive(Clone, Debug)]
struct Move {
    srcs: Vec<Operand>,
    dsts: Vec<Operand>,
    len: usize,
    divisor: u32,
}

impl Move {
    /// Somewhere; all operands equally far from the start of a vector, or each for itself.
    fn random(random: &mut Rng, dtype: DType, len: usize, op: ReduceOp) -> Self {
        let shapes = shapes(op);
        let (srcs, dsts) = shapes[random.usize(..shapes.len())];
        let each = ROOM / 8;
        let vector = 16 / dtype.size();
        let (aligned, shift) = (random.usize(..3) > 0, random.usize(..vector));
        let mut place = |output, slot: usize| {
            let shift = if aligned { shift } else { random.usize(..vector) };
            Operand { output, element: (slot * each).next_multiple_of(vector) + shift }
        };
        let mut srcs: Vec<Operand> = (0..srcs).map(|slot| place(false, slot)).collect();
        let dsts: Vec<Operand> = (0..dsts).map(|slot| place(true, slot)).collect();
        // A reduce folds into its first source.
        if srcs.len() > 1 && random.usize(..2) == 0 {
            srcs[0] = dsts[0];
        }
        let divides = op == ReduceOp::Avg && random.usize(..3) > 0;
        let divisor = if divides { 1 + random.usize(..1000) as u32 } else { 0 };
        Self { srcs, dsts, len, divisor }
    }

    /// From one place in a vector to another; sources after the first are a further element away each.
    fn between(
        (from, to): (usize, usize),
        (srcs, dsts): (usize, usize),
        dtype: DType,
        len: usize,
    ) -> Self {
        let (each, vector) = (ROOM / 8, 16 / dtype.size());
        let at = |output, slot: usize, shift| {
            let element = (slot * each).next_multiple_of(vector) + shift % vector;
            Operand { output, element }
        };
        let srcs = (0..srcs).map(|slot| at(false, slot, from + slot)).collect();
        let dsts = (0..dsts).map(|slot| at(true, slot, to + slot)).collect();
        Self { srcs, dsts, len, divisor: 0 }
    }

    fn facts(&self) -> Vec<i64> {
        let head = [self.srcs.len(), self.dsts.len(), self.len].map(|n| n as i64);
        let operands = self.srcs.iter().chain(&self.dsts);
        let operands = operands.flat_map(|at| [i64::from(at.output), at.element as i64]);
        head.into_iter().chain([i64::from(self.divisor)]).chain(operands).collect()
    }

    /// Does the move on these bytes, as the host would.
    fn apply(&self, (dtype, op): (DType, ReduceOp), chain: bool, input: &[u8], output: &mut [u8]) {
        let size = dtype.size();
        let bytes = |at: &Operand| at.element * size..(at.element + self.len) * size;
        let from = |at: &Operand| if at.output { &output[bytes(at)] } else { &input[bytes(at)] };
        let srcs: Vec<&[u8]> = self.srcs.iter().map(from).collect();
        let result = fold((dtype, op), chain, &srcs, self.divisor);
        for dst in &self.dsts {
            output[bytes(dst)].copy_from_slice(&result);
        }
    }
}

/// Moves of every length that is shorter than a few vectors, and some that are longer than a round of the loops.
fn moves(random: &mut Rng, dtype: DType, op: ReduceOp) -> Vec<Move> {
    let long = [127, 128, 129, 255, 512, 513, 1000, 1400];
    let lengths: Vec<usize> = (0..100).chain(long).chain(long).collect();
    let mut all: Vec<Move> =
        lengths.into_iter().map(|len| Move::random(random, dtype, len, op)).collect();
    if op == ReduceOp::Sum {
        // From every place in a vector to every other, each with some shape, and every shape with every place.
        let vector = 16 / dtype.size();
        let places = (0..vector).flat_map(|from| (0..vector).map(move |to| (from, to)));
        let shapes = (0..).map(|nth| MORE_SHAPES[nth % MORE_SHAPES.len()]);
        let lengths = (0..).map(|nth| 3 * vector + nth % (4 * vector));
        let by_places = places.zip(shapes).zip(lengths);
        all.extend(
            by_places.map(|((places, shape), len)| Move::between(places, shape, dtype, len)),
        );
        let by_shapes = MORE_SHAPES.into_iter().flat_map(|shape| {
            (0..vector).map(move |from| Move::between((from, 0), shape, dtype, 5 * vector + 1))
        });
        all.extend(by_shapes);
    }
    all
}

fn shapes(op: ReduceOp) -> &'static [(usize, usize)] {
    if op == ReduceOp::Sum { &MORE_SHAPES } else { &SHAPES }
}

/// Checks moves that round after each source, where they form a chain, or once.
fn check((dtype, op): (DType, ReduceOp), chain: bool, sanitize: bool) {
    let mut defines =
        vec![format!("ROUNDELAY_ELEMENT={}", dtype.name()), format!("ROUNDELAY_OP={op:?}")];
    if op == ReduceOp::Sum {
        defines.push("ROUNDELAY_MORE_SHAPES".to_owned());
    }
    if chain {
        defines.push("ROUNDELAY_CHAIN=1".to_owned());
    }
    let defines: Vec<&str> = defines.iter().map(String::as_str).collect();
    let program = Executable::new(TEXT, &defines, sanitize);
    for (seed, parts, threads) in [(1, 1, 4), (2, 1, 1), (3, 3, 3)] {
        let mut random = Rng::with_seed(seed);
        let mut input = vec![0; ROOM * dtype.size()];
        for to in input.chunks_exact_mut(dtype.size()) {
            any_element(dtype, &mut random, to);
        }
        let moves = moves(&mut random, dtype, op);
        check_moves((&program, chain), (dtype, op), &moves, (input, ROOM), (parts, threads));
    }
    if matches!(dtype, DType::F8E4M3 | DType::F8E5M2) {
        let (moves, input) = every_pair(op);
        check_moves((&program, chain), (dtype, op), &moves, (input, PAIRS), (1, 4));
    }
}

/// All pairs of two bytes.
const PAIRS: usize = 1 << 16;

/// Moves that fold every byte into every other, or for an average divide every byte by some numbers; and their input.
fn every_pair(op: ReduceOp) -> (Vec<Move>, Vec<u8>) {
    let input = (0..PAIRS).map(|pair| pair as u8).chain((0..PAIRS).map(|pair| (pair >> 8) as u8));
    let at = |output, element| Operand { output, element };
    let moves = if op == ReduceOp::Avg {
        let divisors = [1, 2, 3, 5, 7, 8, 10, 64, 1000, 65_537].into_iter().enumerate();
        let divide = |(nth, divisor)| Move {
            srcs: vec![at(false, 0)],
            dsts: vec![at(true, 256 * nth)],
            len: 256,
            divisor,
        };
        divisors.map(divide).collect()
    } else {
        let (srcs, dsts) = (vec![at(false, 0), at(false, PAIRS)], vec![at(true, 0)]);
        vec![Move { srcs, dsts, len: PAIRS, divisor: 0 }]
    };
    (moves, input.collect())
}

/// Runs moves in the kernel, into an output of `room` elements, and compares each element with the host's.
fn check_moves(
    (program, chain): (&Executable, bool),
    (dtype, op): (DType, ReduceOp),
    moves: &[Move],
    (input, room): (Vec<u8>, usize),
    (parts, threads): (usize, usize),
) {
    let size = dtype.size();
    let mut facts = vec![0, 1, 1, 0, moves.len() as i64, 0, 0, 0];
    let mut want = vec![FILL; room * size];
    for one in moves {
        facts.extend(one.facts());
        one.apply((dtype, op), chain, &input, &mut want);
    }
    let ranks = vec![Buffers { input, output_bytes: room * size, shared: None }];
    let job = Job { parts, threads, element: size, facts, ranks, ..Job::default() };
    let outcome = program.run(&job).unwrap_or_else(|e| panic!("{dtype} {op}: {e}"));
    let both = outcome.outputs[0].chunks(size).zip(want.chunks(size));
    for (element, (got, want)) in both.enumerate() {
        assert!(
            same(dtype, got, want),
            "{dtype} {op}, {parts} parts of {threads} threads: element {element} of the output is \
             {got:x?}, not {want:x?}"
        );
    }
}

#[test]
fn every_dtype_and_op_is_that_of_the_host() {
    let (bits, others): (Vec<ReduceOp>, Vec<ReduceOp>) =
        ReduceOp::ALL.iter().partition(|op| op.is_for_integers());
    // Sums and averages of every dtype, for each of which the division is another; and of the other ops every second
    // pair, so that integers with a sign and without one, and wide and narrow floats, have each op.
    let is_taken = |at: usize, nth: usize, op: ReduceOp| {
        matches!(op, ReduceOp::Sum | ReduceOp::Avg) || (at + at / 2 + nth).is_multiple_of(2)
    };
    let pairs = DType::ALL.iter().enumerate().flat_map(|(at, &dtype)| {
        let ops = others.iter().enumerate();
        ops.filter(move |(nth, op)| takes_all() || is_taken(at, *nth, **op))
            .map(move |(_, &op)| (dtype, op))
    });
    // The ops of integers in the sizes of elements that differ: bytes in pairs of two, and words.
    let wholes = [DType::U8, DType::I32, DType::U64];
    let all = pairs.chain(bits.iter().enumerate().map(|(at, &op)| (wholes[at % 3], op)));
    // Narrow floats have two ways to round: sums both, and other ops take turns.
    let ways = |(nth, kind): (usize, (DType, ReduceOp))| {
        let both = kind.0.is_narrow_float() && kind.1 == ReduceOp::Sum;
        let chains = if both { vec![false, true] } else { vec![nth % 2 == 0] };
        chains.into_iter().map(move |chain| (kind, chain))
    };
    let cases: Vec<_> = all.enumerate().flat_map(ways).collect();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(&(kind, chain)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(panic) = std::panic::catch_unwind(|| check(kind, chain, false)) {
                        failures.lock().expect("nobody panics with it").push(panic);
                    }
                }
            });
        }
    });
    if let Some(panic) = failures.into_inner().expect("nobody panics with it").pop() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn a_move_begins_when_the_one_before_it_is_done() {
    check((DType::F32, ReduceOp::Sum), true, true);
}
