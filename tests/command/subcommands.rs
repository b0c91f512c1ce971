//! Outputs of subcommands against goldens, files that `fmt` writes, and pipes that are closed.

use std::process::Stdio;

use super::call::{TempFile, binary, roundelay, with_input};

const STAR: &str = "// before
pub algorithm Star(root: Rank = 0) -> Broadcast { // on the line
    // inside
    if rank == root { copy(local.input, local.output); parallel d in 1..nranks {
        let p = peer((rank + d) % nranks); p.TxDataSignal(); p.RxAck(); } }
    else { let d = (rank - root) % nranks; // a distance
      parallel lane in d..d+1 { peer(root).RxDataSignal(); copy(peer(root).output, local.output); peer(root).TxAck(); }
    }
    // last
}
// after
";

#[test]
fn several_sources_are_as_many_documents() {
    let (right, wrong) = ("RingAllReduce", "tests/wrong/E0301_deadlock.coll");
    let call = roundelay(&["check", "-n", "3", wrong, right, "--format", "json"]).ends(1);
    let objects = serde_json::Deserializer::from_str(&call.out).into_iter::<serde_json::Value>();
    let told: Vec<_> = objects.map(|json| json.expect("JSON")).collect();
    let told = told.iter().map(|json| (json["file"].as_str().unwrap(), json["ok"] == true));
    assert_eq!(told.collect::<Vec<_>>(), [(wrong, false), ("ring.coll", true)]);
}

#[test]
fn fmt_keeps_comments_and_settles() {
    let once = with_input(&["fmt", "-"], STAR.as_bytes()).ends(0).out;
    for comment in
        ["// before", "// on the line", "// inside", "// a distance", "// last", "// after"]
    {
        assert_eq!(once.matches(comment).count(), 1, "{comment} in\n{once}");
    }
    assert_ne!(once, STAR);
    assert_eq!(with_input(&["fmt", "-"], once.as_bytes()).ends(0).out, once);

    let file = TempFile::new("star.coll", STAR.as_bytes());
    let call = roundelay(&["fmt", "--check", file.path()]).ends(1);
    assert!(call.out.contains("star.coll"), "{}", call.out);
    assert_eq!(std::fs::read_to_string(file.path()).unwrap(), STAR, "a check writes nothing");
    assert!(call.out.contains("star.coll:4:\n // before\n"), "{}", call.out);
    assert!(call.out.contains("\n-    else { let d"), "{}", call.out);
    assert!(call.out.contains("\n+    } else {\n"), "{}", call.out);
    let call = roundelay(&["fmt", file.path()]).ends(0);
    assert_eq!((&*call.out, std::fs::read_to_string(file.path()).unwrap()), ("", once));
    assert_eq!(roundelay(&["fmt", "--check", file.path()]).ends(0).out, "");
}

#[test]
fn fmt_leaves_a_file_that_does_not_parse() {
    let file = TempFile::new("broken.coll", b"algorithm A( {\n");
    let star = TempFile::new("star.coll", STAR.as_bytes());
    roundelay(&["fmt", file.path(), star.path()]).refused(1, "E000");
    assert_eq!(std::fs::read(file.path()).unwrap(), b"algorithm A( {\n");
    let other = std::fs::read_to_string(star.path()).unwrap();
    assert_ne!(other, STAR, "an error keeps no other file from being written");
}

#[test]
fn emit_struct_is_the_golden() {
    let golden = roundelay_tests::root().join("tests/golden/attributes.rs");
    // Both name the file as they are told to.
    let golden = std::fs::read_to_string(golden).unwrap().replace("data/", "tests/data/");
    assert_eq!(roundelay(&["emit", "struct", "tests/data/attributes.coll"]).ends(0).out, golden);
}

#[test]
fn emit_schedule_is_the_golden() {
    let golden = roundelay_tests::root().join("tests/golden/ring_of_3.schedule");
    let golden = std::fs::read_to_string(golden).unwrap();
    let call = roundelay(&["emit", "schedule", "RingAllReduce", "--nranks", "3"]).ends(0);
    assert_eq!(call.out.trim_end(), golden.trim_end());
}

#[test]
fn explain_lists_all_codes() {
    let all = roundelay(&["explain"]).ends(0).out;
    for code in roundelay_core::diagnostics::Code::ALL {
        assert!(all.contains(code.as_str()), "{code} is not listed");
    }
}

/// As `roundelay … | head -1` does: the reader goes away.
#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let golden: [&[&str]; 6] = [
        &["emit", "struct", "stdlib/library/ring.coll"],
        &["emit", "schedule", "RingAllReduce", "--nranks", "64"],
        &["emit", "ast", "stdlib/library/ring.coll"],
        &["emit", "coll", "stdlib/library/twisted_ring.coll"],
        &["explain"],
        &["list", "--format", "json"],
    ];
    for args in golden {
        let mut command = binary();
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the command ends");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!errors.contains("panicked"), "{args:?}:\n{errors}");
        assert!(output.status.code().is_none_or(|code| code == 0), "{args:?}: {}", output.status);
    }
}
