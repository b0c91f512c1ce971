//! `emit cuda` and `emit ptx`: kernels as text and compiled, and all that can be wrong with the call.

use std::process::Output;
use std::time::Instant;

use super::call::{Call, TempFile, binary, roundelay};

/// With the wheel that `cargo xtask nvrtc` installs, and a cache of its own.
pub(super) fn compiled(args: &[&str], variables: &[(&str, &str)]) -> Call {
    let wheel = roundelay_tests::root().join("target/nvrtc");
    assert!(wheel.is_dir(), "{} is not there: run `cargo xtask nvrtc`", wheel.display());
    let mut command = binary();
    let start = Instant::now();
    command.env("ROUNDELAY_NVRTC", wheel).env("ROUNDELAY_CACHE", "off").args(args);
    let Output { status, stdout, stderr } =
        command.envs(variables.iter().copied()).output().expect("the command starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let call = Call {
        code: status.code().expect("it ends by itself"),
        out: text(stdout),
        err: text(stderr),
        took: start.elapsed(),
    };
    assert!(!call.err.contains("panicked"), "{args:?} panicked:\n{}", call.err);
    call
}

#[test]
fn the_text_is_made_without_any_of_cuda() {
    let out = roundelay(&["emit", "cuda", "RingAllReduce", "--nranks", "8"]).ends(0).out;
    for part in ["ROUNDELAY_WALK(RingAllReduce)", "ELEMENT f32", "OP Sum", "PROTOCOL Direct"] {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
    let args = ["emit", "cuda", "RingAllReduce", "--dtype", "f8e4m3", "--op", "max"];
    let out = roundelay(&args).ends(0).out;
    assert!(out.contains("ELEMENT f8e4m3") && out.contains("OP Max"), "{out}");
    let of = |callers: &[&str]| {
        let args = [&["emit", "cuda", "RingAllReduce", "--nranks", "8"], callers].concat();
        roundelay(&args).ends(0).out
    };
    let (each, one) = (of(&[]), of(&["--callers", "one"]));
    assert!(each.contains("\n// Each rank begins and ends by itself.\n"), "{each}");
    assert!(one.contains("\n// One launch begins and ends all ranks.\n"), "{one}");
    // One launch orders the end of all ranks, and the last signals of the ring are for nothing else.
    let signals = |text: &str| text.matches("xDataSignal(").count();
    assert!(signals(&each) > signals(&one), "{each}{one}");
    // The loops stay loops.
    let loops =
        |nranks| roundelay(&["emit", "cuda", "RingAllReduce", "--nranks", nranks]).ends(0).out;
    assert!(loops("64").lines().count() <= loops("8").lines().count() + 2);
    let table = [&args[..], &["--form", "table"]].concat();
    let out = roundelay(&table).ends(0).out;
    assert!(out.contains("run_table"), "{out}");
}

#[test]
fn the_protocol_is_the_programs_unless_it_is_given() {
    let slots = roundelay(&["emit", "cuda", "NcclRingAllReduce"]).ends(0).out;
    assert!(slots.contains("PROTOCOL Simple"), "{slots}");
    let lines = roundelay(&["emit", "cuda", "NcclRingAllReduce", "--protocol", "ll"]).ends(0).out;
    assert!(lines.contains("PROTOCOL Ll"), "{lines}");
}

#[test]
fn ptx_begins_with_what_the_assembler_says() {
    let out = compiled(&["emit", "ptx", "RingAllReduce", "--arch", "sm_80"], &[]).ends(0).out;
    let first: Vec<_> = out.lines().take(2).collect();
    assert_eq!(first[0], "// for sm_80, 256 threads a block, 2 blocks a multiprocessor");
    assert!(
        first[1].starts_with("// RingAllReduce: ") && first[1].contains(" registers, "),
        "{out}"
    );
    assert!(out.contains(".maxntid 256"), "{out}");
    let args = ["emit", "ptx", "RingAllReduce", "--arch", "sm_80", "--threads", "128"];
    assert!(compiled(&args, &[]).ends(0).out.contains(".maxntid 128"));
    assert!(out.contains(".target sm_80") && out.contains(".entry RingAllReduce("), "{out}");
}

#[test]
fn wrong_flags_are_refused_by_name() {
    let emit = |more: &[&str]| roundelay(&[&["emit", "cuda", "RingAllReduce"], more].concat());
    let refused = |call: &Call, code: &str, fix: &str| {
        assert!(call.code != 0 && call.out.is_empty(), "{}", call.out);
        assert!(call.err.contains(code) && call.err.contains(fix), "{}", call.err);
    };
    for (flags, code, fix) in [
        (["--dtype", "f12"], "E0501", "f8e5m2"),
        (["--op", "xor"], "E0501", "avg"),
        (["--protocol", "ll128"], "E0501", "direct, simple, ll"),
        (["--form", "graph"], "E0501", "table"),
        // It has no fifo.
        (["--protocol", "ll"], "E0423", "protocol direct"),
    ] {
        refused(&emit(&flags), code, fix);
    }
    for (flags, code, fix) in [
        (["--threads", "100"], "E0501", "64, 96"),
        // One warp walks the program, so another one is needed to move data.
        (["--threads", "32"], "E0501", "64, 96"),
        (["--threads", "2048"], "E0501", "or 1024"),
        (["--arch", "hopper"], "E0416", "such as sm_80"),
        (["--arch", "sm_70"], "E0416", "sm_80 or newer"),
        (["--arch", ""], "E0416", "such as sm_80"),
    ] {
        refused(&roundelay(&[&["emit", "ptx", "RingAllReduce"], &flags[..]].concat()), code, fix);
    }
    let table = emit(&["--form", "table", "--protocol", "simple"]).refused(2, "E0423");
    assert!(table.err.contains("--form loops"), "{}", table.err);
    roundelay(&["emit", "cuda", "NoSuchAlgorithm"]).refused(2, "E0502");
    roundelay(&["emit", "cuda", "RingAllReduce", "--set", "ring=0,0"]).refused(1, "E0211");
    roundelay(&["emit", "cuda", "RingAllReduce", "--set", "rings=1"]).refused(2, "E0211");
}

#[test]
fn an_architecture_that_nvrtc_lacks_names_those_it_has() {
    let call = compiled(&["emit", "ptx", "RingAllReduce", "--arch", "sm_99"], &[]);
    let call = call.refused(2, "E0416");
    assert!(call.err.contains("knows sm_") && call.err.contains("sm_100"), "{}", call.err);
}

#[test]
fn no_nvrtc_says_where_it_was_looked_for_and_what_installs_it() {
    let nothing = [("ROUNDELAY_NVRTC", "/nothing/here")];
    let call = compiled(&["emit", "ptx", "RingAllReduce"], &nothing).refused(2, "E0415");
    for part in ["/nothing/here does not exist", "cargo xtask nvrtc"] {
        assert!(call.err.contains(part), "{part} is not in\n{}", call.err);
    }
    let file = TempFile::new("libnvrtc.so.13", b"\x7fELF");
    let call = compiled(&["emit", "ptx", "RingAllReduce"], &[("ROUNDELAY_NVRTC", file.path())]);
    assert!(call.refused(2, "E0415").err.contains("cannot be loaded"));
}

/// Whoever makes a folder above the working directory does not choose the library.
#[test]
fn nvrtc_is_not_looked_for_above_the_working_directory() {
    let planted = tempfile::tempdir().expect("a folder");
    let [lib, below] = ["target/nvrtc/lib", "below"].map(|name| planted.path().join(name));
    for folder in [&lib, &below] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    std::fs::write(lib.join("libnvrtc.so.99"), "planted").expect("a file");
    let mut command = binary();
    command.current_dir(below).env_remove("ROUNDELAY_NVRTC").env("ROUNDELAY_CACHE", "off");
    let said = command.args(["emit", "ptx", "RingAllReduce", "-n", "3"]).output();
    let said = said.expect("the command starts");
    // The one that lies where cargo built the command is found.
    let err = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success() && !err.contains("libnvrtc.so.99"), "{err}");
}

#[test]
fn a_program_that_is_wrong_is_never_a_kernel() {
    let text = "algorithm Half() -> AllReduce { copy(local.input, local.output); }\n";
    let file = TempFile::new("half.coll", text.as_bytes());
    for what in ["cuda", "ptx"] {
        let call = compiled(&["emit", what, file.path(), "--nranks", "2"], &[]);
        call.refused(1, "E0304");
    }
}

/// The rows of a dry run.
fn predicted(args: &[&str]) -> Vec<serde_json::Value> {
    let args = [&["bench", "--device", "cuda", "--dry-run", "--format", "json"], args].concat();
    let out = compiled(&args, &[]).ends(0).out;
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    report["predicted"].as_array().expect("rows").clone()
}

#[test]
fn a_dry_run_predicts_what_launches_take() {
    let rows = predicted(&[
        "MeshAllReduce,PushedOneShotAllReduce",
        "-b",
        "1K",
        "-e",
        "64M",
        "-f",
        "65536",
    ]);
    let number = |row: &serde_json::Value, key: &str| row[key].as_f64().expect("a number");
    for size in [1 << 10, 64 << 20] {
        let of_size: Vec<_> = rows.iter().filter(|row| row["size"] == size).collect();
        let forms: Vec<_> = of_size
            .iter()
            .map(|row| (row["algo"].as_str(), row["form"].as_str(), row["protocol"].as_str()))
            .collect();
        let (mesh, eager) = (Some("MeshAllReduce"), Some("PushedOneShotAllReduce"));
        let (loops, table, direct) = (Some("loops"), Some("table"), Some("direct"));
        let expected = [
            (mesh, loops, direct),
            (mesh, table, direct),
            (eager, loops, Some("simple")),
            (eager, loops, Some("ll")),
            (eager, table, direct),
        ];
        assert_eq!(forms, expected);
        let fastest: Vec<_> = of_size.iter().filter(|row| row["fastest"] == true).collect();
        let least =
            of_size.iter().map(|row| number(row, "predicted")).fold(f64::INFINITY, f64::min);
        assert!(!fastest.is_empty() && fastest.iter().all(|row| number(row, "predicted") <= least));
        for row in &of_size {
            let parts = ["launch", "moving", "latency", "signals"].map(|key| number(row, key));
            let all: f64 = parts.iter().sum();
            assert!((all - number(row, "predicted")).abs() < 1e-6, "{row}");
        }
    }
    // The optimized schedule reads every input once and writes every output once, and has no waits.
    let table = &rows[6];
    assert_eq!((table["form"].as_str(), table["waits"].as_u64()), (Some("table"), Some(0)));
    assert_eq!(table["traffic"].as_u64(), Some(2 * 8 * (64 << 20)));
    assert!(number(table, "percent_of_floor") > 95.0, "{table}");
    // Lines save a signal, and cost twice the bytes.
    let [simple, lines] = [&rows[2], &rows[3]].map(|row| number(row, "predicted"));
    assert!(lines < simple, "{lines} {simple}");
    let [simple, lines] = [&rows[7], &rows[8]].map(|row| number(row, "predicted"));
    assert!(lines > simple, "{lines} {simple}");
}

#[test]
fn a_graph_and_another_gpu_change_what_is_predicted() {
    let ring = ["RingAllReduce", "--form", "loops", "-b", "64M"];
    let time = |more: &[&str]| {
        let rows = predicted(&[&ring, more].concat());
        assert_eq!(rows.len(), 1);
        rows[0]["predicted"].as_f64().expect("a number")
    };
    let plain = time(&[]);
    // On the GPU that was measured, a launch by a graph takes as long as one by a call.
    assert!((time(&["--graph"]) - plain).abs() < 1e-9);
    assert!(time(&["--gpu", "H100"]) > 1.2 * plain);
    assert!((time(&["--gpu", "H200"]) - plain).abs() < 1e-9);
}

#[test]
fn what_a_dry_run_cannot_do_is_refused() {
    let bench = |more: &[&str]| roundelay(&[&["bench", "RingAllReduce"], more].concat());
    let says = |call: Call, help: &str| assert!(call.err.contains(help), "{}", call.err);
    says(bench(&["--dry-run"]).refused(2, "E0501"), "add --device cuda");
    says(bench(&["--graph"]).refused(2, "E0501"), "add --device cuda");
    bench(&["--device", "cuda", "--gpu", "H200"]).ends(2);
    let dry = ["--device", "cuda", "--dry-run"];
    says(bench(&[&dry[..], &["--gpu", "h300"]].concat()).refused(2, "E0501"), "H100 and H200");
    says(bench(&[&dry[..], &["-b", "64G"]].concat()).refused(2, "E0407"), "lower -e");
}
