//! Traces: each file follows the format of trace events, every rank and row has a name, and the events of a row lie in
//! one another or apart.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use expect_test::expect_file;
use serde_json::Value;

use super::call::{TempFile, roundelay};

/// A checked trace.
struct Trace {
    /// The events that take time, by the names of their rank and their row.
    rows: BTreeMap<(String, String), Vec<Value>>,
    arrows: usize,
}

impl Trace {
    fn new(text: &str) -> Self {
        let whole: Value = serde_json::from_str(text).expect("a document of JSON");
        assert_eq!(whole["displayTimeUnit"], "ns");
        let events = whole["traceEvents"].as_array().expect("events");
        let row = |event: &Value| {
            let [process, thread] = ["pid", "tid"].map(|id| event[id].as_u64().expect("an id"));
            assert!(process > 0 && process != thread, "{event}");
            (process, thread)
        };
        let (mut ranks, mut names) = (BTreeMap::new(), BTreeMap::new());
        for event in events.iter().filter(|event| event["ph"] == "M") {
            let name = || event["args"]["name"].as_str().expect("a name").to_owned();
            match event["name"].as_str().expect("a kind") {
                "process_name" => _ = ranks.insert(row(event).0, name()),
                "thread_name" => _ = names.insert(row(event), name()),
                kind => {
                    assert!(["process_sort_index", "thread_sort_index"].contains(&kind), "{event}");
                    assert!(event["args"]["sort_index"].is_u64(), "{event}");
                }
            }
        }
        let mut rows: BTreeMap<_, Vec<Value>> = BTreeMap::new();
        let (mut begun, mut ended) = (BTreeMap::new(), Vec::new());
        for event in events.iter().filter(|event| event["ph"] != "M") {
            let row = row(event);
            let at = nanos(&event["ts"]);
            assert!(!event["name"].as_str().expect("a name").is_empty());
            assert!(event["cat"].is_string(), "{event}");
            let id = || event["id"].as_str().expect("an id").to_owned();
            match event["ph"].as_str().expect("a phase") {
                "X" => {
                    assert!(event["args"].is_object() && event["dur"].is_number(), "{event}");
                    let row = (ranks[&row.0].clone(), names[&row].clone());
                    rows.entry(row).or_default().push(event.clone());
                }
                // Viewers take ids that are numbers, also in hexadecimal digits.
                "s" => {
                    assert!(u64::from_str_radix(&id()[2..], 16).is_ok() && id().starts_with("0x"));
                    assert!(begun.insert(id(), at).is_none(), "{event}");
                }
                "f" => ended.push((id(), at)),
                "i" => assert_eq!(event["s"], "t"),
                other => panic!("phase {other}"),
            }
        }
        assert_eq!(begun.len(), ended.len());
        assert!(ended.iter().all(|(id, at)| begun[id] <= *at), "an arrow goes back in time");
        for (row, events) in &rows {
            let mut around: Vec<u64> = Vec::new();
            let mut last = 0;
            for event in events {
                let begin = nanos(&event["ts"]);
                let end = begin + nanos(&event["dur"]);
                assert!(begin >= last, "{row:?} goes back in time: {event}");
                last = begin;
                while around.last().is_some_and(|outer| *outer <= begin) {
                    around.pop();
                }
                assert!(around.last().is_none_or(|outer| end <= *outer), "{row:?}: {event}");
                around.push(end);
            }
        }
        Self { rows, arrows: ended.len() }
    }

    fn ranks(&self) -> BTreeSet<&str> {
        self.rows.keys().map(|(rank, _)| &**rank).collect()
    }

    fn row(&self, rank: &str, row: &str) -> &[Value] {
        let key = (rank.to_owned(), row.to_owned());
        self.rows.get(&key).unwrap_or_else(|| panic!("{key:?} of {:?}", self.rows.keys()))
    }

    fn find(&self, rank: &str, row: &str, name: &str) -> &Value {
        let found = self.row(rank, row).iter().find(|event| event["name"] == name);
        found.unwrap_or_else(|| panic!("{name} of {:?}", self.row(rank, row)))
    }
}

/// Returns a time of the format, in microseconds, in nanoseconds.
fn nanos(micros: &Value) -> u64 {
    (micros.as_f64().expect("a time") * 1000.0).round() as u64
}

/// The trace of a command.
fn traced(args: &[&str]) -> Trace {
    let file = TempFile::new("trace.json", b"");
    let call = roundelay(&[args, &["--trace", file.path()]].concat()).ends(0);
    assert!(call.err.contains("wrote"), "{}", call.err);
    Trace::new(&fs::read_to_string(file.path()).expect("a trace"))
}

#[test]
fn a_run_has_its_steps_with_lines_and_peers_and_the_simulated_run_beside_it() {
    const RUN: [&str; 10] =
        ["run", "RingAllReduce", "-n", "3", "--count", "3000", "-O0", "-I", "1", "--callers"];
    for callers in ["one", "each", "processes"] {
        if callers == "processes" && cfg!(not(target_os = "linux")) {
            continue;
        }
        let trace = traced(&[&RUN[..], &[callers]].concat());
        let ranks = ["rank 0", "rank 1", "rank 2"];
        let simulated = ranks.map(|rank| format!("simulated {rank}"));
        assert_eq!(
            trace.ranks(),
            ranks.into_iter().chain(simulated.iter().map(|s| &**s)).collect()
        );
        for (rank, simulated) in ranks.iter().zip(&simulated) {
            assert_eq!(trace.row(rank, "calls").iter().filter(|e| e["cat"] == "call").count(), 2);
            assert!(
                trace.row(simulated, "messages sent").iter().all(|e| e["args"]["bytes"] == 4000)
            );
            // Two runs of 4 steps of 5 ops, and the copy of the input before.
            assert!(trace.row(rank, "stream 0").len() > 2 * 20, "{callers}");
        }
        let step = &trace.find("rank 1", "stream 0", "reduce from 0");
        assert_eq!((&step["cat"], &step["args"]["line"]), (&"step".into(), &"ring.coll:27".into()));
        assert_eq!((&step["args"]["peer"], &step["args"]["bytes"]), (&0.into(), &4000.into()));
        if callers != "processes" {
            assert_eq!(step["args"]["statement"], "reduce(left.block[b], local.block[b]);");
        }
        let wait = trace.find("rank 1", "stream 0", "waits for TxAck of 0");
        assert_eq!((&wait["cat"], &wait["args"]["peer"]), (&"wait".into(), &0.into()));
        let call = &trace.find("rank 2", "calls", "RingAllReduce")["args"];
        assert_eq!(
            (&call["call"], &call["bytes"]),
            (&"AllReduce of 3000 f32, sum".into(), &12000.into())
        );
        // Each post meets a wait: 2 runs of 4 steps with 2 signals to each of 3 ranks.
        assert_eq!(trace.arrows, 2 * 4 * 2 * 3, "{callers}");
    }
}

#[test]
fn what_the_optimizer_fused_is_a_row_for_each_worker() {
    let args = ["run", "RingAllReduce", "-n", "2", "--count", "3000", "-I", "1", "--workers", "1"];
    let trace = traced(&args);
    // One move writes the results of both ranks.
    let step = trace.find("rank 0", "worker 0", "reduce from 1 to 1");
    let line = step["args"]["line"].as_str().expect("a place");
    assert!(line.starts_with("ring.coll:") && line.contains(" and "), "{line}");
    assert_eq!(trace.arrows, 0);
}

#[test]
fn a_bench_has_two_runs_of_each_row_beside_what_the_model_says() {
    let args =
        ["bench", "RingAllReduce,TreeAllReduce", "-n", "2", "-b", "8K", "-I", "2", "-c", "0"];
    let trace = traced(&args);
    let calls = trace.row("rank 0", "calls").iter().map(|event| event["name"].as_str());
    let calls: Vec<&str> = calls.map(Option::unwrap).collect();
    assert_eq!(calls, ["RingAllReduce", "RingAllReduce", "TreeAllReduce", "TreeAllReduce"]);
    assert_eq!(trace.row("simulated rank 1", "calls").len(), 2);
}

/// The events of a simulation are the same every time: two of them are in the book.
#[test]
fn a_simulation_is_a_trace_too() {
    let args = ["simulate", "RingAllReduce", "--topology", "crossbar(4, 25GB/s, 1us)"];
    let trace = traced(&[&args[..], &["--bytes", "64K"]].concat());
    assert_eq!(trace.ranks().len(), 4);
    let step = trace.find("simulated rank 1", "stream 0", "reduce from 0");
    let message = &trace.row("simulated rank 0", "messages sent")[0];
    let both = [step, message].map(|event| serde_json::to_string_pretty(event).expect("JSON"));
    let listing = roundelay_tests::root().join("book/src/listings/simulation/trace.json");
    expect_file![listing].assert_eq(&(both.join(",\n") + "\n"));
    // The trace goes alone to standard output.
    let call = roundelay(&[&args[..], &["--trace", "-"]].concat()).ends(0);
    assert_eq!(Trace::new(&call.out).ranks().len(), 4);
    let several = roundelay(&[&args[..], &["--nranks", "2,4", "--trace", "-"]].concat());
    several.refused(2, "E0507");
}

/// All ranks of a job write one file, each when it leaves; a file that cannot be written costs only the trace.
#[cfg(target_os = "linux")]
#[test]
fn a_job_of_processes_has_one_trace() {
    use super::call::{binary, example};

    let job = |file: &str| {
        let program = example("processes");
        let mut command = binary();
        command.args(["launch", "-n", "2", "--"]).arg(program.get_program());
        command.env("ROUNDELAY_TRACE", file).output().expect("the command starts")
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.json");
    // A second job begins anew.
    for _ in 0..2 {
        let done = job(file.to_str().expect("text"));
        assert!(done.status.success(), "{done:?}");
        let trace = Trace::new(&fs::read_to_string(&file).expect("a trace"));
        assert_eq!(trace.ranks(), ["rank 0", "rank 1"].into());
        let calls = |rank| trace.row(rank, "calls").iter().filter(|e| e["cat"] == "call").count();
        assert!(calls("rank 0") == calls("rank 1") && calls("rank 0") > 0);
        assert!(calls("rank 0") < 100, "one job's");
    }
    let each = folder.path().join("of-%r.json");
    assert!(job(each.to_str().expect("text")).status.success());
    for rank in ["0", "1"] {
        let text = fs::read_to_string(folder.path().join(format!("of-{rank}.json")));
        assert_eq!(Trace::new(&text.expect("a trace")).ranks(), [&*format!("rank {rank}")].into());
    }
    for unwritable in ["/none/t.json", "/"] {
        let done = job(unwritable);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
        assert!(said.contains("the job goes on without it") && said.contains("[E0508]"), "{said}");
    }
}
