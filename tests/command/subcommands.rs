//! The output of each subcommand on success, and the line between the exit codes 0, 1 and 2.

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
fn a_range_lists_what_is_refused() {
    let call = roundelay(&["check", "HalvingDoublingAllReduce", "--nranks", "2..=9"]).ends(0);
    assert!(call.out.contains("refused"), "{}", call.out);
    assert!(call.out.contains("3, 5..=7, 9"), "the refused counts:\n{}", call.out);
    assert!(call.out.contains("power of two"), "the reason:\n{}", call.out);
    let call =
        roundelay(&["run", "HalvingDoublingAllReduce", "--nranks", "2..=5", "--count", "10"])
            .ends(0);
    assert!(call.out.contains("refused"), "{}", call.out);
    assert!(call.out.contains("power of two"), "{}", call.out);
}

#[test]
fn a_named_count_that_is_refused_is_an_error() {
    for command in ["check", "run"] {
        let call =
            roundelay(&[command, "HalvingDoublingAllReduce", "--nranks", "6"]).refused(1, "E0205");
        assert!(call.err.contains("power of two"), "{}", call.err);
    }
}

#[test]
fn a_range_that_admits_nothing_is_an_error() {
    roundelay(&["check", "HalvingDoublingAllReduce", "--nranks", "5..=7"]).refused(1, "E0505");
    let call = roundelay(&["run", "HalvingDoublingAllReduce", "--nranks", "5..=7"]).ends(1);
    assert!(call.err.contains("power of two"), "{}", call.err);
}

#[test]
fn run_counts_wrong_elements() {
    let call =
        roundelay(&["run", "TwistedRingAllReduce", "--nranks", "2,8", "--count", "1003"]).ends(0);
    assert!(call.out.contains("#wrong"), "{}", call.out);
    let set = ["--set", "ring=1,2,3,4,5,6,0,7"];
    roundelay(&["run", "TwistedRingAllReduce", "--nranks", "8", "--count", "11", set[0], set[1]])
        .ends(0);
    let root = ["run", "-", "--nranks", "5", "--count", "7", "--set", "root=3", "--dtype", "i8"];
    with_input(&root, STAR.as_bytes()).ends(0);
}

#[test]
fn standard_input_is_a_source() {
    let call = with_input(&["check", "-"], STAR.as_bytes()).ends(0);
    assert!(call.out.contains("Star"), "{}", call.out);
    let call = with_input(&["check", "-"], b"algorithm A() -> AllReduce { }").refused(1, "E0304");
    assert!(call.err.contains("<stdin>:1:"), "{}", call.err);
}

#[test]
fn several_sources_are_checked_one_after_the_other() {
    let (right, wrong) = ("RingAllReduce", "tests/wrong/E0301_deadlock.coll");
    let check = |sources: &[&str]| {
        let ranks: &[&str] = if sources.contains(&"-n") { &[] } else { &["-n", "3"] };
        roundelay(&[&["check"], ranks, sources].concat())
    };
    let call = check(&[wrong, right]).ends(1);
    let lines: Vec<_> = call.out.lines().map(str::trim_start).collect();
    let begins = |words: &str| lines.iter().position(|line| line.starts_with(words));
    assert_eq!(begins(&format!("file {wrong}")), Some(0), "{}", call.out);
    assert_eq!(begins("failed"), Some(1), "{}", call.out);
    assert_eq!(begins(&format!("file {right}")), Some(2), "{}", call.out);
    assert_eq!(begins("proved RingAllReduce"), Some(3), "{}", call.out);
    assert!(call.err.contains(&format!("{wrong}:10:9")), "{}", call.err);
    // The worst exit code counts, and a wrong file keeps no other from being proved.
    for missing in [["none.coll", wrong, right], [right, "none.coll", wrong]] {
        let call = check(&missing).refused(2, "E0001");
        assert!(call.out.contains("proved") && call.out.contains("failed"), "{}", call.out);
    }
    check(&[right, "NcclRingAllReduce"]).ends(0);
    assert!(!check(&[right]).ends(0).out.contains("file"), "one needs no name");

    let last = |call: &super::call::Call| {
        let (line, _) =
            call.out.lines().last().expect("a line").split_once(" in ").expect("a time");
        line.to_owned()
    };
    assert_eq!(last(&check(&[right, "NcclRingAllReduce"])), "  checked 2 files: 2 proved");
    let call = check(&[wrong, "none.coll", right, "HalvingDoublingAllReduce", "-n", "2..=4"]);
    assert_eq!(
        last(&call.ends(2)),
        "  checked 4 files, 1 of them wrong or missing: 2 proved, 1 of them not for all rank counts \
         asked for, 1 failed"
    );

    let call = check(&[wrong, right, "--format", "json"]).ends(1);
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
    // The library's text is in no file.
    let call = roundelay(&["fmt", "RingAllReduce"]).refused(2, "E0507");
    assert!(call.err.contains("`roundelay emit coll RingAllReduce` prints it"), "{}", call.err);
}

#[test]
fn emit_rust_is_the_golden() {
    let golden = roundelay_tests::root().join("tests/golden/attributes.rs");
    // Both name the file as they are told to.
    let golden = std::fs::read_to_string(golden).unwrap().replace("data/", "tests/data/");
    assert_eq!(roundelay(&["emit", "rust", "tests/data/attributes.coll"]).ends(0).out, golden);
}

#[test]
fn emit_schedule_is_the_golden() {
    let golden = roundelay_tests::root().join("tests/golden/ring_of_3.schedule");
    let golden = std::fs::read_to_string(golden).unwrap();
    let call = roundelay(&["emit", "schedule", "RingAllReduce", "--nranks", "3"]).ends(0);
    assert_eq!(call.out.trim_end(), golden.trim_end());
    roundelay(&["emit", "schedule", "HalvingDoublingAllReduce", "--nranks", "3"])
        .refused(1, "E0205");
}

#[test]
fn emit_ast() {
    let call = roundelay(&["emit", "ast", "stdlib/library/ring.coll"]).ends(0);
    assert!(call.out.contains("RingAllReduce"));
}

#[test]
fn explain_and_list() {
    let all = roundelay(&["explain"]).ends(0).out;
    for code in roundelay_core::diagnostics::Code::ALL {
        assert!(all.contains(code.as_str()), "{code} is not listed");
    }
    for name in ["E0301", "e0301"] {
        assert!(!roundelay(&["explain", name]).ends(0).out.trim().is_empty());
    }
    let page = |code| roundelay(&["explain", code]).ends(0).out;
    for short in ["E306", "e306", "306", "0306"] {
        assert_eq!(page(short), page("E0306"), "{short}");
    }
    assert_eq!(page("w2"), page("W0002"));
    let list = roundelay(&["list"]).ends(0).out;
    assert!(list.contains("HalvingDoublingAllReduce") && list.contains("AllReduce"), "{list}");
    assert!(with_input(&["list", "-"], STAR.as_bytes()).ends(0).out.contains("root: Rank"));
}

#[test]
fn help_and_version() {
    for args in [&["--help"][..], &["run", "--help"], &["--version"]] {
        assert!(roundelay(args).ends(0).out.contains("roundelay"), "{args:?}");
    }
    roundelay(&[]).ends(2);
}

/// As `roundelay … | head -1` does: the reader goes away.
#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let golden: [&[&str]; 6] = [
        &["emit", "rust", "stdlib/library/ring.coll"],
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

#[test]
fn emit_steps_says_who_sends_what_to_whom() {
    let call =
        roundelay(&["emit", "steps", "RingBroadcast", "--nranks", "1,3", "--set", "slices=2"]);
    let expected = "1 rank, slices = 2: nothing travels
3 ranks, slices = 2, pieces of 1/2:
step 0  0->1[0]
step 1  0->1[1] 1->2[0]
step 2  1->2[1]
";
    assert_eq!(call.ends(0).out, expected);
    // However wide: a line a step.
    let call = roundelay(&["emit", "steps", "RingAllGather", "--nranks", "33"]).ends(0);
    assert_eq!(call.out.lines().count(), 33, "{}", call.out);
    let bad = "algorithm A() -> AllReduce { if rank == 0 { peer(1).RxAck(); } }";
    with_input(&["emit", "steps", "-", "--nranks", "2"], bad.as_bytes()).refused(1, "E0302");
    roundelay(&["emit", "steps", "HalvingDoublingAllReduce", "--nranks", "6"]).refused(1, "E0205");
}

#[test]
fn signals_says_what_each_is_for() {
    let call = roundelay(&["signals", "RingAllReduce", "--nranks", "1,3"]);
    let expected = "1 rank, each with a caller: no signals
3 ranks, each with a caller: 15 of 24 signals are needed
  line  signal        times  what it orders, for example
    25  TxAck             3  rank 2 writes its output at line 21, then rank 0 reads it at line 27
    25  TxAck             3  rank 2 writes its output at line 27, then rank 0 reads it at line 27
    33  TxAck             3  rank 2 writes its output at line 27, then rank 0 reads it at line 35
    33  TxAck             3  rank 2 writes its output at line 35, then rank 0 reads it at line 35
    36  TxDataSignal      3  rank 1 reads rank 0's output at line 35, then rank 0's caller returns
";
    assert_eq!(call.ends(0).out, expected);
    let budget = "#[budget(ports = 9)] algorithm A() -> AllGather {
        copy(local.input, local.output.block(rank));
        peer((rank + 1) % nranks).TxAck();
        peer((rank - 1) % nranks).RxAck();
        copy(peer((rank - 1) % nranks).input, local.output.block((rank - 1) % nranks));
        peer((rank - 1) % nranks).TxDataSignal();
        peer((rank + 1) % nranks).RxDataSignal();
    }";
    let call = with_input(&["signals", "-", "--nranks", "2"], budget.as_bytes()).ends(0);
    let stays = "all 4 signals stay, for its budget of ports counts steps, and signals make these";
    assert!(call.out.contains(stays), "{}", call.out);
    let bad = "algorithm A() -> AllReduce { if rank == 0 { peer(1).RxAck(); } }";
    with_input(&["signals", "-", "--nranks", "2"], bad.as_bytes()).refused(1, "E0302");
    roundelay(&["signals", "RingAllReduce", "--callers", "two"]).ends(2);
}
