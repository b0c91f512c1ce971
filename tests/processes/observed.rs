//! `roundelay ps` beside ranks that hang, that ended, or that call on two groups in crossed order.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use roundelay::{Options, ReduceOp, World};
use serde_json::Value;

use super::ranks::{DEADLINE, case, end, run, say};
use crate::command::call::{binary, example};

/// Returns what `roundelay ps --json ARGS` prints.
fn ps(args: &[&str]) -> Value {
    let out = binary().args(["ps", "--json"]).args(args).output().expect("the command starts");
    // Before the ranks have met, the process is in no world.
    serde_json::from_slice(&out.stdout).unwrap_or_default()
}

/// Returns what it prints of a process's worlds, once `good` holds.
#[track_caller]
fn until(pid: u32, good: impl Fn(&Value) -> bool) -> Value {
    let start = Instant::now();
    loop {
        let seen = ps(&[&pid.to_string()]);
        if good(&seen) {
            return seen;
        }
        assert!(start.elapsed() < DEADLINE, "{seen:#}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn send(signal: &str, pid: u32) {
    let done = Command::new("kill").args(["-s", signal, &pid.to_string()]).status();
    assert!(done.expect("`kill` starts").success());
}

fn kill(pid: u32) {
    send("KILL", pid);
}

/// Returns the lines about a world's causes, without the time at their end.
fn told(world: &Value) -> Vec<String> {
    let lines = world["told"].as_array().expect("lines").iter();
    let words = |line: &Value| {
        let line = line.as_str().expect("text");
        line.rsplit_once(" since ").map_or(line, |(words, _)| words).to_owned()
    };
    lines.map(words).collect()
}

/// All ranks make two calls; rank 1 makes no third one.
#[test]
fn a_job_that_hangs_is_told_in_one_line() {
    if case().is_some() {
        let world = World::from_env().expect("a world");
        let mut rank = world.rank();
        for _ in 0..2 {
            rank.all_reduce(&mut [1.0_f32; 1000], ReduceOp::Sum).expect("all call");
        }
        if rank.id() == 1 {
            thread::sleep(2 * DEADLINE);
        }
        let lost = rank.all_reduce(&mut [1_i32; 10], ReduceOp::Max);
        say(lost.expect_err("rank 1 is killed").code().as_str());
        end();
    }
    let test = "observed::a_job_that_hangs_is_told_in_one_line";
    let ended = run(test, 3, "", |pids, _| {
        let seen = until(pids[0], |seen| {
            seen["worlds"][0]["told"].as_array().is_some_and(|told| !told.is_empty())
        });
        let world = &seen["worlds"][0];
        let line = format!(
            "rank 1 (process {}) has not made call 3 (AllReduce of 10 i32, max); ranks 0 and 2 wait for it",
            pids[1]
        );
        assert_eq!(told(world), [line.as_str()]);
        let rank = &world["ranks"][2];
        assert_eq!((&rank["pid"], &rank["calls"]), (&pids[2].into(), &3.into()), "{rank:#}");
        assert_eq!((&rank["in_call"], &rank["wait"]["for"]), (&true.into(), &1.into()), "{rank:#}");
        assert!(rank["command"].as_str().is_some_and(|text| text.contains(test)), "{rank:#}");
        let calls = rank["last_calls"].as_array().expect("calls");
        let names: Vec<_> = calls.iter().map(|call| &call["dtype"]).collect();
        assert_eq!(names, ["i32", "f32", "f32"]);
        assert!(calls[0]["took_seconds"].is_null() && calls[1]["took_seconds"].is_number());
        assert_eq!(
            (&calls[1]["count"], &calls[1]["collective"]),
            (&1000.into(), &"AllReduce".into())
        );
        assert!(calls.iter().all(|call| call["algorithm"].is_string()), "{calls:#?}");
        let idle = &world["ranks"][1];
        assert_eq!((&idle["in_call"], &idle["calls"]), (&false.into(), &2.into()), "{idle:#}");
        send("STOP", pids[1]);
        let stopped = until(pids[0], |seen| seen["worlds"][0]["ranks"][1]["state"] == "stopped");
        let line = line.replace(") has", ") is stopped, and has");
        assert_eq!(told(&stopped["worlds"][0]), [line]);
        kill(pids[1]);
    });
    for rank in [0, 2] {
        assert_eq!(ended[rank].said, ["E0428"], "{}", ended[rank].all);
    }
}

#[test]
fn a_rank_that_ended_is_told() {
    if case().is_some() {
        let world = World::from_env().expect("a world");
        world.rank().barrier().expect("all are there");
        if world.rank().id() == 1 {
            std::process::abort();
        }
        thread::sleep(2 * DEADLINE);
    }
    run("observed::a_rank_that_ended_is_told", 3, "", |pids, ended| {
        let gone = |seen: &Value| seen["worlds"][0]["ranks"][1]["state"] == "gone";
        let seen = until(pids[0], |seen| ended.load(Ordering::Relaxed) > 0 && gone(seen));
        let line =
            format!("rank 1 (process {}) is gone: it has ended, or cannot be looked at", pids[1]);
        assert_eq!(told(&seen["worlds"][0]), [line], "{seen:#}");
        for rank in [0, 2] {
            kill(pids[rank]);
        }
    });
}

/// Two jobs at once: each is seen by its ranks, and both are without a number.
#[test]
fn worlds_of_several_jobs_are_told_apart() {
    if case().is_some() {
        let world = World::from_env().expect("a world");
        world.rank().barrier().expect("all are there");
        thread::sleep(2 * DEADLINE);
    }
    let test = "observed::worlds_of_several_jobs_are_told_apart";
    run(test, 2, "", |first, _| {
        run(test, 3, "", |second, _| {
            for pids in [first, second] {
                let met = |seen: &Value| seen["worlds"][0]["ranks"][0]["calls"] == 1;
                let seen = until(pids[1], met);
                let worlds = seen["worlds"].as_array().expect("worlds");
                assert_eq!(worlds.len(), 1, "{seen:#}");
                let ranks = worlds[0]["ranks"].as_array().expect("ranks").iter();
                let found: Vec<_> =
                    ranks.map(|rank| rank["pid"].as_u64().expect("a pid") as u32).collect();
                assert_eq!(found, pids);
                assert_eq!(worlds[0]["job"], std::process::id());
                let all = ps(&[]);
                let all = all["worlds"].as_array().expect("worlds");
                assert!(all.iter().any(|world| world["id"] == worlds[0]["id"]));
            }
            for pid in second.iter().chain(first) {
                kill(*pid);
            }
        });
    });
}

/// The ranks of this test have a thread beside the one that waits, so that the crossed order is not certain.
#[test]
fn crossed_groups_are_named_at_the_deadline() {
    if case().is_some() {
        let options = Options::new().deadline(Duration::from_secs(4));
        let all = World::from_env_with(options).expect("a world");
        let pair = all.split(Some(0), 0).expect("all call").expect("a color");
        let done = match all.rank().id() {
            0 => all
                .rank()
                .all_reduce(&mut [1.0_f32; 10], ReduceOp::Sum)
                .and_then(|()| pair.rank().barrier()),
            _ => pair
                .rank()
                .barrier()
                .and_then(|()| all.rank().all_reduce(&mut [1.0_f32; 10], ReduceOp::Sum)),
        };
        say(&done.expect_err("neither comes").to_string());
        end();
    }
    let told_early = AtomicBool::new(false);
    let ended = run("observed::crossed_groups_are_named_at_the_deadline", 2, "", |pids, _| {
        let seen = until(pids[0], |seen| !seen["circles"].as_array().is_none_or(Vec::is_empty));
        let circle = &seen["circles"][0];
        assert_eq!(circle["certain"], false, "{circle:#}");
        told_early.store(true, Ordering::Relaxed);
    });
    assert!(told_early.load(Ordering::Relaxed));
    let all: String = ended.iter().map(|rank| rank.said.concat()).collect();
    assert!(all.contains("AllReduce of 10 f32, sum") && all.contains("[E0405]"), "{all}");
    assert!(all.contains("may call on these worlds in crossed order"), "{all}");
}

/// With one thread a process, the ranks have the error after a second, and not at the deadline of a minute.
#[test]
fn a_deadlock_of_crossed_groups_is_found_early() {
    let mut launch = binary();
    launch.args(["launch", "-n", "2", "--grace", "20s", "--"]);
    let start = Instant::now();
    let ended = launch.arg(example("crossed_groups").get_program()).output().expect("it starts");
    let (took, err) = (start.elapsed(), String::from_utf8_lossy(&ended.stderr));
    assert!(took < Duration::from_secs(20) && !ended.status.success(), "{took:?}: {err}");
    // One rank finds the deadlock, or both do; a rank that is told has the same reason.
    assert_eq!(err.matches("this is a deadlock").count(), 2, "{err}");
    assert!(err.contains("E0405"), "{err}");
    for call in ["AllReduce of 10 f32, sum", "AllReduce of 1 u8, max"] {
        assert!(err.matches(call).count() >= 2, "{call}: {err}");
    }
}
