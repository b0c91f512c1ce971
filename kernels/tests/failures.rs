//! What must not hang, and what users get wrong: every failure is an error with a code, and the plan survives it.

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use super::common::*;
use roundelay_core::diagnostics::Code;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::{RankId, StreamId};
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Buffer, Region, SignalKind};
use roundelay_kernels::threads::Fault;
use roundelay_kernels::{Error, Options, Plan, Stats};

fn run(plan: &Plan, count: usize) -> Result<Stats, Error> {
    let nranks = plan.schedule().nranks as usize;
    let inputs = vec![vec![1i32; count]; nranks];
    let mut outputs = vec![vec![0i32; count]; nranks];
    let given: Vec<&[i32]> = inputs.iter().map(|v| &v[..]).collect();
    let stats =
        plan.run(&given, &mut outputs.iter_mut().map(|v| &mut v[..]).collect::<Vec<_>>())?;
    assert!(outputs.iter().flatten().all(|x| *x == nranks as i32));
    Ok(stats)
}

#[test]
fn a_missing_post_is_reported_with_rank_and_line() {
    // Rank 2 forgets a TxDataSignal: the first one, then all stop where rank 1 misses it; the last one, then
    // only rank 1 stops.
    for (forgotten, step, posts) in [(4, 5, 1), (39, 40, 8)] {
        for workers in [1, 2, 4] {
            let plan = ring_without(5, |rank, op| rank == 2 && op == forgotten)
                .plan(100, DType::I32, ReduceOp::Sum)
                .with_options(Options::new().workers(workers));
            for _ in 0..20 {
                let Err(Error::Timeout(stuck)) = run(&plan, 100) else { panic!("it gets stuck") };
                assert_eq!(stuck.rank, RankId(1), "{stuck}");
                assert_eq!(stuck.waiting_on, "TxDataSignal from rank 2");
                assert_eq!((stuck.expected, stuck.seen), (posts, posts - 1));
                assert_eq!((stuck.step, stuck.line), (step, step + 1));
                let place = format!("(test.coll:{})", step + 1);
                assert!(stuck.to_string().contains(&place), "{stuck}");
                assert_eq!(stuck.after, None, "nobody was left to wait for");
            }
        }
    }
}

#[test]
fn ranks_that_all_wait_are_a_timeout_not_a_hang() {
    let mut b = Builder::new("Cycle", roundelay_core::collective::Collective::AllReduce, 3);
    for me in 0..3 {
        b.stream(me, 0);
        b.wait((me + 2) % 3, me, SignalKind::Ack);
        b.post(me, (me + 1) % 3, SignalKind::Ack);
    }
    let error = run(&b.plan(4, DType::I32, ReduceOp::Sum), 4).unwrap_err();
    assert_eq!(error.code(), Code::Timeout);
    assert!(error.to_string().contains("step 0 waits for TxAck from rank"), "{error}");
}

#[test]
fn a_slow_op_outlasts_the_deadline_of_those_who_wait() {
    let deadline = Duration::from_millis(300);
    let plan = ring(4)
        .plan(10, DType::I32, ReduceOp::Sum)
        .with_options(Options::new().workers(2).deadline(deadline));
    // SAFETY: the run ends at the deadline, and its data is not looked at.
    let plan = unsafe { plan.with_fault(StreamId(1), 3, Fault::SleepMillis(2000)) };
    let Err(Error::Timeout(stuck)) = run(&plan, 10) else {
        panic!("the others do not wait so long")
    };
    assert_eq!(stuck.after, Some(deadline));
    assert!(stuck.waiting_on.ends_with("from rank 1"), "{stuck}");
}

#[test]
fn a_panic_ends_the_run_and_not_the_plan() {
    for workers in [1, 2, 5] {
        for stream in 0..6 {
            let plan = ring(6).plan(50, DType::I32, ReduceOp::Sum);
            let plan = plan.with_options(Options::new().workers(workers));
            // SAFETY: nothing of the stream runs after the panic.
            let broken = unsafe { plan.with_fault(StreamId(stream), 7, Fault::Panic) };
            for _ in 0..3 {
                let error = run(&broken, 50).unwrap_err();
                assert_eq!(error.code(), Code::WorkerPanicked);
                assert!(error.to_string().contains("an injected fault"), "{error}");
            }
        }
    }
    let plan = ring(6).plan(50, DType::I32, ReduceOp::Sum);
    run(&plan, 50).expect("the pool's threads survived");
}

#[test]
fn two_streams_at_one_signal_are_refused() {
    let mut b = Builder::new("Shared", roundelay_core::collective::Collective::AllReduce, 2);
    b.stream(0, 0);
    b.wait(1, 0, SignalKind::Ack);
    b.stream(0, 1);
    b.wait(1, 0, SignalKind::Ack);
    b.stream(1, 0);
    let plan = b.plan(4, DType::I32, ReduceOp::Sum).with_options(Options::new().workers(1));
    assert_eq!(run(&plan, 4).unwrap_err().code(), Code::SharedSignal);
}

#[test]
fn wrong_buffers_have_codes_and_say_what_is_right() {
    let plan = ring(2).plan(4, DType::F32, ReduceOp::Sum);
    let (a, mut x, mut y) = ([1f32; 4], [0f32; 4], [0f32; 4]);
    let error = plan.run(&[&a[..]], &mut [&mut x[..], &mut y[..]]).unwrap_err();
    assert_eq!(error.code(), Code::WrongBufferCount);
    assert!(error.to_string().contains("1 inputs for 2 ranks"), "{error}");
    let error = plan.run(&[&a[..], &a[..3]], &mut [&mut x[..], &mut y[..]]).unwrap_err();
    assert_eq!(error.code(), Code::WrongBufferLength);
    assert_eq!(error.to_string(), "the input of rank 1 has 3 elements; it must have 4 [E0402]");
    let error = plan.run_in_place(&mut [&mut x[..2], &mut y[..]]).unwrap_err();
    assert_eq!(error.code(), Code::WrongBufferLength);
    let (mut i, mut j) = ([0i32; 4], [0i32; 4]);
    let error = plan.run_in_place(&mut [&mut i[..], &mut j[..]]).unwrap_err();
    assert_eq!(error.code(), Code::WrongDType);
    assert!(error.to_string().contains("buffers of i32 for a plan of f32"), "{error}");
    let mut bytes = [[0u64; 4]; 2].map(|words| words.map(u64::to_ne_bytes).concat());
    let [first, second] = &mut bytes;
    let odd = |bytes: &mut [u8]| 1 + bytes.as_ptr().addr() % 2;
    let (at, to) = (odd(first), odd(second));
    let error = plan
        .run_bytes_in_place(&mut [&mut first[at..at + 16], &mut second[to..to + 16]])
        .unwrap_err();
    assert_eq!(error.code(), Code::MisalignedBuffer);
    assert!(error.to_string().contains("multiple of 4"), "{error}");
    plan.run(&[&a[..], &a[..]], &mut [&mut x[..], &mut y[..]]).expect("all right");
    assert_eq!((x, y), ([2.0; 4], [2.0; 4]));
}

#[test]
fn plans_that_cannot_be_are_refused() {
    let new = |b: Builder, count| {
        let (schedule, proof) = (Arc::new(b.schedule), Arc::new(b.proof));
        // SAFETY: these schedules are right; only the counts are not.
        unsafe { Plan::assume_proved(schedule, proof, count, DType::F64, ReduceOp::Sum) }
    };
    let code = |b, count| new(b, count).unwrap_err().code();
    for count in [u64::MAX, u64::MAX / 8, 1 << 60] {
        assert_eq!(code(ring(2), count), Code::TooLarge);
        assert_eq!(code(direct_reduce_scatter(4), count / 4 + 1), Code::TooLarge);
    }
    // Half the address space can be spoken of, but not had.
    assert_eq!(code(recursive_doubling(2), 1 << 59), Code::TooLarge);
    let mut none = ring(1);
    none.schedule.nranks = 0;
    assert_eq!(code(none, 1), Code::NoRanks);

    let mut beyond = ring(2);
    beyond.schedule.regions[0].hi = Rat::whole(2);
    assert_eq!(code(beyond, 9), Code::OutOfBounds);
    let mut uneven = ring(2);
    uneven.schedule.regions[0].hi = Rat::new(1, 2).unwrap();
    assert_eq!(code(uneven, 9), Code::LengthMismatch);
    let mut input = ring(2);
    input.schedule.regions[1].buffer = Buffer::Input;
    assert_eq!(code(input, 9), Code::InputWritten);
    let mut overlap = ring(1);
    let shifted = |b: &mut Builder, lo, hi| {
        b.region(Region {
            buffer: Buffer::Output,
            slot: 0,
            base: Rat::ZERO,
            lo: Rat::new(lo, 4).unwrap(),
            hi: Rat::new(hi, 4).unwrap(),
        })
    };
    let (one, two) = (shifted(&mut overlap, 0, 3), shifted(&mut overlap, 1, 4));
    overlap.data(&[(0, one)], &[(0, two)]);
    assert_eq!(code(overlap, 8), Code::RepeatedDestination);
}

#[test]
fn plans_without_an_in_place_form_say_why() {
    let mut marked = ring(2);
    marked.schedule.out_of_place = true;
    let mut unproved = ring(2);
    unproved.proof.in_place = false;
    for (b, why) in [(marked, "out_of_place"), (unproved, "not proved in place")] {
        let plan = b.plan(1, DType::U8, ReduceOp::Max);
        let error = plan.run_in_place::<u8>(&mut [&mut [1], &mut [2]]).unwrap_err();
        assert_eq!(error.code(), Code::NoInPlace);
        assert!(error.to_string().contains(why), "{error}");
        plan.run::<u8>(&[&[1], &[2]], &mut [&mut [0], &mut [0]]).expect("apart it runs");
    }
}

#[test]
fn a_failed_run_returns_only_when_no_worker_is_in_it() {
    let plan = ring(4)
        .plan(10, DType::I32, ReduceOp::Sum)
        .with_options(Options::new().workers(2).deadline(Duration::from_millis(200)));
    // The caller sleeps first, so that the helper is there to take the last stream, and sleep longer.
    // SAFETY: the run ends at the deadline, and its data is not looked at.
    let plan = unsafe {
        plan.with_fault(StreamId(0), 0, Fault::SleepMillis(500)).with_fault(
            StreamId(3),
            0,
            Fault::SleepMillis(2000),
        )
    };
    let started = Instant::now();
    assert_eq!(run(&plan, 10).unwrap_err().code(), Code::Timeout);
    assert!(started.elapsed() >= Duration::from_secs(2), "a worker is still in its op");
}

#[test]
fn a_deadline_does_not_end_a_run_that_goes_on() {
    let mut b = Builder::new("Slow", roundelay_core::collective::Collective::AllReduce, 2);
    let [input, output] = [Buffer::Input, Buffer::Output].map(|buffer| b.piece(buffer, 1, 0, 1));
    b.stream(0, 0);
    for _ in 0..20 {
        b.data(&[(0, input)], &[(0, output)]);
    }
    b.post(0, 1, SignalKind::Data);
    b.stream(1, 0);
    b.wait(0, 1, SignalKind::Data);
    let mut plan = b
        .plan(1, DType::I32, ReduceOp::Sum)
        .with_options(Options::new().workers(2).deadline(Duration::from_secs(1)));
    for step in 0..20 {
        // SAFETY: moves are replaced, no waits.
        plan = unsafe { plan.with_fault(StreamId(0), step, Fault::SleepMillis(80)) };
    }
    plan.run::<i32>(&[&[1], &[1]], &mut [&mut [0], &mut [0]]).expect("progress all along");
}

#[test]
fn waiting_for_another_threads_run_is_told_apart() {
    const RUN: Duration = Duration::from_secs(1);
    let mut b = Builder::new("Slow", roundelay_core::collective::Collective::AllReduce, 1);
    let [input, output] = [Buffer::Input, Buffer::Output].map(|buffer| b.piece(buffer, 1, 0, 1));
    b.stream(0, 0);
    b.data(&[(0, input)], &[(0, output)]);
    b.data(&[(0, input)], &[(0, output)]);
    let plan = b.plan(1, DType::I32, ReduceOp::Sum);
    // SAFETY: a move is replaced, no wait.
    let plan =
        unsafe { plan.with_fault(StreamId(0), 0, Fault::SleepMillis(RUN.as_millis() as u32)) };
    let both = Barrier::new(2);
    let call = || {
        both.wait();
        let called = Instant::now();
        let stats = plan.run::<i32>(&[&[1]], &mut [&mut [0]]).expect("it runs");
        assert!(stats.waited + stats.elapsed <= called.elapsed());
        assert!(stats.elapsed >= RUN, "{stats:?}");
        stats.waited
    };
    let waited = std::thread::scope(|threads| {
        let calls = [threads.spawn(call), threads.spawn(call)];
        calls.map(|call| call.join().expect("no panic"))
    });
    // One of them came first, and the other stood in line for the most of its run.
    assert!(waited.contains(&Duration::ZERO), "{waited:?}");
    assert!(waited.iter().any(|time| *time > RUN / 2), "{waited:?}");
}
