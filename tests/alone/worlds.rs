//! Ranks that are processes: here each is a thread, which joins as a process would. Systems other than Linux have no
//! such ranks, and a program gets an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use roundelay::{
    Call, ChosenWay, Code, Collective, DType, Ended, EngineError, Error, Lent, Message,
    Nonblocking, Options, Pending, ReduceOp, Scope, UniqueId, World, compiler,
};

#[test]
fn a_world_needs_a_launcher_and_linux() {
    let error = World::from_env().expect_err("nothing launched this test");
    let code = if cfg!(target_os = "linux") { Code::NotJoined } else { Code::SystemRefused };
    assert_eq!(error.code(), code, "{error}");
}

/// Runs both ranks of a world of two.
fn both(rank: impl Fn(World) -> Result<(), Error> + Sync) {
    let id = match UniqueId::new() {
        Ok(id) => id,
        Err(error) => {
            assert!(!cfg!(target_os = "linux") && error.code() == Code::SystemRefused, "{error}");
            return;
        }
    };
    thread::scope(|threads| {
        for me in 0..2 {
            let (id, rank) = (&id, &rank);
            threads.spawn(move || {
                let world = World::join(id, 2, me).expect("both join");
                rank(world).expect("it works");
            });
        }
    });
}

/// A world and its share make calls in one order, each by its own algorithm; the rank leaves with the last of them.
#[test]
fn a_share_of_a_world_has_algorithms_of_its_own() {
    both(|world| {
        let found = roundelay::tools::algorithms("RingBroadcast", None, &[]);
        let ring = found.map_err(|(_, why)| why).expect("it is in the library").remove(0);
        let share = world.share().using_between(&(0..=u64::MAX), ring);
        let call = |collective, root| Call {
            collective,
            root,
            count: 3,
            dtype: DType::F32,
            op: ReduceOp::Sum,
        };
        let names = [&world, &share].map(|of| of.algorithm_of(&call(Collective::Broadcast, 1)));
        assert_eq!(names, ["NhrBroadcast", "RingBroadcast"]);
        // The algorithm has the root of each call.
        for (of, root) in [(&world, 0), (&share, 0), (&share, 1), (&world, 1), (&share, 0)] {
            let mut rank = of.rank();
            let mut said = [rank.id() as f32; 3];
            rank.broadcast(&mut said, root)?;
            assert_eq!(said, [root as f32; 3]);
        }
        world.leave()?;
        share.rank().barrier()?;
        share.leave()
    });
}

/// After enough calls of a shape, rank 0 tells the way that the world has chosen for it.
#[test]
fn ranks_of_a_world_choose_a_way() {
    both(|world| {
        let mut rank = world.rank();
        for turn in 0..400 {
            let mut sums = vec![turn; 5000];
            rank.all_reduce(&mut sums, ReduceOp::Sum)?;
            assert!(sums.iter().all(|sum| *sum == 2 * turn), "turn {turn}");
        }
        let ways: Vec<ChosenWay> = world.ways();
        assert_eq!(ways.len(), usize::from(rank.id() == 0));
        assert!(ways.iter().all(|way| way.way.starts_with("tiles of ")), "{ways:?}");
        Ok(())
    });
}

#[test]
fn ranks_of_a_world_call_and_send() {
    both(|world| {
        let mut lent: Lent<f32> = world.alloc(100)?;
        lent.fill(1.0);
        world.rank().all_reduce(&mut lent, ReduceOp::Sum)?;
        assert_eq!(*lent, [2.0; 100]);
        let me = world.rank().id();
        if me == 0 {
            world.send(&[1_u8, 2, 3], 1)?;
        } else {
            match world.recv(&mut [0_u8; 2], 0) {
                Err(Error::Engine(EngineError::WrongMessage { sent, .. })) => {
                    let Message { len, .. } = sent;
                    assert_eq!(len, 3);
                }
                other => panic!("{other:?}"),
            }
        }
        let alone = world.split(Some(me), 0)?.expect("a color");
        assert_eq!(alone.nranks(), 1);
        Ok(())
    });
}

#[test]
fn calls_need_not_block() {
    both(|world| {
        let calls: Nonblocking<'_> = world.nonblocking();
        let sum: Pending<Vec<i32>> = calls.all_reduce(vec![1; 10], ReduceOp::Sum);
        let mut borrowed = [1; 10];
        let sums = |scope: &Scope<'_, '_>| scope.barrier().wait();
        world.scope(|scope| {
            scope.all_reduce(&mut borrowed, ReduceOp::Sum);
            sums(scope)
        })?;
        assert_eq!((sum.wait()?, borrowed), (vec![2; 10], [2; 10]));
        Ok(())
    });
}

#[test]
fn survivors_go_on() {
    both(|world| {
        if world.rank().id() == 1 {
            return Ok(());
        }
        match world.rank().barrier() {
            Err(Error::Engine(EngineError::RankEnded(ended))) => {
                let Ended { rank, .. } = *ended;
                assert_eq!(rank.0, 1);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(world.shrink()?.nranks(), 1);
        Ok(())
    });
}

#[test]
fn calls_may_be_values_on_bytes() {
    both(|world| {
        let (me, collective, dtype) = (world.rank().id(), Collective::AllReduce, DType::U8);
        let sum = Call { collective, root: 0, count: 3, dtype, op: ReduceOp::Sum };
        let (input, mut output) = ([1, 2, me as u8], [0; 3]);
        world.rank().call_bytes(sum, &input, &mut output)?;
        assert_eq!(output, [2, 4, 1]);
        world.rank().call_bytes_in_place(sum, &mut output)?;
        assert_eq!(output, [4, 8, 2]);

        // The root of a collective without root, and the op of a collective that only copies, are ignored.
        let all = Call { collective: Collective::AllGather, root: 9, count: 1, ..sum };
        let all = Call { op: if me == 0 { ReduceOp::Sum } else { ReduceOp::Max }, ..all };
        let pending = world.nonblocking().call_bytes(all, vec![me as u8], vec![0; 2]);
        let in_place = world.nonblocking().call_bytes_in_place(sum, vec![1; 3]);
        assert!(in_place.wait_timeout(Duration::from_secs(30)), "both are made by now");
        assert_eq!((pending.wait()?.1, in_place.wait()?), (vec![0, 1], vec![2; 3]));

        let nowhere = Call { collective: Collective::Broadcast, root: 2, ..sum };
        let refused = world.rank().call_bytes_in_place(nowhere, &mut output);
        assert_eq!(refused.expect_err("no such rank").code(), Code::NoSuchRank);
        Ok(())
    });
}

/// An algorithm of this text, which was compiled now.
fn compiled(text: &str) -> compiler::layout::Configured {
    let source = compiler::syntax::Source::from_text("text.coll", text);
    let checked = compiler::compile(&source, compiler::check::Frontend::File).expect("no errors");
    let algorithm = checked.algorithms.into_iter().next().expect("one algorithm");
    compiler::layout::Configured::new(algorithm, &source)
}

#[test]
fn sizes_have_algorithms_that_were_compiled_when_the_program_ran() {
    both(|world| {
        // A wrong algorithm is refused where it is called, and so shows the sizes that it is for.
        let wrong = || compiled("algorithm Wrong() -> AllReduce { }");
        let world = world.using_between(&(8..=16), wrong()).using_between(&(12..=12), wrong());
        for (bytes, right) in [(7, true), (8, false), (12, false), (16, false), (17, true)] {
            let refused = world.rank().all_reduce(&mut vec![0_u8; bytes], ReduceOp::Sum).err();
            assert_eq!(refused.is_none(), right, "{bytes} bytes: {refused:?}");
        }
        // Another one in the midst of it leaves both ends as they were.
        let world = world.using_between(&(10..=11), compiled(MIDST));
        for (bytes, right) in [(7, true), (9, false), (10, true), (11, true), (12, false)] {
            let refused = world.rank().all_reduce(&mut vec![0_u8; bytes], ReduceOp::Sum).err();
            assert_eq!(refused.is_none(), right, "{bytes} bytes: {refused:?}");
        }
        Ok(())
    });
}

/// For two ranks: each copies the other's data.
const MIDST: &str = "algorithm Midst() -> AllReduce {
    scratch theirs: 1 like output;
    let other = peer(1 - rank);
    other.TxAck();
    other.RxAck();
    copy(other.input, local.theirs[0]);
    other.TxDataSignal();
    other.RxDataSignal();
    copy(local.input, local.output);
    reduce(local.theirs[0], local.output);
}";

/// Roots and other ranks that only send wait for no rank, and get the error all the same.
#[test]
fn ranks_that_wait_for_nobody_are_told_of_other_calls() {
    for collective in [Collective::Broadcast, Collective::Reduce] {
        for turn in 0..50 {
            both(|world| {
                let me = world.rank().id();
                // Each rank is the root of its own call; or each names the other as the root.
                let root = if collective == Collective::Broadcast { me } else { 1 - me };
                let (count, dtype, op) = (3, DType::U8, ReduceOp::Sum);
                let call = Call { collective, root, count, dtype, op };
                if turn % 3 == me {
                    thread::sleep(Duration::from_micros(100));
                }
                let mut told =
                    Vec::from_iter(world.rank().call_bytes_in_place(call, &mut [1; 3]).err());
                // A rank that has left the call already gets the error at its next call, which does not count as made.
                for made in 0..3 {
                    while let Err(error) = world.rank().barrier() {
                        assert_eq!(error.code(), Code::CallsDiffer, "{made}: {error}");
                        told.push(error);
                    }
                }
                let codes: Vec<Code> = told.iter().map(Error::code).collect();
                assert_eq!(codes, [Code::CallsDiffer], "{told:?}");
                Ok(())
            });
        }
    }
}

#[test]
fn a_rank_that_makes_no_call_tells_the_others_why() {
    both(|world| {
        let me = world.rank().id();
        let reason = |error: Error| match error {
            Error::Engine(EngineError::CallsDiffer(differ)) => differ.reason.unwrap_or_default(),
            other => panic!("{other}"),
        };
        if me == 0 {
            world.refuse("no time")?;
        } else {
            assert_eq!(reason(world.rank().barrier().expect_err("it is void")), "no time");
        }
        // A rank refuses the length of its input.
        let input = vec![1_i32; if me == 0 { 3 } else { 4 }];
        let scattered = world.rank().reduce_scatter(&input, &mut [0; 2], ReduceOp::Sum);
        let error = scattered.expect_err("it is void");
        if me == 0 {
            assert_eq!(error.code(), Code::WrongBufferLength, "{error}");
        } else {
            assert!(reason(error).ends_with("[E0402]"));
        }
        let later = world.nonblocking().reduce_scatter(input, vec![0; 2], ReduceOp::Sum);
        let code = later.wait().expect_err("it is void").code();
        assert_eq!(code, if me == 0 { Code::WrongBufferLength } else { Code::CallsDiffer });
        world.rank().barrier()?;
        world.leave()
    });
}

#[test]
fn a_world_is_aborted() {
    both(|world| {
        world.rank().barrier()?;
        world.abort("a test wants it")?;
        let error = world.rank().barrier().expect_err("it was aborted");
        assert_eq!(error.code(), Code::Abandoned, "{error}");
        assert!(error.to_string().contains("a test wants it"), "{error}");
        Ok(())
    });
}

#[test]
fn options_are_for_worlds_that_bootstrap() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let options = Options::new().deadline(Duration::from_secs(7));
    let world = World::bootstrap_with(1, 0, options, |mine| Ok(mine.to_vec())).expect("one rank");
    assert_eq!(world.nranks(), 1);
}

#[test]
fn something_else_goes_on_while_a_rank_waits() {
    let calls = Arc::new(AtomicU64::new(0));
    both(|world| {
        let first = world.rank().id() == 0;
        let counted = calls.clone();
        let world = world.progressing(move || {
            counted.fetch_add(u64::from(first), Ordering::Relaxed);
        });
        // Rank 1 waits for the calls, and not for a time, as the machine may do other work.
        let since = Instant::now();
        let enough = || calls.load(Ordering::Relaxed) >= 50;
        while !first && !enough() && since.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(1));
        }
        world.rank().barrier()?;
        assert!(enough(), "{calls:?} calls in {:?}", since.elapsed());
        Ok(())
    });
}

#[test]
fn a_world_may_be_given_another_deadline() {
    both(|world| {
        let world = world.deadline(Duration::from_millis(30));
        if world.rank().id() == 0 {
            let error = world.rank().barrier().expect_err("no other rank comes");
            assert_eq!(error.code(), Code::Timeout, "{error}");
        } else {
            thread::sleep(Duration::from_millis(300));
        }
        Ok(())
    });
}

#[test]
fn ranks_of_a_host_are_told_by_a_launcher() {
    let error = World::from_env_of_host(Options::new()).expect_err("nothing launched this test");
    let code = if cfg!(target_os = "linux") { Code::NotJoined } else { Code::SystemRefused };
    assert_eq!(error.code(), code, "{error}");
}
