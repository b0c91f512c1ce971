//! A rank fails, at any place of a call: every survivor reports the same error, in time, and all later calls report it
//! again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use roundelay::library::{MeshAllReduce, RingAllReduce};
use roundelay::{Level, Options, Rank, ReduceOp, World};
use roundelay_kernels::shared_memory::Fault;

use super::ranks::{DEADLINE, Told, case, end, run, say};

/// The call in which a rank fails, and how many there are.
const FAILS: u64 = 5;
const CALLS: u64 = 16;

/// How long after the end of a rank's process all that wait for it are told at the latest.
const PROMISE: Duration = Duration::from_millis(100);

/// One point of the grid.
#[derive(Clone, Copy, Debug)]
struct Case {
    fault: &'static str,
    algorithm: &'static str,
    level: Level,
    nranks: u32,
    rank: u32,
    place: u32,
}

impl Case {
    fn text(&self) -> String {
        let Self { fault, algorithm, level, rank, place, .. } = self;
        format!("{fault} {algorithm} {level} {rank} {place}")
    }
}

/// Microseconds of a clock that all processes have in common.
fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_micros()
}

/// Microseconds for which this thread could have run and had no core; 0 where the system does not tell.
fn without_a_core() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').nth(1).and_then(|word| word.parse::<u64>().ok());
    nanoseconds.unwrap_or(0) / 1000
}

/// A rank's life.
fn live(text: &str) -> ! {
    let words: Vec<&str> = text.split(' ').collect();
    let [fault, algorithm, level, bad, place] = words[..] else { panic!("{text}") };
    let (bad, place): (u32, u32) = (bad.parse().expect("a rank"), place.parse().expect("a place"));
    let deadline = if fault == "stop" { Duration::from_secs(1) } else { DEADLINE };
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
        world.inject(FAILS, place, || say(&format!("at {}", now())), what);
    }
    let mut waited = 0;
    for number in 1..=CALLS {
        let input = vec![rank.id() as f32 + number as f32; 20_000];
        let differs = fault == "differ" && rank.id() == bad && number == FAILS;
        let mut output = vec![0.0_f32; if differs { 15_000 } else { 20_000 }];
        if number == FAILS {
            waited = without_a_core();
        }
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
                let (at, waited) = (now(), without_a_core() - waited);
                say(&format!("told {at} {waited} {error}"));
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

/// Returns the line of a rank's output that begins with these words, without them.
fn line(told: &Told, begin: &str) -> Option<String> {
    told.said.iter().find_map(|line| line.strip_prefix(begin).map(str::to_owned))
}

/// How long survivors had to wait for a verdict: by the clock, and without the time in which they had no core.
type Waits = Mutex<Vec<[Duration; 2]>>;

/// Returns whether the fault happened; asserts that the ranks' errors are right.
fn check(case: &Case, waits: &Waits) -> bool {
    let test = "failures::every_survivor_is_told_the_same";
    let told = run(test, case.nranks, &case.text(), |pids, ended| {
        if case.fault == "stop" {
            wake(pids, case.rank, ended);
        }
    });
    let about = || format!("{case:?}\n{told:#?}");
    let all_done = || told.iter().all(|told| told.said.last().is_some_and(|line| line == "done"));
    let bad = &told[case.rank as usize];
    let Some(began) = line(bad, "at ") else {
        // The call has no such place.
        assert!(all_done(), "{}", about());
        return false;
    };
    if case.fault == "late" {
        assert!(all_done(), "{}", about());
        return true;
    }
    if case.fault == "differ" {
        assert!(all_done(), "{}", about());
        for told in &told {
            let voids = told.said.iter().filter(|line| line.starts_with("void")).count();
            let text = line(told, "void ").unwrap_or_default();
            assert_eq!(voids, 1, "{}", about());
            let words = ["call 5 is AllReduce of", "of 20000 f32", "of 15000 f32"];
            assert!(words.iter().all(|word| text.contains(word)), "{}", about());
        }
        return true;
    }
    let began: u128 = began.parse().expect("a time");
    let survivors = || (0..).zip(&told).filter(|(rank, _)| *rank != case.rank);
    let mut verdicts = Vec::new();
    let mut took = Vec::new();
    for (_, told) in survivors() {
        let text = line(told, "told ").unwrap_or_else(|| panic!("{}", about()));
        let words: Vec<&str> = text.splitn(3, ' ').collect();
        let [at, waited, text] = words[..] else { panic!("{}", about()) };
        let after = at.parse::<u128>().expect("a time").saturating_sub(began);
        let waited: u64 = waited.parse().expect("a time");
        took.push((Duration::from_micros(after as u64), Duration::from_micros(waited)));
        let again = line(told, "again ").unwrap_or_else(|| panic!("{}", about()));
        if case.fault == "stop" {
            assert!(text.contains(&format!("rank {}", case.rank)), "{}", about());
            assert!(text.ends_with("[E0405]") || text.ends_with("[E0413]"), "{}", about());
        } else {
            assert_eq!(text, again, "{}", about());
            verdicts.push(text.to_owned());
        }
    }
    if case.fault == "stop" {
        return true;
    }
    // Each rank was told by the rank that recorded the fault first, so what delayed that rank delayed the others, too.
    let load: Duration = took.iter().map(|(_, load)| *load).sum();
    let slowest = took.iter().map(|(after, _)| *after).max().unwrap_or_default();
    let own = slowest.saturating_sub(load);
    waits.lock().expect("no thread panics here").push([slowest, own]);
    assert!(own < PROMISE, "after {slowest:?}, {load:?} of it without a core: {}", about());
    for text in &verdicts {
        assert_eq!(*text, verdicts[0], "all say the same: {}", about());
        verdict(case, bad.pid, text).unwrap_or_else(|what| panic!("{what}: {}", about()));
    }
    true
}

/// Checks that a verdict names the fault, its place, and the ranks that waited.
fn verdict(case: &Case, pid: u32, text: &str) -> Result<(), String> {
    let Case { fault, rank, nranks, level, .. } = *case;
    let wrong = |what: &str| Err(format!("{what} in {text:?}"));
    let how = match fault {
        "kill" => "was killed by signal 9 (SIGKILL)",
        "exit" => "exited with code 3",
        _ => "panicked",
    };
    let Some(rest) = text.strip_prefix(&format!("rank {rank} (process {pid}) {how} ")) else {
        return wrong("another rank or ending");
    };
    // A rank that panics reports it at once, if it is in a call.
    let rest = rest.strip_prefix("and left the world ").unwrap_or(rest);
    let Some((place, rest)) = rest.split_once("; ") else { return wrong("no place") };
    let at = place.strip_prefix("in call 5, AllReduce of 20000 f32, sum, at ");
    let waiting = match (at, place) {
        (Some("its beginning"), _) => rest,
        (Some(at), _) => {
            let (step, lines) = at.split_once(" (").unwrap_or_default();
            let step = step.strip_prefix("step ").and_then(|step| step.parse::<u32>().ok());
            let lines = lines.strip_suffix(')').and_then(|lines| lines.split_once(".coll:"));
            let lines: Vec<&str> = lines.map_or("", |(_, lines)| lines).split([',', ' ']).collect();
            let mut lines = lines.iter().filter(|word| !["", "and"].contains(*word));
            if step.is_none() || !lines.clone().all(|line| line.parse::<u32>().is_ok()) {
                return wrong("no step and lines");
            }
            // All of these algorithms reduce in one statement and spread the sums in another.
            if level == Level::O2 && lines.by_ref().count() < 2 {
                return wrong("a fused op stands for several lines");
            }
            rest
        }
        (None, "before call 5, AllReduce of 20000 f32, sum") => match rest.split_once("; ") {
            Some(("its last was call 4, AllReduce of 20000 f32, sum", rest)) => rest,
            _ => return wrong("no last call"),
        },
        (None, "before call 6, AllReduce of 20000 f32, sum") => match rest.split_once("; ") {
            Some(("its last was call 5, AllReduce of 20000 f32, sum", rest)) => rest,
            _ => return wrong("no last call"),
        },
        _ => return wrong("another call"),
    };
    if fault == "panic" && waiting == "nobody waited for it yet [E0428]" {
        return Ok(());
    }
    let waiting = waiting
        .strip_prefix("rank")
        .and_then(|waiting| waiting.trim_start_matches('s').strip_suffix(" waited for it [E0428]"));
    let Some(waiting) = waiting else { return wrong("nobody waited") };
    let waiting = waiting.split([',', ' ']).filter(|word| !["", "and"].contains(word));
    let waiting: Vec<Option<u32>> = waiting.map(|rank| rank.parse().ok()).collect();
    let known = |other: &Option<u32>| other.is_some_and(|other| other < nranks && other != rank);
    if waiting.is_empty() || !waiting.iter().all(known) {
        return wrong("others waited");
    }
    Ok(())
}

/// Lets a process go on that was stopped, when the others have given up.
fn wake(pids: &[u32], rank: u32, ended: &AtomicUsize) {
    use rustix::process::{Pid, Signal, kill_process};
    let since = Instant::now();
    while ended.load(Ordering::Relaxed) + 1 < pids.len() && since.elapsed() < DEADLINE {
        thread::sleep(Duration::from_millis(5));
    }
    let pid = Pid::from_raw(pids[rank as usize].cast_signed()).expect("a process");
    // The process may have ended where the fault has no such place.
    _ = kill_process(pid, Signal::CONT);
}

/// Cases that differ in their places only.
struct Row {
    first: Case,
    /// Places of it that are tried: all of the whole grid, or one.
    places: std::ops::Range<u32>,
}

/// The whole grid, or a part of it: `ROUNDELAY_PART=2/5` is the third fifth; or a few of each kind of fault.
fn rows(whole: bool) -> Vec<Row> {
    let part = std::env::var("ROUNDELAY_PART").ok();
    let (which, parts) =
        part.as_deref().and_then(|part| part.split_once('/')).unwrap_or(("0", "1"));
    let (which, parts): (u32, u32) =
        (which.parse().expect("a number"), parts.parse().expect("a number"));
    let mut rows = Vec::new();
    let mut turn = 0_u32;
    for algorithm in ["ring", "mesh", "library"] {
        for level in [Level::O1, Level::O2] {
            for nranks in [2_u32, 4, 8] {
                for fault in ["kill", "exit", "panic", "stop", "late", "differ"] {
                    for rank in 0..nranks {
                        let first = Case { fault, algorithm, level, nranks, rank, place: 0 };
                        // It has no place.
                        let most = if fault == "differ" { 1 } else { u32::MAX };
                        for place in 0..if whole { 1 } else { most.min(9) } {
                            turn += 1;
                            let mixed = turn.wrapping_mul(2_654_435_761) >> 8;
                            let places = if whole { 0..most } else { place..place + 1 };
                            let is_few = mixed.is_multiple_of(97)
                                || fault == "differ"
                                    && level == Level::O2
                                    && [nranks, rank] == [2, 1];
                            if whole && mixed % parts == which || !whole && is_few {
                                rows.push(Row { first, places });
                            }
                        }
                    }
                }
            }
        }
    }
    rows
}

#[test]
fn every_survivor_is_told_the_same() {
    if let Some(case) = case() {
        live(&case);
    }
    let whole = std::env::var_os("ROUNDELAY_WHOLE").is_some();
    let (waits, happened, wrong) = (Waits::default(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    // Ranks of a case wait for most of their time, and ranks of a stop for all of it.
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (stops, others): (Vec<Row>, Vec<Row>) =
        rows(whole).into_iter().partition(|row| row.first.fault == "stop");
    for (rows, workers) in [(others, cores), (stops, 4 * cores)] {
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let mut worse = 0;
                        for place in row.places.clone() {
                            let case = Case { place, ..row.first };
                            match catch_unwind(AssertUnwindSafe(|| check(&case, &waits))) {
                                Ok(true) => _ = happened.fetch_add(1, Ordering::Relaxed),
                                Ok(false) => break,
                                Err(_) => {
                                    wrong.lock().expect("a list").push(case);
                                    worse += 1;
                                    // The error is known by now, and a hang would go on.
                                    if worse > 2 {
                                        break;
                                    }
                                }
                            }
                        }
                    }
                });
            }
        });
    }
    let happened = happened.into_inner();
    let mut waits = waits.into_inner().expect("no thread panics there");
    for (which, name) in
        ["by the clock", "without time for which they had no core"].iter().enumerate()
    {
        waits.sort_by_key(|wait| wait[which]);
        let at = |percent: usize| {
            waits.get((waits.len() * percent / 100).min(waits.len().saturating_sub(1)))
        };
        let [half, most, all] = [50, 99, 100].map(|p| at(p).map_or(Duration::ZERO, |w| w[which]));
        println!("told after {half:?} (half), {most:?} (99 %), {all:?} (all), {name}");
    }
    println!("{happened} faults");
    let wrong = wrong.into_inner().expect("a list");
    assert!(wrong.is_empty(), "{} of {happened} are wrong: {wrong:#?}", wrong.len());
    assert!(happened > 10, "{happened} faults happened");
}

/// A root that returns from a call that turns out to be void, and makes no further call, is told at its end: the error is on
/// its standard error, and its exit code is 1, unless it asked by `leave`.
#[test]
fn a_root_that_returned_from_a_void_call_does_not_end_well() {
    let test = "failures::a_root_that_returned_from_a_void_call_does_not_end_well";
    if let Some(how) = case() {
        let world = World::from_env_with(Options::new().deadline(DEADLINE)).expect("a world");
        let mut rank = world.rank();
        let mut data = vec![u64::from(rank.id()) + 1; 1000];
        rank.barrier().expect("a right call");
        if rank.id() != 1 {
            std::thread::sleep(Duration::from_millis(100));
            let error = rank.all_reduce(&mut data, ReduceOp::Sum).expect_err("the calls differ");
            say(&format!("void {error}"));
            end();
        }
        rank.broadcast(&mut data, 1).expect("it waits for nobody");
        say("returned");
        if how == "leaves" {
            say(&format!("void {}", world.leave().expect_err("the call was void")));
        } else {
            drop(world);
        }
        end();
    }
    for (how, code) in [("leaves", 0), ("drops", 1)] {
        let told = run(test, 3, how, |_, _| {});
        for (rank, of) in told.iter().enumerate() {
            let right = if rank == 1 { code } else { 0 };
            assert_eq!(of.status.code(), Some(right), "{how} {rank}: {of:#?}");
            let report = "roundelay: rank 1 returned from a call that was void: call 2 is ";
            assert_eq!(of.all.contains(report), rank == 1 && how == "drops", "{how}: {of:#?}");
            let void = line(of, "void ");
            assert_eq!(void.is_some(), rank != 1 || how == "leaves", "{how} {rank}: {of:#?}");
            assert!(void.is_none_or(|text| text.contains("Broadcast of 1000 u64")), "{of:#?}");
        }
    }
}
