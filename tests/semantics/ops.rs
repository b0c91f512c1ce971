//! The ops of integers, for every kind of caller: their results for one rank and for several, and that floats do not
//! have them.

use std::thread;

use roundelay::library::RingAllReduce;
use roundelay::{Comm, DType, Error, Rank, ReduceOp, ToPlan as _, half};
use roundelay_core::diagnostics::Code;

/// The contributions of ranks 0 to 2.
const MINE: [[i32; 5]; 3] = [[5, 6, 0, 0, -1], [3, 0, 0, 4, -1], [6, 2, 0, 0, 8]];

/// The results of the first two of these, and of all three. One contribution alone is its own result.
const RESULTS: [(ReduceOp, [[i32; 5]; 2]); 6] = [
    (ReduceOp::Band, [[1, 0, 0, 0, -1], [0, 0, 0, 0, 8]]),
    (ReduceOp::Bor, [[7, 6, 0, 4, -1], [7, 6, 0, 4, -1]]),
    (ReduceOp::Bxor, [[6, 6, 0, 4, 0], [0, 4, 0, 4, 8]]),
    (ReduceOp::Land, [[1, 0, 0, 0, 1], [1, 0, 0, 0, 1]]),
    (ReduceOp::Lor, [[1, 1, 0, 1, 1], [1, 1, 0, 1, 1]]),
    (ReduceOp::Lxor, [[0, 1, 0, 1, 0], [1, 0, 0, 1, 1]]),
];

fn result(of_two_and_three: [[i32; 5]; 2], nranks: u32) -> [i32; 5] {
    if nranks == 1 { MINE[0] } else { of_two_and_three[nranks as usize - 2] }
}

/// Calls that all ranks make, of which there are at most three.
pub(super) fn assert_right(rank: &mut Rank<'_>) {
    let mine = MINE[rank.id() as usize];
    for (op, results) in RESULTS {
        let expected = result(results, rank.nranks());
        let (mut in_place, mut apart) = (mine, [9; 5]);
        rank.all_reduce(&mut in_place, op).expect("all ranks call it");
        rank.all_reduce_into(&mine, &mut apart, op).expect("all ranks call it");
        assert_eq!([in_place, apart], [expected; 2], "{op} on {} ranks", rank.nranks());
        // Refused on every rank, before anything happens: the next call is as good as ever.
        refused(op, "f32", rank.all_reduce(&mut [1.0_f32; 3], op));
        refused(op, "bf16", rank.reduce(&mut [half::bf16::ONE; 3], op, 0));
    }
}

/// Fails unless the error names the op, the type, and a remedy.
pub(super) fn refused<T>(op: ReduceOp, element: &str, done: Result<T, Error>) {
    let error = done.err().expect("floats have no such op");
    assert_eq!(error.code(), Code::NoSuchOp, "{error}");
    let (text, what) = (error.to_string(), format!("op {op} is for integers, and {element} is"));
    assert!(text.contains(&what) && text.contains("sum prod min max avg, or"), "{text}");
    assert!(text.contains("i8 u8 i32 u32 i64 u64"), "{text}");
}

#[test]
fn threads_have_them() {
    for nranks in 1..=3 {
        let comm = Comm::new(nranks).expect("a communicator");
        thread::scope(|threads| {
            for rank in 0..nranks {
                let mut rank = comm.rank(rank).expect("a rank");
                threads.spawn(move || assert_right(&mut rank));
            }
        });
    }
}

#[test]
fn plans_have_them() {
    for nranks in 1..=3 {
        for (op, results) in RESULTS {
            let plan = RingAllReduce::new().plan(nranks, 5, DType::I32, op).expect("a plan");
            let mut buffers = MINE;
            let mut views: Vec<_> = buffers.iter_mut().map(|b| &mut b[..]).collect();
            plan.run_in_place(&mut views[..nranks as usize]).expect("a run");
            let expected = result(results, nranks);
            assert!(buffers[..nranks as usize].iter().all(|b| *b == expected), "{op}: {buffers:?}");
        }
    }
    for (dtype, op) in [(DType::F32, ReduceOp::Band), (DType::F16, ReduceOp::Lxor)] {
        refused(op, dtype.name(), RingAllReduce::new().plan(2, 5, dtype, op));
        refused(op, dtype.name(), RingAllReduce::new().spmd_plan(2, 5, dtype, op));
    }
}
