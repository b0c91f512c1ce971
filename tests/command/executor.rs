//! `executor`: its scores, the sizes that it tests, and how its times were measured.

use super::call::{TempFile, roundelay};

const ENTRY: &str = "executor Entry for AllReduce {
    topology: full_mesh(8) without (0, 1);
    ccl_buffer: 64 KiB;
    when bytes < 1 KiB => OneShotAround;
    otherwise => TwistedRingAllReduce(ring = around(topology));
}
";

fn written(text: &str) -> TempFile {
    TempFile::new("executor.coll", text.as_bytes())
}

#[test]
fn the_library_has_executors() {
    let json = roundelay(&["executor", "list", "--format", "json"]).ends(0).json();
    let names: Vec<_> = json.as_array().unwrap().iter().map(|e| e["name"].clone()).collect();
    assert_eq!(names, roundelay::executor::names().into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn the_score_is_a_share_of_the_bound() {
    let score = |name: &str| {
        let flags = ["executor", "score", name, "--simulate-only", "--format", "json"];
        roundelay(&flags).ends(0).json()
    };
    // The ring, and all links at once.
    let published = score("CustomHugeAllReduceMesh");
    let ours = score("AllLinksAllReduceMesh");
    let share = |json: &serde_json::Value| json["rows"][2]["share_percent"].as_f64().unwrap();
    assert!((28.5..=29.7).contains(&share(&published)), "{published}");
    assert!(share(&ours) >= 85.0, "{ours}");
    assert_eq!(ours["verdict"]["one_shot_links"], true);
    for (ours, published) in
        ours["rows"].as_array().unwrap().iter().zip(published["rows"].as_array().unwrap())
    {
        assert!(ours["simulated_us"].as_f64() <= published["simulated_us"].as_f64());
    }
    let flags = ["executor", "score", "AllLinksAllReduceMesh", "--sizes", "1K,64K"];
    let measured = roundelay(&[&flags[..], &["--format", "json"]].concat()).ends(0).json();
    assert_eq!(measured["rows"][1]["measured"]["Ok"]["wrong"], 0, "{measured}");
    let human = roundelay(&flags).ends(0).out;
    assert!(human.contains("all ranks share this machine's memory"), "{human}");
}

/// From 64 KB up, and for other topologies, all links at once are never slower than the ring.
#[test]
fn all_links_at_once_are_never_worse_than_the_ring() {
    let simulated = |algorithm: &str, topology: &str| {
        let text = format!(
            "executor One for AllReduce {{ topology: {topology}; otherwise => {algorithm}; }}"
        );
        let file = written(&text);
        let sizes = "64K,100000,256K,1M,3M,16M,100MB+4,1G";
        let flags = [
            "executor",
            "score",
            file.path(),
            "--simulate-only",
            "--format",
            "json",
            "--sizes",
            sizes,
        ];
        let json = roundelay(&flags).ends(0).json();
        let rows = json["rows"].as_array().unwrap().clone();
        rows.iter().map(|row| row["simulated_us"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    for topology in [
        "full_mesh(8) without (0, 1)",
        "full_mesh(8) without (0, 1) without (2, 3)",
        "full_mesh(8) without (0, 1) without (0, 2)",
        "groups([8, 8]) without (0, 1)",
        "groups([1, 1, 1, 1])",
        "groups([8, 4]) without (0, 1)",
    ] {
        let ring = simulated("TwistedRingAllReduce(ring = around(topology))", topology);
        let links = simulated("MeshAround(slices = 1)", topology);
        assert!(links.iter().zip(&ring).all(|(a, b)| a <= b), "{topology}: {links:?} {ring:?}");
        if topology.starts_with("groups") {
            let islands = simulated("HierarchicalMeshAllReduce(slices = 1)", topology);
            assert!(
                islands.iter().zip(&ring).all(|(a, b)| a <= b),
                "{topology}: {islands:?} {ring:?}"
            );
        }
    }
}

/// Without `--sizes`, every class is tested at its smallest, an inner and its largest testable size.
#[test]
fn each_class_is_tested_at_both_its_ends() {
    let small = ENTRY.replace("64 KiB", "1 KiB").replace(
        "when bytes < 1 KiB",
        "when bytes < 3 => RingAllReduce(ring = around(topology));\n    when bytes < 1 KiB",
    );
    let file = written(&small);
    let json = roundelay(&["executor", "run", file.path(), "--format", "json"]).ends(0).json();
    let rows = json["rows"].as_array().unwrap();
    let bytes: Vec<_> = rows.iter().map(|row| row["bytes"].as_u64().unwrap()).collect();
    // 1024 loops of 1 KiB are less than 16 MiB.
    assert_eq!(bytes, [4, 516, 1020, 1024, 524_804, 1 << 20]);
    assert_eq!(rows[5]["loops"], 1024);
    assert!(rows.iter().all(|row| row["wrong"] == 0), "{json}");
    // No f32 is smaller than 3 bytes, and that is said.
    let untested = json["untested"].as_array().unwrap();
    assert!(untested.len() == 1 && untested[0].as_str().unwrap().contains("up to 2 B"), "{json}");
    assert!(json["testable"].as_str().unwrap().contains("up to 16 MiB"), "{json}");
    let bytes = ["executor", "run", file.path(), "--dtype", "i8", "--in-place"];
    let out = roundelay(&bytes).ends(0).out;
    assert!(out.contains("its largest size up to 16 MiB") && !out.contains("up to 2 B"), "{out}");
}

/// Times come with the build of the command that measured them; simulated times do not depend on it.
#[test]
fn measured_times_say_how_the_command_was_built() {
    let file = written(ENTRY);
    let build = if cfg!(debug_assertions) { "dev" } else { "release" };
    for command in ["bench", "score"] {
        let args = ["executor", command, file.path(), "--sizes", "64K", "-I", "1"];
        let call = roundelay(&args).ends(0);
        assert!(call.out.contains(&format!("build: {build}")), "{}", call.out);
        assert_eq!(call.err.contains("this is the dev build"), build == "dev", "{}", call.err);
        let json = roundelay(&[&args[..], &["--format", "json"]].concat()).ends(0).json();
        assert_eq!(json["build"], build);
    }
    let simulated = ["executor", "score", file.path(), "--sizes", "64K", "--simulate-only"];
    let call = roundelay(&simulated).ends(0);
    assert!(!call.out.contains("build") && call.err.is_empty(), "{}{}", call.out, call.err);
}
