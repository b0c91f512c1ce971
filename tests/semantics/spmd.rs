//! Ranks that call by themselves: often, at any time, wrongly, or not at all.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use roundelay::library::{
    BruckAllToAll, DoubleBinaryTreeAllReduce, HalvingDoublingAllReduce, MeshAllGather,
    NcclRingAllReduce, NhrAllReduce, OneShotMeshAllReduce, RingAllReduce, RingReduceScatter,
    TreeBroadcast,
};
use roundelay::{Algorithm, DType, Level, Options, ReduceOp, SpmdPlan, ToPlan as _, half};
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_kernels::Error;
use roundelay_tests::takes_all;

use super::ranks::{Runs, Turn, Whole, with_longer_deadlines};

const LEVELS: [Level; 3] = [Level::O0, Level::O1, Level::O2];

/// Longer than any of these runs takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn team(
    algorithm: &dyn Algorithm,
    nranks: u32,
    count: u64,
    dtype: DType,
    level: Level,
) -> SpmdPlan {
    let options = Options::new().level(level).deadline(PATIENCE);
    algorithm.spmd_plan_with(nranks, count, dtype, ReduceOp::Sum, options).expect("a team")
}

/// At most 20 µs of work, and now and then a sleep, after which the others are long there.
fn come_late(turn: Turn) {
    let random = turn.random();
    if random.is_multiple_of(61) {
        thread::sleep(Duration::from_micros(random >> 32 & 0xff));
        return;
    }
    let (since, limit) = (Instant::now(), Duration::from_nanos((random >> 32) % 20_000));
    while since.elapsed() < limit {
        std::hint::spin_loop();
    }
}

/// As many runs of one team as `ROUNDELAY_RUNS` says, or 400, and of all checks 2000; out of place and in place in turn.
fn run_often<T: Whole>(algorithm: &dyn Algorithm, nranks: u32, count: usize, level: Level) {
    const ROW: u64 = 100;
    let most = if takes_all() { 2000 } else { 400 };
    let all = std::env::var("ROUNDELAY_RUNS").map_or(most, |all| all.parse().expect("a number"));
    let team = team(algorithm, nranks, count as u64, T::DTYPE, level);
    let (collective, root) = (algorithm.collective(), RankId(0));
    for first in (0..all).step_by(ROW as usize) {
        let in_place = collective.has_in_place() && first / ROW % 2 == 1;
        let runs = Runs { team: &team, collective, root, count, in_place };
        runs.assert_right::<T>(first..all.min(first + ROW), come_late);
    }
}

#[test]
fn thousands_of_runs_with_ranks_that_come_at_any_time() {
    for level in LEVELS {
        run_often::<f32>(&RingAllReduce::new(), 3, 10, level);
        run_often::<i32>(&NcclRingAllReduce::new(), 3, 1000, level);
        run_often::<half::bf16>(&NhrAllReduce::new(), 5, 7, level);
        run_often::<i32>(&OneShotMeshAllReduce::new(), 2, 1, level);
        run_often::<f32>(&HalvingDoublingAllReduce::new(), 4, 1000, level);
        run_often::<i32>(&DoubleBinaryTreeAllReduce::new(), 4, 100, level);
        run_often::<f32>(&RingReduceScatter::new(), 4, 3, level);
        run_often::<half::bf16>(&MeshAllGather::new(), 3, 33, level);
        run_often::<i32>(&BruckAllToAll::new(), 4, 5, level);
        run_often::<f32>(&TreeBroadcast::new().slices(2), 5, 64, level);
    }
}

#[test]
fn more_threads_than_cores() {
    for level in LEVELS {
        for algorithm in [&RingAllReduce::new() as &dyn Algorithm, &OneShotMeshAllReduce::new()] {
            for in_place in [false, true] {
                let team = team(algorithm, 16, 1000, DType::Bf16, level);
                let (collective, root) = (algorithm.collective(), RankId(0));
                let runs = Runs { team: &team, collective, root, count: 1000, in_place };
                runs.assert_right::<half::bf16>(0..30, come_late);
            }
        }
    }
}

/// Returns the result of every rank's one call.
fn call_all(team: &SpmdPlan, ranks: impl IntoIterator<Item = u32>) -> Vec<Result<(), Error>> {
    let call = |rank| {
        let member = team.rank(RankId(rank)).expect("a rank of the team");
        move || member.run_in_place(&mut [1_i32; 4])
    };
    thread::scope(|threads| {
        let calls: Vec<_> = ranks.into_iter().map(|rank| threads.spawn(call(rank))).collect();
        calls.into_iter().map(|call| call.join().expect("no panic")).collect()
    })
}

#[test]
fn wrong_buffers_and_ranks_are_refused_and_the_others_wait_for_right_ones() {
    let team = &team(&RingAllReduce::new(), 2, 4, DType::I32, Level::O2);
    let error = team.rank(RankId(2)).unwrap_err();
    assert_eq!(error.code(), Code::NoSuchRank);
    assert_eq!(error.to_string(), "there is no rank 2 of 2; ranks count from 0 [E0411]");
    thread::scope(|threads| {
        let other = threads.spawn(|| {
            let mut buffer = [2_i32; 4];
            team.rank(RankId(1)).unwrap().run_in_place(&mut buffer).map(|()| buffer)
        });
        let me = team.rank(RankId(0)).unwrap();
        let refused = |result: Result<(), Error>, code, text: &str| {
            let error = result.unwrap_err();
            assert_eq!((error.code(), error.to_string().as_str()), (code, text));
        };
        let length = Code::WrongBufferLength;
        refused(
            me.run(&[1_i32; 3], &mut [0; 4]),
            length,
            "the input of rank 0 has 3 elements; it must have 4 [E0402]",
        );
        refused(
            me.run(&[1_i32; 4], &mut [0; 5]),
            length,
            "the output of rank 0 has 5 elements; it must have 4 [E0402]",
        );
        refused(
            me.run_in_place(&mut [1_i32; 0]),
            length,
            "the buffer of rank 0 has 0 elements; it must have 4 [E0402]",
        );
        refused(
            me.run_in_place(&mut [1.0_f32; 4]),
            Code::WrongDType,
            "buffers of f32 for a plan of i32; make the plan for f32 [E0403]",
        );
        let mut output = [0_i32; 4];
        me.run(&[1; 4], &mut output).expect("the right buffers, at last");
        assert_eq!(output, [3; 4]);
        assert_eq!(other.join().unwrap(), Ok([3; 4]));
    });
}

#[test]
fn a_rank_is_called_by_one_thread_at_a_time() {
    for level in LEVELS {
        let team = &team(&RingAllReduce::new(), 2, 4, DType::I32, level);
        for _ in 0..50 {
            let (done, results) = mpsc::channel();
            thread::scope(|threads| {
                for _ in 0..2 {
                    let done = done.clone();
                    threads.spawn(move || {
                        let result = team.rank(RankId(0)).unwrap().run_in_place(&mut [1_i32; 4]);
                        done.send(result).unwrap();
                    });
                }
                // Without rank 1 the first to come cannot end, so the second finds it there.
                let second = results.recv_timeout(PATIENCE).expect("one of two");
                assert_eq!(second, Err(Error::RankBusy { rank: RankId(0) }));
                team.rank(RankId(1)).unwrap().run_in_place(&mut [1_i32; 4]).expect("rank 0 calls");
                assert_eq!(results.recv_timeout(PATIENCE), Ok(Ok(())));
            });
        }
    }
}

/// Returns the team in which rank `missing` of 4 never calls, the results of the others' calls, and the rank that gave
/// up with its reason; `None` if the thread of another rank itself began after the deadline, and is named for that.
fn call_without(
    algorithm: &dyn Algorithm,
    missing: u32,
    level: Level,
    deadline: Duration,
) -> Option<(SpmdPlan, Vec<Error>, (RankId, String))> {
    let options = Options::new().level(level).deadline(deadline);
    let team = algorithm.spmd_plan_with(4, 4, DType::I32, ReduceOp::Sum, options);
    let team = team.expect("a team");
    let since = Instant::now();
    let results = call_all(&team, (0..4).filter(|rank| *rank != missing));
    let elapsed = since.elapsed();
    assert!(deadline <= elapsed && elapsed < PATIENCE, "{elapsed:?}");
    let mut first = None;
    let mut named = RankId(missing);
    let mut others = Vec::new();
    for result in results {
        match result.expect_err("a rank is missing") {
            Error::Missing(late) => {
                assert_eq!((late.number, late.after, &late.last), (1, deadline, &None));
                assert_eq!(late.call, "AllReduce of 4 i32, sum");
                named = late.missing;
                let said = (late.rank, late.to_string());
                assert_eq!(first.replace(said), None, "{level}: one gives up");
            }
            other => others.push(other),
        }
    }
    let first = first.expect("the one that gave up");
    (named == RankId(missing)).then_some((team, others, first))
}

#[test]
fn a_rank_that_never_calls_is_one_timeout_and_nobody_hangs() {
    for (turn, level) in (0..20).flat_map(|turn| LEVELS.map(|level| (turn, level))) {
        for algorithm in [&RingAllReduce::new() as &dyn Algorithm, &OneShotMeshAllReduce::new()] {
            let missing = turn % 4;
            let (team, others, (first, cause)) =
                with_longer_deadlines(|deadline| call_without(algorithm, missing, level, deadline));
            assert_eq!(others.len(), 2);
            for other in others {
                let Error::Abandoned { rank, by, why } = other else { panic!("{other}") };
                assert_eq!((by, &why), (first, &cause));
                assert_ne!(rank.0, missing);
            }

            let since = Instant::now();
            for (rank, result) in (0..).map(RankId).zip(call_all(&team, 0..4)) {
                let (by, why) = (first, cause.clone());
                assert_eq!(result, Err(Error::Abandoned { rank, by, why }));
            }
            assert!(since.elapsed() < PATIENCE, "late calls do not wait");
        }
    }
}
