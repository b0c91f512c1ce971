//! `--callers processes`: ranks that `run` and `bench` start as processes, and their fate.

use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use roundelay::Collective;

use super::call::{Call, TempFile, binary, roundelay, with_input};

fn run(args: &[&str]) -> Call {
    roundelay(&[&["run"], args, &["-I", "1", "--callers", "processes"]].concat())
}

fn bench(args: &[&str]) -> Call {
    roundelay(&[&["bench"], args, &["-I", "2", "--callers", "processes"]].concat())
}

#[test]
fn the_columns_are_those_of_other_callers() {
    let args = ["RingAllReduce,RingAllGather", "-n", "2,4", "-b", "1K", "-e", "4K", "-f", "4"];
    for more in [&["-v"][..], &["--alloc", "-v"]] {
        let call = bench(&[&args, more].concat()).ends(0);
        let rows: Vec<Vec<&str>> = call
            .out
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows.len(), 8, "two sizes of two algorithms on 2 and on 4:\n{}", call.out);
        for row in rows {
            assert_eq!(row.len(), 17, "{row:?}");
            assert_eq!([row[8], row[12]], ["0", "0"], "nothing is wrong");
            for time in [row[5], row[9]] {
                assert!(time.parse::<f64>().unwrap() > 0.0, "{row:?}");
            }
        }
        assert!(call.out.contains(" callers: processes"), "{}", call.out);
        assert_eq!(call.out.contains("buffers in shared memory"), more.len() > 1);
    }
}

#[test]
fn json_has_the_same_keys() {
    let report = |callers: &[&str]| {
        let args = ["bench", "NhrBroadcast", "-n", "3", "-r", "2", "-b", "1K", "-I", "1"];
        let report = roundelay(&[&args, callers, &["--format", "json"]].concat()).ends(0).json();
        let [row] = &report["results"].as_array().expect("a list")[..] else { panic!("{report}") };
        assert_eq!((&row["root"], &row["out_of_place"]["nwrong"]), (&2.into(), &0.into()));
        let keys: Vec<String> = row.as_object().expect("keys").keys().cloned().collect();
        (keys, report["config"]["callers"].clone(), report["config"]["alloc"].clone())
    };
    let (keys, callers, alloc) = report(&["--callers", "each"]);
    assert_eq!((callers, alloc), ("each".into(), serde_json::Value::Null));
    let shared = report(&["--callers", "processes", "--alloc"]);
    assert_eq!(shared, (keys, "processes".into(), true.into()));
}

#[test]
fn all_of_the_library_is_right() {
    for collective in Collective::ALL {
        let name = collective.name();
        let call = bench(&["--collective", name, "-n", "3", "-b", "96", "--format", "json"]);
        let report = call.ends(0).json();
        for row in report["results"].as_array().expect("a list") {
            for place in ["out_of_place", "in_place"] {
                assert!(
                    [0.into(), serde_json::Value::Null].contains(&row[place]["nwrong"]),
                    "{row}"
                );
            }
        }
    }
}

#[test]
fn all_ops_and_levels() {
    for op in ["sum", "prod", "min", "max", "avg"] {
        for more in [&["-O0"][..], &["-O1", "--alloc"], &["--in-place"], &["--in-place", "--alloc"]]
        {
            let args = ["RingAllReduce", "-n", "3", "--count", "100", "--op", op];
            let call = run(&[&args, more, &["--dtype", "bf16", "--format", "json"]].concat());
            assert_eq!(call.ends(0).json()["wrong"], 0, "{op} {more:?}");
        }
    }
}

/// A count for each block, on every engine of the host and in both modes.
#[test]
fn blocks_have_counts_of_their_own() {
    for callers in ["one", "each", "processes"] {
        for (algorithm, counts) in [
            ("RingAllGather", "5,0,70000"),
            ("RingReduceScatter", "skew:2"),
            ("BruckAllToAll", "random:5"),
            ("NhrScatter", "0,0,9"),
        ] {
            for more in [&["--in-place"][..], &["-O0"], &["-O2"]] {
                let in_place = more == ["--in-place"];
                if in_place && algorithm == "BruckAllToAll" {
                    continue;
                }
                let args = ["run", algorithm, "-n", "3", "--count", "1000", "--counts", counts];
                let call = ["--callers", callers, "--format", "json"];
                let report = roundelay(&[&args[..], &call, more].concat()).ends(0).json();
                let report = &report["results"].as_array().map_or(&report, |all| &all[0]);
                assert_eq!(report["wrong"], 0, "{algorithm} {counts} {callers} {more:?}: {report}");
                assert!(report["counts"].is_array(), "{report}");
            }
        }
    }
}

#[test]
fn ranks_find_what_the_command_found() {
    let text = roundelay(&["emit", "coll", "RingAllReduce"]).ends(0).out;
    let file = TempFile::new("mine.coll", text.as_bytes());
    let args = ["--algorithm", "RingAllReduce", "--set", "ring=2,1,0", "-n", "3", "--count", "9"];
    run(&[&[file.path()], &args[..]].concat()).ends(0);
    let typed = ["run", "-", "-n", "3", "--count", "9", "--callers", "processes"];
    with_input(&typed, text.as_bytes()).ends(0);
}

#[test]
fn errors_of_ranks_are_told_once() {
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 20; exec \"$@\"", "sh"]).arg(binary().get_program());
    limited.args(["run", "RingAllReduce", "-n", "16", "--count", "9", "--callers", "processes"]);
    let output = limited.output().expect("`sh` starts");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), err.matches("error").count()), (Some(2), 2), "{err}");
    assert!(err.contains("error[E0429]: the system refuses process"), "{err}");
}

/// The processes that a process started.
fn children(pid: u32) -> Vec<String> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = fs::read_to_string(path).unwrap_or_default();
    children.split_whitespace().map(str::to_owned).collect()
}

#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nothing_is_left_of_them() {
    let is_there = |pid: &String| fs::exists(format!("/proc/{pid}")).unwrap_or(true);
    for whole in [true, false] {
        let mut command = binary();
        command.args(["run", "RingAllReduce", "-n", "3", "--count", "9", "-I", "100000000"]);
        command.args(["--callers", "processes"]).stderr(Stdio::piped());
        let mut running = command.spawn().expect("the command starts");
        until("three ranks", || children(running.id()).len() == 3);
        let ranks = children(running.id());
        // The ranks must be in calls: an earlier error says that they do not meet.
        std::thread::sleep(Duration::from_millis(500));
        if whole {
            running.kill().expect("it runs");
            running.wait().expect("it ends");
        } else {
            let killed = Command::new("kill").args(["-s", "KILL", &ranks[1]]).status();
            assert!(killed.expect("`kill` starts").success());
            assert_eq!(running.wait().expect("it ends").code(), Some(2));
            let mut err = String::new();
            running.stderr.take().expect("a pipe").read_to_string(&mut err).expect("text");
            assert_eq!(err.lines().count(), 1, "{err}");
            assert!(err.starts_with("error[E04") && err.contains("killed by signal 9"), "{err}");
        }
        until("a rank is left", || !ranks.iter().any(is_there));
    }
}
