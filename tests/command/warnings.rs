//! Warnings: shown, allowed and denied, by every command that checks a source.

use super::call::{roundelay, with_input};

const LET: &str = "tests/wrong/W0003_unused_let.coll";

/// An unused parameter, and an unused `let`.
const TWO: &str = "algorithm Two(slices: int = 1) -> AllGather {
    require nranks == 1, \"one rank\";
    let mine = rank;
    copy(local.input, local.output);
}
";

#[test]
fn every_command_that_checks_a_source_warns() {
    let mesh = "full_mesh(4, 25GB/s, 2us)";
    let commands: [&[&str]; 8] = [
        &["check", LET, "--nranks", "4"],
        &["run", LET, "--nranks", "4", "--count", "10", "--iterations", "1"],
        &["emit", "rust", LET],
        &["emit", "schedule", LET],
        &["emit", "cuda", LET],
        &["signals", LET, "--nranks", "4"],
        &["simulate", LET, "--topology", mesh, "--bytes", "1K"],
        &["bench", LET, "--nranks", "2", "-b", "1K", "--iters", "1"],
    ];
    for args in commands {
        let call = roundelay(args).ends(0);
        assert_eq!(call.err.matches("warning[W0003]: ").count(), 1, "{args:?}:\n{}", call.err);
        assert!(call.err.contains(&format!("{LET}:6:9")), "{args:?}:\n{}", call.err);
        let denied = roundelay(&[args, &["--deny", "W0003"]].concat()).refused(1, "W0003");
        assert!(denied.err.contains("error[W0003]: "), "{args:?}:\n{}", denied.err);
        let allowed = roundelay(&[args, &["--allow", "W0003"]].concat()).ends(0);
        assert!(!allowed.err.contains("W0003"), "{args:?}:\n{}", allowed.err);
    }
    for args in [&["fmt", "--check", LET][..], &["list", LET], &["emit", "coll", LET]] {
        let call = roundelay(args).ends(0);
        assert!(!call.err.contains("W0003"), "{args:?}:\n{}", call.err);
    }
}

#[test]
fn executors_warn_too() {
    let source = format!(
        "{TWO} executor Four for AllGather {{ topology: full_mesh(4); otherwise => MeshAllGather; }}"
    );
    let call = with_input(&["executor", "check", "-"], source.as_bytes()).ends(0);
    assert_eq!(call.err.matches("warning[").count(), 2, "{}", call.err);
    let deny = ["executor", "check", "-", "--deny", "warnings"];
    with_input(&deny, source.as_bytes()).refused(1, "W0002");
    let list = with_input(&["executor", "list", "-"], source.as_bytes()).ends(0);
    assert_eq!(list.err, "");
}

#[test]
fn a_code_goes_before_all_warnings() {
    let check = |flags: &[&str]| {
        let args = [&["check", "-", "--nranks", "1"], flags].concat();
        with_input(&args, TWO.as_bytes())
    };
    assert_eq!(check(&[]).ends(0).err.matches("warning[").count(), 2);
    let both = check(&["--deny", "warnings"]).refused(1, "W0002");
    assert_eq!(both.err.matches("error[").count(), 2, "{}", both.err);
    assert!(both.err.contains("denied by `--deny warnings`"), "{}", both.err);
    assert!(both.err.contains("2 errors in"), "{}", both.err);
    let one = check(&["--deny", "W0003"]).refused(1, "W0003");
    assert!(one.err.contains("1 error and 1 warning in"), "{}", one.err);
    let none = check(&["--deny", "warnings", "--allow", "W0002,w0003"]).ends(0);
    assert_eq!(none.err, "");
    check(&["--allow", "warnings", "--deny", "W0002"]).refused(1, "W0002");
    check(&["--allow", "W0002", "--deny", "W0002"]).refused(2, "E0501");
    for what in ["W9999", "E0301", "unused", ""] {
        check(&["--deny", what]).refused(2, "E0501");
    }
}

#[test]
fn what_the_source_says_goes_before_the_call() {
    let with = |attribute: &str, flags: &[&str]| {
        let args = [&["check", "-", "--nranks", "1"], flags].concat();
        with_input(&args, format!("{attribute} {TWO}").as_bytes())
    };
    let allowed = with("#[allow(W0002, W0003)]", &["--deny", "warnings"]).ends(0);
    assert_eq!(allowed.err, "");
    with("#[deny(W0003)]", &["--allow", "warnings"]).refused(1, "W0003");
}

#[test]
fn warnings_in_json() {
    let args = ["check", "-", "--nranks", "1", "--format", "json"];
    let call = with_input(&args, TWO.as_bytes()).ends(0);
    assert_eq!(call.err, "");
    let json = call.json();
    assert_eq!(json["ok"], true);
    assert_eq!(json["algorithms"][0]["ok"], true);
    let found = json["diagnostics"].as_array().unwrap();
    let of = |i: usize, key: &str| found[i][key].as_str().unwrap().to_owned();
    assert_eq!([of(0, "code"), of(0, "severity")], ["W0002", "warning"]);
    assert_eq!([of(1, "code"), of(1, "severity")], ["W0003", "warning"]);
    assert_eq!((&found[0]["line"], &found[0]["column"]), (&1.into(), &15.into()));

    let call = with_input(&[&args[..], &["--deny", "W0003"]].concat(), TWO.as_bytes()).ends(1);
    let json = call.json();
    assert_eq!(json["ok"], false);
    let severities: Vec<_> =
        json["diagnostics"].as_array().unwrap().iter().map(|d| &d["severity"]).collect();
    assert_eq!(severities, ["warning", "error"]);
}

#[test]
fn many_warnings_are_given_in_time() {
    let lets: Vec<_> = (0..2_000).map(|i| format!("let unused{i} = rank;")).collect();
    let source = format!("algorithm Many() -> AllReduce {{ {} }}", lets.join("\n"));
    let call = with_input(&["emit", "schedule", "-", "--nranks", "1"], source.as_bytes()).ends(0);
    assert_eq!(call.err.matches("warning[W0003]").count(), 2_000);
    assert!(call.took.as_secs() < 60, "{:?}", call.took);
}
