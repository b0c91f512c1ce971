//! Sources without end, steps without end and outputs that are full: each is told, and soon.

use std::fmt::Write as _;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::call::{TempFile, binary, roundelay};

fn limited(args: &[&str], limit: &str) -> (i32, String) {
    let mut command = binary();
    command.args(args).env("ROUNDELAY_LARGEST_SOURCE", limit);
    ended(command)
}

fn ended(mut command: Command) -> (i32, String) {
    let output = command.output().expect("the command starts");
    let err = String::from_utf8(output.stderr).expect("errors are text");
    (output.status.code().expect("an exit code"), err)
}

#[test]
fn a_source_has_a_limit_that_can_be_set() {
    let (code, err) = limited(&["check", "examples/ring.coll"], "30");
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("error[E0001]") && err.contains("more than 30 bytes"), "{err}");
    assert!(err.contains("ROUNDELAY_LARGEST_SOURCE sets another limit"), "{err}");
    let (code, err) = limited(&["check", "examples/ring.coll"], "many");
    assert!(code == 2 && err.contains("`many`, no number of bytes"), "{err}");
    let (code, err) = limited(&["check", "examples/ring.coll", "-n", "4"], "10000");
    assert_eq!(code, 0, "{err}");
    let used = TempFile::new("used.coll", &[b' '; 300]);
    let using = format!("use \"{}\";\nalgorithm A() -> AllReduce {{ }}\n", used.path());
    let using = TempFile::new("using.coll", using.as_bytes());
    let (code, err) = limited(&["check", using.path()], "250");
    assert!(code == 1 && err.contains("E0122") && err.contains("more than 250 bytes"), "{err}");
}

#[cfg(unix)]
#[test]
fn devices_pipes_and_folders_are_no_sources_to_use() {
    for (path, kind) in [("/dev/zero", "a device or a pipe"), ("/", "a folder")] {
        let text = format!(
            "use \"{path}\";\nalgorithm A() -> AllReduce {{ copy(local.input, local.output); }}\n"
        );
        let file = TempFile::new("endless.coll", text.as_bytes());
        let call = roundelay(&["check", file.path()]).refused(1, "E0122");
        assert!(call.err.contains(kind), "{}", call.err);
    }
    roundelay(&["check", "/dev/zero"]).refused(2, "E0001");
    roundelay(&["topo", "/dev/zero"]).ends(2);
    roundelay(&["list", "AllReduce", "--why", "--costs", "/dev/zero"]).ends(2);
}

#[cfg(unix)]
#[test]
fn a_pipe_that_nobody_writes_to_is_waited_for_with_a_word() {
    let mut command = binary();
    command.args(["check", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("the command starts");
    std::thread::sleep(Duration::from_millis(2500));
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("the command ends");
    let err = String::from_utf8(output.stderr).expect("errors are text");
    assert!(err.starts_with("waiting for the end of standard input\n"), "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_no_success() {
    for args in
        [&["list"][..], &["--help"], &["emit", "rust", "RingAllReduce"], &["explain", "E0001"]]
    {
        let mut command = binary();
        command.args(args).stdout(File::create("/dev/full").expect("Linux has it"));
        let (code, err) = ended(command);
        assert_eq!(code, 2, "{args:?}: {err}");
        assert!(err.contains("error[E0508]"), "{args:?}: {err}");
    }
}

#[test]
fn steps_that_double_are_refused_before_they_are_walked() {
    let mut text = "algorithm A() -> AllReduce {\n    step s0() { let a = 1; }\n".to_owned();
    for k in 1..60 {
        let before = k - 1;
        let _ = writeln!(text, "    step s{k}() {{ s{before}(); s{before}(); }}");
    }
    for body in
        ["s59();", "for i in 0..nranks { s24(); }", "if rank == 0 { s40(); } else { s41(); }"]
    {
        let whole = format!("{text}    {body}\n    copy(local.input, local.output);\n}}\n");
        let file = TempFile::new("bomb.coll", whole.as_bytes());
        let call = roundelay(&["check", file.path(), "-n", "8"]).refused(1, "E0206");
        assert!(call.err.contains("the calls of steps here take"), "{}", call.err);
        roundelay(&["check", file.path()]).refused(1, "E0206");
    }
}
