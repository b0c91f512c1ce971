//! Many ranks on few cores end, and waiting ranks sleep. The tests here measure the time that the process gets of the
//! cores, so each runs in a process of its own.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use roundelay::library::RingAllReduce;
use roundelay::{DType, Level, Options, ReduceOp, ToPlan as _};
use roundelay_core::ids::RankId;

use super::runs::{Kind, Proofs, assert_right};

/// Set in the process of one test.
const ALONE: &str = "ROUNDELAY_ALONE";

/// Whether this is the process of that test alone; if not, runs it in one.
fn alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let test = format!("semantics::oversubscribed::{test}");
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    let output = command.args(["--exact", &test, "--nocapture"]).env(ALONE, "1").output();
    let output = output.expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{said}");
    false
}

/// Returns the time that all threads of this process had a core so far; `None` where the system does not say.
fn busy() -> Option<Duration> {
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which may hold anything: the state, then numbers; ticks of the user and of the system.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    Some(TICK * (ticks()? + ticks()?))
}

#[test]
fn sixty_four_ranks_on_one_worker_take_one_core() {
    if !alone("sixty_four_ranks_on_one_worker_take_one_core") {
        return;
    }
    let kind = Kind { dtype: DType::F32, op: ReduceOp::Sum, in_place: false };
    let algorithm = RingAllReduce::new();
    let mut proofs = Proofs::new(&algorithm);
    let options = Options::new().level(Level::O0).workers(1);
    let plan = proofs.plan_with(64, 1000, kind, options);
    let (since, before) = (Instant::now(), busy());
    for seed in 0..10 {
        assert_right(&plan, kind, seed);
    }
    let elapsed = since.elapsed();
    if let (Some(before), Some(after)) = (before, busy()) {
        let busy = after.saturating_sub(before);
        assert!(
            busy < elapsed + elapsed / 10 + Duration::from_millis(30),
            "{busy:?} of {elapsed:?}"
        );
    }
}

/// 63 threads wait for the last one: they would take every core there is, if they did not sleep.
#[test]
fn ranks_that_wait_for_another_sleep() {
    if !alone("ranks_that_wait_for_another_sleep") {
        return;
    }
    const LATE: Duration = Duration::from_secs(1);
    let options = Options::new().level(Level::O0);
    let algorithm = RingAllReduce::new();
    let team =
        &algorithm.spmd_plan_with(64, 64, DType::I32, ReduceOp::Sum, options).expect("a team");
    let (since, before) = (Instant::now(), busy());
    thread::scope(|threads| {
        for rank in 0..64 {
            threads.spawn(move || {
                if rank == 63 {
                    thread::sleep(LATE);
                }
                let mut buffer = [1_i32; 64];
                team.rank(RankId(rank)).unwrap().run_in_place(&mut buffer).expect("all call");
                assert_eq!(buffer, [64; 64]);
            });
        }
    });
    assert!(since.elapsed() >= LATE);
    if let (Some(before), Some(after)) = (before, busy()) {
        let busy = after.saturating_sub(before);
        assert!(busy < LATE / 2, "{busy:?} of {:?}", since.elapsed());
    }
}
