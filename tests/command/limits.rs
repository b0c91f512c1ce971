//! The command where the system gives it little: of stack, and of memory.

use std::process::Command;

use super::call::binary;

/// Calls the command with a limit that the shell sets: its exit code, and its errors.
fn limited(limit: &str, args: &str) -> (Option<i32>, String) {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {limit} && exec \"$0\" {args}")]);
    let said = shell.arg(binary().get_program()).output().expect("a shell starts");
    (said.status.code(), String::from_utf8_lossy(&said.stderr).into_owned())
}

#[test]
fn a_small_stack_is_enough() {
    for args in ["check RingAllReduce -n 4", "run RingAllReduce -n 4 --count 100", "--help"] {
        let (code, err) = limited("-s 64", args);
        assert_eq!(code, Some(0), "{args}: {err}");
    }
}

/// The smallest limit under which the command starts, and some that are a little larger.
#[test]
fn little_memory_is_a_clear_error() {
    let starts = |kib: &u64| limited(&format!("-v {kib}"), "--version").0 == Some(0);
    let least = (16_000..4_000_000).step_by(4_000).find(starts).expect("it starts");
    let least = (least - 3_500..=least).step_by(500).find(starts).expect("the last one does");
    let mut refused = 0;
    for kib in (least..least + 4_000).step_by(1_000) {
        for args in ["check RingAllReduce -n 64", "launch -n 2 -- true"] {
            let (code, err) = limited(&format!("-v {kib}"), args);
            let is_clear = err.contains("error[E0407]") || err.contains("error[E0429]");
            // The C library ends a program that it cannot give a thread's variables, which it says itself.
            let is_known = code == Some(2) && is_clear || err.contains("Fatal glibc error");
            assert!(code == Some(0) || is_known, "{kib} KiB, {args}: {err}");
            refused += usize::from(is_clear);
        }
    }
    assert!(refused > 0, "from {least} KiB on");
    let (code, err) = limited("-v 400000", "run RingAllReduce -n 16 --count 4000000");
    assert!(code == Some(2) && err.contains("half of what is available is"), "{err}");
}
