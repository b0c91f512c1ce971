//! No schedule runs that was not proved, even if its caller says so: the results of passes are proved again, and ranks
//! that choose by themselves between in place and not may do so only where the proof covers it.

use roundelay::library::RingAllReduce;
use roundelay::{DType, Level, Options, Plan, ReduceOp, SpmdPlan, ToPlan as _};
use roundelay_core::diagnostics::Code;
use roundelay_core::prove;
use roundelay_core::schedule::{OpKind, Schedule};
use roundelay_kernels::Error;

roundelay::include_collective!("../data/take_and_add.coll");

/// Takes every contribution of rank 1 from rank 0.
fn takes_the_wrong_rank(made: &mut Schedule) {
    let operands = made.operands.iter_mut().filter(|operand| operand.rank.0 == 1);
    operands.for_each(|operand| operand.rank.0 = 0);
}

/// Forgets the last signal of each rank, and the wait for it.
fn forgets_a_signal(made: &mut Schedule) {
    let signals = made.ops.iter().filter(|op| op.kind != OpKind::Move);
    let last = signals.map(|op| op.arg).max().expect("ranks that call wait for each other");
    for at in (0..made.ops.len()).rev() {
        let op = made.ops[at];
        if op.kind != OpKind::Move && op.arg == last {
            made.ops.remove(at);
            for stream in &mut made.streams {
                let first = stream.first.index();
                stream.len -= u32::from((first..first + stream.len as usize).contains(&at));
                stream.first.0 -= u32::from(first > at);
            }
        }
    }
}

#[test]
fn engines_refuse_what_a_broken_pass_makes() {
    let proved = prove(&RingAllReduce::new(), 4).expect("the library is right");
    let refused = |error: Error, pass: &str| {
        assert_eq!(error.code(), Code::Unproved, "{error}");
        assert!(error.to_string().starts_with(&format!("{pass} of RingAllReduce: ")), "{error}");
    };
    for (level, pass) in [(Level::O1, "elision"), (Level::O2, "fusion")] {
        let options = Options::new().level(level);
        let of = |proved| Plan::for_options(proved, 10, DType::F32, ReduceOp::Sum, options);
        let team = |proved| SpmdPlan::new(proved, 10, DType::F32, ReduceOp::Sum, options);
        assert!(of(&proved).is_ok() && team(&proved).is_ok());
        let broken = proved.with_broken_passes(takes_the_wrong_rank);
        refused(of(&broken).expect_err("rank 0 is counted twice"), pass);
        refused(team(&broken).expect_err("rank 0 is counted twice"), pass);
        let broken = proved.with_broken_passes(forgets_a_signal);
        refused(team(&broken).expect_err("a rank leaves too early"), pass);
        // At O0 there is no pass to go wrong.
        let as_written = Options::new().level(Level::O0);
        assert!(Plan::for_options(&broken, 10, DType::F32, ReduceOp::Sum, as_written).is_ok());
    }
}

#[test]
fn one_mode_is_one_callers() {
    for level in [Level::O0, Level::O1, Level::O2] {
        let options = Options::new().level(level);
        let plan = TakeAndAdd::new().plan_with(2, 1, DType::I32, ReduceOp::Sum, options);
        let plan = plan.expect("right in one mode");
        let (mut a, mut b) = ([1], [10]);
        plan.run_in_place(&mut [&mut a, &mut b]).expect("in place");
        assert_eq!((a, b), ([11], [11]), "{level}");
        let (mut a, mut b) = ([0], [0]);
        plan.run(&[&[1], &[10]], &mut [&mut a, &mut b]).expect("out of place");
        assert_eq!((a, b), ([11], [11]), "{level}");
        let team = TakeAndAdd::new().spmd_plan_with(2, 1, DType::I32, ReduceOp::Sum, options);
        let refused = team.expect_err("rank 0 in place and rank 1 not gave 20");
        assert_eq!(refused.code(), Code::OneMode, "{refused}");
    }
}
