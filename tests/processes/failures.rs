//! A rank fails, at any place of a call: every survivor says the same of it, in time, and all later calls say it again.

use std::time::{SystemTime, UNIX_EPOCH};

use roundelay::library::{MeshAllReduce, RingAllReduce};
use roundelay::{Level, Options, Rank, ReduceOp, World};
use roundelay_kernels::process::Fault;

use super::ranks::{DEADLINE, Told, case, end, run, say};

/// The call in which a rank fails, and how many there are.
const FAILS: u64 = 5;
const CALLS: u64 = 30;

/// One point of the grid.
#[derive(Clone, Debug)]
struct Case {
    fault: &'static str,
    algorithm: &'static str,
    level: Level,
    rank: u32,
    place: u32,
}

impl Case {
    fn text(&self) -> String {
        let Self { fault, algorithm, level, rank, place } = self;
        format!("{fault} {algorithm} {level} {rank} {place}")
    }
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_millis()
}

/// A rank's life.
fn live(text: &str) -> ! {
    let words: Vec<&str> = text.split(' ').collect();
    let [fault, algorithm, level, bad, place] = words[..] else { panic!("{text}") };
    let (bad, place): (u32, u32) = (bad.parse().expect("a rank"), place.parse().expect("a place"));
    let deadline = if fault == "stop" { std::time::Duration::from_secs(1) } else { DEADLINE };
    let options = Options::new().deadline(deadline).level(level.parse().expect("a level"));
    let world = World::from_env_with(options).expect("a world");
    let world = match algorithm {
        "ring" => world.using(RingAllReduce::new()),
        "mesh" => world.using(MeshAllReduce::new()),
        _ => world,
    };
    let mut rank = world.rank();
    if rank.id() == bad {
        let what = match fault {
            "kill" => Fault::Kill,
            "stop" => Fault::Stop,
            "exit" => Fault::Exit,
            "panic" => Fault::Panic,
            "late" => Fault::Late(30),
            _ => Fault::Late(0),
        };
        world.inject(FAILS, place, what);
    }
    for number in 1..=CALLS {
        if rank.id() == bad && number == FAILS {
            say(&format!("at {}", now()));
        }
        let input = vec![rank.id() as f32 + number as f32; 5_000];
        let mut output = vec![
            0.0_f32;
            if fault == "differ" && rank.id() == bad && number == FAILS {
                4_000
            } else {
                5_000
            }
        ];
        let call = |rank: &mut Rank<'_>, output: &mut [f32]| {
            rank.all_reduce_into(&input[..output.len()], output, ReduceOp::Sum)
        };
        let done = call(&mut rank, &mut output);
        assert!(
            input.iter().all(|x| x.to_bits() == (rank.id() as f32 + number as f32).to_bits()),
            "the input is as it was"
        );
        let n = rank.nranks() as f32;
        match done {
            Ok(()) => {
                let sum = n * (n - 1.0) / 2.0 + n * number as f32;
                assert!(output.iter().all(|x| x.to_bits() == sum.to_bits()));
            }
            Err(error) if error.code().as_str() == "E0414" => say(&format!("void {error}")),
            Err(error) => {
                say(&format!("told {} {error}", now()));
                // Again, and at once.
                let again = call(&mut rank, &mut output).expect_err("nothing works any more");
                say(&format!("again {again}"));
                end();
            }
        }
    }
    say("done");
    end();
}

/// Whether the fault happened; what the ranks were told is right.
fn check(nranks: u32, case: &Case) -> bool {
    let test = "failures::every_survivor_is_told_the_same";
    let told = run(test, nranks, &case.text(), |pids| {
        if case.fault == "stop" {
            wake_later(pids[case.rank as usize]);
        }
    });
    let about = |told: &Told| format!("{case:?} of {nranks}\n{told:#?}");
    let bad = &told[case.rank as usize];
    let line = |told: &Told, begin: &str| {
        told.said.iter().find_map(|line| line.strip_prefix(begin).map(str::to_owned))
    };
    let survivors = || told.iter().enumerate().filter(|(rank, _)| *rank != case.rank as usize);
    match case.fault {
        "late" | "none" => {
            assert!(
                told.iter().all(|told| told.said.last().is_some_and(|line| line == "done")),
                "{told:#?}"
            );
            return true;
        }
        "differ" => {
            for told in &told {
                let voids = told.said.iter().filter(|line| line.starts_with("void")).count();
                assert_eq!(
                    (voids, told.said.last().map(String::as_str)),
                    (1, Some("done")),
                    "{}",
                    about(told)
                );
                let text = line(told, "void ").expect("it was counted");
                assert!(
                    text.contains("call 5 is AllReduce of") && text.contains("4000 f32"),
                    "{text}"
                );
            }
            return true;
        }
        _ => {}
    }
    if told.iter().all(|told| told.said.last().is_some_and(|line| line == "done")) {
        // There is no such place.
        return false;
    }
    let began: u128 = line(bad, "at ").expect("it came there").parse().expect("a time");
    let mut verdicts = Vec::new();
    for (_, told) in survivors() {
        let text = line(told, "told ").unwrap_or_else(|| panic!("{}", about(told)));
        let (at, text) = text.split_once(' ').expect("a time and a text");
        let after = at.parse::<u128>().expect("a time").saturating_sub(began);
        // Far less where the machine has nothing else to do; far more where it is not found but waited for.
        assert!(after < 10_000, "after {after} ms: {}", about(told));
        let again = line(told, "again ").unwrap_or_else(|| panic!("{}", about(told)));
        if case.fault == "stop" {
            assert!(text.contains(&format!("rank {}", case.rank)), "{}", about(told));
            assert!(text.ends_with("[E0405]") || text.ends_with("[E0413]"), "{text}");
        } else {
            assert_eq!(text, again, "{}", about(told));
            verdicts.push(text.to_owned());
        }
    }
    if case.fault != "stop" {
        let how = match case.fault {
            "kill" => "was killed by signal 9",
            "exit" => "exited with code 3",
            _ => "panicked",
        };
        for text in &verdicts {
            assert_eq!(*text, verdicts[0], "{case:?}: all say the same\n{told:#?}");
            let begin = format!("rank {} (process {}) {how}", case.rank, bad.pid);
            assert!(text.starts_with(&begin) && text.ends_with("[E0428]"), "{case:?}: {text}");
            assert!(
                text.contains("call 5, AllReduce of 5000 f32, sum") || text.contains("call 6,"),
                "{text}"
            );
        }
    }
    true
}

/// Lets a process go on that was stopped, when the others have long given up.
fn wake_later(pid: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    std::thread::sleep(std::time::Duration::from_secs(3));
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process");
    // It may have ended where the fault has no such place.
    _ = kill_process(pid, Signal::CONT);
}

#[test]
fn every_survivor_is_told_the_same() {
    if let Some(case) = case() {
        live(&case);
    }
    let whole = std::env::var_os("ROUNDELAY_WHOLE").is_some();
    let (mut turn, mut happened) = (0_u32, 0);
    for algorithm in ["ring", "mesh", "library"] {
        for level in [Level::O1, Level::O2] {
            for nranks in [2_u32, 4, 8] {
                for fault in ["kill", "exit", "panic", "stop", "late", "differ"] {
                    for rank in 0..nranks {
                        for place in 0.. {
                            turn += 1;
                            // A few of them, but each kind of fault.
                            let taken = whole || turn.wrapping_mul(2_654_435_761) % 97 == 0;
                            let case = Case { fault, algorithm, level, rank, place };
                            if taken && check(nranks, &case) {
                                happened += 1;
                            } else if taken {
                                break;
                            }
                            if !whole && place >= 8
                                || ["late", "differ"].contains(&fault) && place > 2
                            {
                                break;
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(happened > 10, "{happened} faults happened");
    println!("{happened} faults");
}
