//! Ranks of a communicator that make different calls, too few, or more shapes than are kept.

#![expect(clippy::float_cmp, reason = "sums of small whole numbers are exact")]

use std::num::NonZeroUsize;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use roundelay::library::RingAllReduce;
use roundelay::{Comm, DType, Error, Options, Rank, ReduceOp, ToPlan as _};
use roundelay_core::diagnostics::Code;

use super::ranks::{mixed, with_longer_deadlines};

/// Far less than the deadline of a minute, and longer than any of this takes.
const AT_ONCE: Duration = Duration::from_secs(20);

type Call = fn(&mut Rank<'_>) -> Result<(), Error>;

/// In place; a call that is refused leaves the buffer as it was.
fn all_reduce<const COUNT: usize>(rank: &mut Rank<'_>) -> Result<(), Error> {
    let mine = rank.id() as f32 + 1.0;
    let n = rank.nranks() as f32;
    let mut buffer = [mine; COUNT];
    let done = rank.all_reduce(&mut buffer, ReduceOp::Sum);
    let expected = if done.is_ok() { n * (n + 1.0) / 2.0 } else { mine };
    assert_eq!(buffer, [expected; COUNT], "{done:?}");
    done
}

fn broadcast(rank: &mut Rank<'_>) -> Result<(), Error> {
    let mine = rank.id() as f32;
    let mut buffer = [mine; 10];
    let done = rank.broadcast(&mut buffer, 1);
    assert_eq!(buffer, [if done.is_ok() { 1.0 } else { mine }; 10], "{done:?}");
    done
}

fn maximum(rank: &mut Rank<'_>) -> Result<(), Error> {
    rank.all_reduce(&mut [1.0_f32; 10], ReduceOp::Max)
}

fn of_f64(rank: &mut Rank<'_>) -> Result<(), Error> {
    rank.all_reduce(&mut [1.0_f64; 10], ReduceOp::Sum)
}

fn gather(rank: &mut Rank<'_>) -> Result<(), Error> {
    let mut all = [9; 12];
    let n = if rank.id() == 2 { 3 * rank.nranks() as usize } else { 0 };
    let mine = [rank.id(); 3];
    let done = rank.gather(&mine, &mut all[..n], 2);
    let right = |(at, got): (usize, &u32)| *got == if done.is_ok() { at as u32 / 3 } else { 9 };
    assert!(all[..n].iter().enumerate().all(right), "{done:?} {all:?}");
    done
}

/// Returns the results of each rank's calls, each rank on a thread of its own.
fn on_ranks<T: Send>(comm: &Comm, work: impl Fn(Rank<'_>) -> T + Sync) -> Vec<T> {
    thread::scope(|threads| {
        let work = &work;
        let ranks = (0..comm.nranks()).map(|rank| comm.rank(rank).expect("a rank"));
        let calls: Vec<_> = ranks.map(|rank| threads.spawn(move || work(rank))).collect();
        calls.into_iter().map(|call| call.join().expect("no panic")).collect()
    })
}

/// All ranks make these, and they work.
fn still_works(comm: &Comm) {
    on_ranks(comm, |mut rank| {
        for call in [all_reduce::<10>, broadcast, all_reduce::<11>, maximum, all_reduce::<10>] {
            call(&mut rank).expect("all ranks call it");
        }
    });
}

#[test]
fn calls_that_differ_are_refused_at_once_and_nothing_else_changes() {
    let mine: (Call, &str) = (all_reduce::<10>, "AllReduce of 10 f32, sum");
    let others: [(Call, &str); 4] = [
        (broadcast, "Broadcast of 10 f32, root 1"),
        (maximum, "AllReduce of 10 f32, max"),
        (of_f64, "AllReduce of 10 f64, sum"),
        (all_reduce::<11>, "AllReduce of 11 f32, sum"),
    ];
    let since = Instant::now();
    for nranks in [2, 4] {
        let comm = Comm::new(nranks).expect("a communicator");
        let mut number = 0;
        for (theirs, text) in others {
            for odd in 0..nranks {
                let refused = on_ranks(&comm, |mut rank| {
                    // Only the later call goes wrong.
                    all_reduce::<10>(&mut rank).expect("all ranks call it");
                    let call = if rank.id() == odd { theirs } else { mine.0 };
                    call(&mut rank).expect_err("they differ")
                });
                number += 2;
                let said = refused[0].to_string();
                for error in &refused {
                    assert_eq!(
                        (error.code(), error.to_string()),
                        (Code::CallsDiffer, said.clone())
                    );
                }
                let other = refused[0].to_string();
                let named = |rank: u32| {
                    let call = if rank == odd { text } else { mine.1 };
                    other.contains(&format!("{call} on rank {rank}"))
                };
                assert!(said.starts_with(&format!("call {number} is ")), "{said}");
                assert_eq!((0..nranks).filter(|rank| named(*rank)).count(), 2, "{said}");
                assert!(named(odd), "{said}");
            }
            still_works(&comm);
            number += 5;
        }
    }
    assert!(since.elapsed() < AT_ONCE, "no rank waits for a deadline");
}

#[test]
fn whoever_left_a_refused_call_is_told_at_the_next() {
    let comm = &Comm::new(3).expect("a communicator");
    let (left, hears) = mpsc::channel();
    let (find, found) = mpsc::channel();
    let since = Instant::now();
    // Rank 2 takes its block as soon as the root is there, and has no more to do with it.
    let scatter = |rank: &mut Rank<'_>| {
        let input = [[1_i32; 4], [2; 4], [3; 4]].concat();
        let mut block = [0; 4];
        let input = if rank.id() == 0 { &input[..] } else { &[] };
        rank.scatter(input, &mut block, 0).map(|()| block)
    };
    let results = thread::scope(|threads| {
        let root = threads.spawn(|| scatter(&mut comm.rank(0).expect("a rank")).map(drop));
        let quick = threads.spawn(move || {
            let mut rank = comm.rank(2).expect("a rank");
            assert_eq!(scatter(&mut rank).expect("the root is there"), [3; 4]);
            left.send(()).expect("the test listens");
            // The others have found out: then this call is not made, and the next one is.
            found.recv_timeout(AT_ONCE).expect("they do not wait for a deadline");
            all_reduce::<10>(&mut rank)
        });
        let odd = threads.spawn(move || {
            hears.recv_timeout(AT_ONCE).expect("rank 2 does not wait for rank 1");
            broadcast(&mut comm.rank(1).expect("a rank"))
        });
        let (root, odd) = (root.join().expect("no panic"), odd.join().expect("no panic"));
        find.send(()).expect("rank 2 listens");
        [root, odd, quick.join().expect("no panic")].map(|result| result.expect_err("refused"))
    });
    let said = without_code(&results[0]);
    // Rank 0 or rank 2, whichever was compared with rank 1 first.
    for part in
        ["call 1 is ", "Scatter of 4 i32, root 0 on rank ", "Broadcast of 10 f32, root 1 on rank 1"]
    {
        assert!(said.contains(part), "{said}");
    }
    for error in &results {
        assert!(error.to_string().starts_with(&said), "{error}");
    }
    let late =
        "; rank 2 had left it before that was known, and the call that it makes now is not made";
    assert!(without_code(&results[2]).ends_with(late), "{}", results[2]);
    assert!(since.elapsed() < AT_ONCE);
    still_works(comm);
}

/// Returns the message of an error without its code, which is its last word.
fn without_code(error: &Error) -> String {
    let said = error.to_string();
    let code = format!(" [{}]", error.code());
    said.strip_suffix(&code).unwrap_or_else(|| panic!("{said} does not end in {code}")).to_owned()
}

/// Returns the communicator of ranks of which `missing` makes no second call, and the errors of the two others, the
/// first to give up first; `None` if the machine was so busy that another rank was late.
fn call_without(missing: u32, deadline: Duration) -> Option<(Comm, Error, Error)> {
    let comm = Comm::with_options(3, Options::new().deadline(deadline)).expect("a communicator");
    let results = on_ranks(&comm, |mut rank| {
        let first = broadcast(&mut rank);
        if rank.id() == missing { first } else { first.and_then(|()| all_reduce::<10>(&mut rank)) }
    });
    let errors = results.into_iter().filter_map(Result::err);
    let (mut first, mut later): (Vec<_>, Vec<_>) = errors.partition(|e| e.code() == Code::Timeout);
    let named = format!("in call 2 for rank {missing},");
    if !first.iter().any(|error| error.to_string().contains(&named)) {
        return None;
    }
    assert_eq!((first.len(), later.len()), (1, 1), "one gives up: {first:?} {later:?}");
    Some((comm, first.pop()?, later.pop()?))
}

#[test]
fn a_rank_that_does_not_come_is_named_with_the_call_and_all_ends() {
    for missing in 0..3 {
        let (deadline, (comm, first, later)) =
            with_longer_deadlines(|deadline| Some((deadline, call_without(missing, deadline)?)));
        let cause = without_code(&first);
        let said = format!(
            " waited {deadline:?} in call 2 for rank {missing}, which did not make call 2, AllReduce of 10 f32, sum; its last was call 1, Broadcast of 10 f32, root 1; "
        );
        assert!(cause.contains(&said), "{cause}");
        // One rule: no later call of these ranks works, whatever its shape, and each names the reason at once.
        assert_eq!(later.code(), Code::Abandoned);
        let calls: [Call; 3] = [all_reduce::<10>, broadcast, all_reduce::<7>];
        let since = Instant::now();
        on_ranks(&comm, |mut rank| {
            for call in calls {
                let error = call(&mut rank).expect_err("it was given up");
                assert_eq!(error.code(), Code::Abandoned);
                assert!(error.to_string().contains(&cause), "{error}");
            }
        });
        assert!(since.elapsed() < AT_ONCE);
    }
}

#[test]
fn a_communicator_that_keeps_one_plan() {
    let one = NonZeroUsize::MIN;
    let comm = Comm::new(3).expect("a communicator").keeping(one);
    let calls: [Call; 6] = [all_reduce::<10>, broadcast, gather, maximum, of_f64, all_reduce::<11>];
    // Ranks run ahead of each other and come back to shapes that went.
    on_ranks(&comm, |mut rank| {
        for turn in 0..60_u64 {
            let random = mixed(turn);
            calls[(random >> 8) as usize % calls.len()](&mut rank).expect("all ranks call it");
            if mixed(random ^ u64::from(rank.id())).is_multiple_of(8) {
                thread::sleep(Duration::from_micros(300));
            }
        }
    });
    assert!(comm.kept_plans()[1] <= 4, "{:?}", comm.kept_plans());
    // Plans that no rank holds are dropped when there is another.
    on_ranks(&comm, |mut rank| broadcast(&mut rank).expect("all ranks call it"));
    on_ranks(&comm, |mut rank| gather(&mut rank).expect("all ranks call it"));
    on_ranks(&comm, |mut rank| broadcast(&mut rank).expect("all ranks call it"));
    assert!(comm.kept_plans()[1] <= 2, "{:?}", comm.kept_plans());

    // One caller: the plan that was not called for the longest time is dropped.
    let two = Comm::new(1).expect("a communicator").keeping(NonZeroUsize::new(2).expect("not 0"));
    for count in [1, 2, 1, 3, 1, 2, 3] {
        two.all_reduce(&mut [&mut vec![1.0_f32; count][..]], ReduceOp::Sum).expect("it runs");
        assert!(two.kept_plans()[0] <= 2);
    }
}

#[test]
fn disagreement_now_and_then() {
    let calls: [Call; 5] = [all_reduce::<10>, broadcast, gather, maximum, all_reduce::<300>];
    for nranks in [3, 4] {
        let comm = Comm::new(nranks).expect("a communicator").keeping(NonZeroUsize::MIN);
        let heard = on_ranks(&comm, |mut rank| {
            let mut heard = 0;
            for turn in 0..120_u64 {
                let random = mixed(turn ^ u64::from(nranks) << 32);
                let at = random as usize % calls.len();
                // Every fourth time one rank takes the next.
                let wrong = (random >> 16).is_multiple_of(4)
                    && (random >> 32) % u64::from(nranks) == u64::from(rank.id());
                let done = calls[(at + usize::from(wrong)) % calls.len()](&mut rank);
                match done {
                    Ok(()) => assert!(!wrong, "turn {turn}"),
                    Err(error) => {
                        assert_eq!(error.code(), Code::CallsDiffer, "{error}");
                        assert!(
                            error.to_string().starts_with(&format!("call {} is ", turn + 1)),
                            "turn {turn}: {error}"
                        );
                        heard += 1;
                    }
                }
            }
            heard
        });
        assert!(heard[0] > 10 && heard.iter().all(|count| *count == heard[0]), "{heard:?}");
    }
}

#[test]
fn options_at_their_extremes_are_errors_or_work() {
    let ring = RingAllReduce::new();
    let most = Options::MOST_WORKERS;
    for workers in [most + 1, u32::MAX] {
        let options = Options::new().workers(workers);
        let plan = ring.plan_with(2, 4, DType::I32, ReduceOp::Sum, options).map(drop);
        let team = ring.spmd_plan_with(2, 4, DType::I32, ReduceOp::Sum, options).map(drop);
        let comm = Comm::with_options(2, options).map(drop);
        let again = ring.plan(2, 4, DType::I32, ReduceOp::Sum).expect("a plan");
        let again = again.with_options(options).run_in_place(&mut [&mut [1; 4], &mut [2; 4]]);
        for result in [plan, team, comm, again.map(drop).map_err(Error::from)] {
            let error = result.expect_err("no machine has so many");
            assert_eq!(error.code(), Code::BadOption, "{error}");
            assert!(error.to_string().starts_with(&format!("{workers} workers")), "{error}");
        }
    }
    for deadline in [Duration::MAX, Duration::from_secs(u64::MAX / 2), Duration::from_nanos(1)] {
        for workers in [1, 3, most] {
            let options = Options::new().workers(workers).deadline(deadline).pin(workers == 3);
            let plan = ring.plan_with(2, 4, DType::I32, ReduceOp::Sum, options).expect("a plan");
            let mut buffers = [[1; 4], [2; 4]];
            let ran = plan.run_in_place(&mut buffers.each_mut().map(|b| &mut b[..]));
            ran.expect("without signals no rank waits");
            assert_eq!(buffers, [[3; 4]; 2]);
        }
        // Ranks that wait for each other for ever, and hardly at all.
        let comm =
            Comm::with_options(2, Options::new().deadline(deadline)).expect("a communicator");
        let results = on_ranks(&comm, |mut rank| {
            thread::sleep(Duration::from_millis(u64::from(rank.id())));
            all_reduce_quietly(&mut rank)
        });
        for result in results {
            match result.map_err(|error| error.code()) {
                Ok(()) => {}
                Err(code) => assert!(
                    deadline < AT_ONCE && [Code::Timeout, Code::Abandoned].contains(&code),
                    "{code}"
                ),
            }
        }
    }
    for (nranks, code) in [(0, Code::NoRanks), (u32::MAX, Code::NoRanks), (65_537, Code::NoRanks)] {
        assert_eq!(Comm::new(nranks).map(drop).expect_err("no such rank count").code(), code);
    }
    let huge = Comm::new(65_536).expect("as many as a schedule has");
    assert_eq!(huge.rank(65_536).map(drop).expect_err("beyond").code(), Code::NoSuchRank);
    for count in [u64::MAX, u64::MAX / 4, 1 << 62] {
        for error in [
            ring.spmd_plan(2, count, DType::F32, ReduceOp::Sum).map(drop).expect_err("too large"),
            ring.plan(2, count, DType::F32, ReduceOp::Sum).map(drop).expect_err("too large"),
        ] {
            assert_eq!(error.code(), Code::TooLarge, "{error}");
        }
    }
}

/// Without a look at the buffer.
fn all_reduce_quietly(rank: &mut Rank<'_>) -> Result<(), Error> {
    rank.all_reduce(&mut [1.0_f32; 10], ReduceOp::Sum)
}
